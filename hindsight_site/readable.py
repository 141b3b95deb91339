"""Numbers, times and quotes put into words for people. Pure."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

CONTEXT_CHARS = 240  # how much of an endless line may stand beside a quote
# One word, one Chinese character, or what stands between: the units of a difference.
UNIT = re.compile(r"[一-鿿㐀-䶿ぁ-ヿ]|[^\W_一-鿿㐀-䶿ぁ-ヿ]+|\s+|.", re.DOTALL)
AMOUNTS = (("day", 86_400), ("hour", 3_600), ("minute", 60))
NORMAL_80 = 1.2816  # half-width of the central 80 % of a normal distribution, in deviations


@dataclass(frozen=True)
class Likely:
    """A confidence and the range it might as well be in; all 0..1."""

    mean: float
    low: float
    high: float
    in_words: str


def likely(mean: float, alpha: float, beta: float) -> Likely:
    """Describe Beta(alpha, beta) by its mean and central 80 % (normal approximation, cut at 0 and 1)."""
    weight = alpha + beta
    variance = alpha * beta / (weight * weight * (weight + 1)) if weight > 0 else 0.25
    reach = NORMAL_80 * math.sqrt(max(variance, 0.0))
    low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    words = f"Confidence {mean:.0%}, probably between {low:.0%} and {high:.0%}"
    return Likely(mean=mean, low=low, high=high, in_words=words)


def ago(moment: datetime, now: datetime) -> str:
    """Say how far `moment` lies from `now`: "3 days ago", "in 2 hours"; a date beyond 30 days."""
    seconds = (now - moment).total_seconds()
    distance = abs(seconds)
    if distance < 45:
        return "just now"
    if distance >= 30 * 86_400:
        return f"{moment.day} {moment:%b %Y}"
    fitting = ((name, size) for name, size in AMOUNTS if distance >= size * 0.95)
    name, size = next(fitting, AMOUNTS[-1])
    count = max(1, round(distance / size))
    amount = f"{count} {name}{'' if count == 1 else 's'}"
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


def duration(seconds: float) -> str:
    """Write seconds for people: 40 ms, 0.4 s, 12 s, 3 min, 2.5 h."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Excerpt:
    """A quote with what stood beside it."""

    before: str
    quote: str
    after: str


def excerpt(text: str, start: int, end: int, lines: int = 2) -> Excerpt:
    """Return text[start:end] with `lines` lines on each side, cut to about `CONTEXT_CHARS` characters.

    An ellipsis stands where text was left out. Offsets beyond the text are taken to its end.
    """
    start, end = max(0, min(start, len(text))), max(0, min(end, len(text)))
    before, after = text[:start], text[end:]
    kept_before = "\n".join(before.split("\n")[-lines - 1 :])[-CONTEXT_CHARS:]
    kept_after = "\n".join(after.split("\n")[: lines + 1])[:CONTEXT_CHARS]
    return Excerpt(
        before=("…" if len(kept_before) < len(before) else "") + kept_before,
        quote=text[start:end],
        after=kept_after + ("…" if len(kept_after) < len(after) else ""),
    )


@dataclass(frozen=True)
class Piece:
    """A stretch of text that stayed ("same"), was added ("added") or taken away ("removed")."""

    effect: str
    text: str


def difference(before: str, after: str) -> list[Piece]:
    """Return how `before` became `after`, word by word (Chinese: character by character)."""
    old, new = UNIT.findall(before), UNIT.findall(after)
    return list(_pieces(old, new))


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for effect, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if effect == "equal":
            yield Piece("same", "".join(old[old_from:old_to]))
            continue
        if old_to > old_from:
            yield Piece("removed", "".join(old[old_from:old_to]))
        if new_to > new_from:
            yield Piece("added", "".join(new[new_from:new_to]))
