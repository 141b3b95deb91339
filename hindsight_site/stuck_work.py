"""The alarm for work that nobody does: what the sweep of each minute found stuck, kept for the other processes.

The sweep visits every team anyway; /readyz and /metrics only read what it left in the shared cache, so that asking
costs one look. When the sweep itself stops, its last word grows old, and that is an alarm too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from django.core.cache import cache

KEY = "stuck-work"
SWEEP_IS_LATE_AFTER = 300.0  # seconds; it runs each minute


@dataclass(frozen=True, slots=True)
class Told:
    """How many rows of each kind of work are stuck, and how many seconds ago the sweep said so."""

    counts: Mapping[str, int]
    age: float

    @property
    def ok(self) -> bool:
        """Whether nothing is stuck, by a sweep that still runs."""
        return not any(self.counts.values()) and self.age <= SWEEP_IS_LATE_AFTER


def tell(counts: Mapping[str, int]) -> None:
    """Keep what the sweep found."""
    cache.set(KEY, {"counts": dict(counts), "at": time.time()}, None)


def told() -> Told | None:
    """Return what the sweep found last; None before the first one."""
    kept = cache.get(KEY)
    return Told(kept["counts"], max(time.time() - kept["at"], 0.0)) if kept else None
