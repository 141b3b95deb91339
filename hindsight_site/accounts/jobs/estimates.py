"""How far a job is and how long it will still take. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """`share` is 0..1, None while the total is unknown; `seconds_left` is None without a ground for a guess."""

    share: float | None
    seconds_left: float | None


def estimate(*, done: int, total: int, begun_at: datetime | None, now: datetime) -> Progress:
    """Assume that the rest goes as fast as what was done since the job began."""
    if total <= 0:
        return Progress(None, None)
    share = min(done / total, 1.0)
    if begun_at is None or not done:
        return Progress(share, None)
    return Progress(share, max((now - begun_at).total_seconds(), 0.0) * (total - min(done, total)) / done)
