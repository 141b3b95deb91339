"""A trace as people read it: steps with the quotes that became evidence, and the whole as a strip.

Pure: takes texts and spans, knows no ORM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reflection.enums import StepKind

LONG = {
    True: 1_500,
    False: 700,
}  # characters; a longer text is folded, what was said later than what was printed
LEAD = {True: 500, False: 280}  # what is shown of a folded text
COLUMNS = 240  # at most so many columns in the strip
WIDEST = 40  # units of a drawing 1000 wide: a trace of two steps is two bars, not two walls
FLOOR = 56  # where the strip's columns stand; marks lie beneath


@dataclass(frozen=True, slots=True)
class Span:
    """A quote: characters start..end of a step's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a step's text; `quoted` when a memory rests on it."""

    text: str
    quoted: bool


def parts(text: str, spans: Sequence[Span]) -> list[Part]:
    """Cut `text` into quoted and other stretches. Overlapping quotes become one; nothing is lost."""
    cut: list[Part] = []
    reached = 0
    for start, end in _merged(spans, len(text)):
        if start > reached:
            cut.append(Part(text[reached:start], quoted=False))
        cut.append(Part(text[start:end], quoted=True))
        reached = end
    if reached < len(text):
        cut.append(Part(text[reached:], quoted=False))
    return cut


def _merged(spans: Sequence[Span], length: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        start, end = max(0, span.start), min(span.end, length)
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def folded(cut: Sequence[Part], *, said: bool) -> list[Part] | None:
    """Return a short form of a long text that keeps every quote whole, or None when it is short anyway."""
    if sum(len(part.text) for part in cut) <= LONG[said]:
        return None
    last = len(cut) - 1
    return [
        part if part.quoted else Part(_shortened(part.text, LEAD[said], i == 0, i == last), quoted=False)
        for i, part in enumerate(cut)
    ]


def _shortened(text: str, lead: int, first: bool, last: bool) -> str:
    """Keep what stands next to a quote; of a text without quotes, its beginning."""
    half = lead // 2
    if len(text) <= lead:
        return text
    if first and not last:
        return "…" + text[-half:]
    if last:
        return text[: lead if first else half] + "…"
    return text[:half] + " … " + text[-half:]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the strip, in units of a drawing 1000 wide and `FLOOR` high, from its top left."""

    x: float
    y: float
    width: float
    height: float
    error: bool
    evidence: bool


def strip(steps: Sequence[tuple[int, str, bool, int]], evidence: set[int]) -> list[Column]:
    """Draw a trace in at most `COLUMNS` columns.

    `steps` are (sequence, kind, is_error, characters) in order. The height of a column is the size of
    its largest step on a log scale; a column with an error or a quote says so.
    """
    if not steps:
        return []
    per_column = math.ceil(len(steps) / COLUMNS)
    groups = [steps[i : i + per_column] for i in range(0, len(steps), per_column)]
    width = min(1000 / len(groups), WIDEST)
    tallest = math.log1p(max(size for *_, size in steps)) or 1.0
    return [
        _column(i * width, width * 0.8, math.log1p(max(size for *_, size in group)) / tallest, group, evidence)
        for i, group in enumerate(groups)
    ]


def _column(
    x: float, width: float, share: float, group: Sequence[tuple[int, str, bool, int]], evidence: set[int]
) -> Column:
    height = FLOOR * max(0.12, share)
    return Column(
        x=round(x, 2),
        y=round(FLOOR - height, 2),
        width=round(width, 2),
        height=round(height, 2),
        error=any(is_error for _, _, is_error, _ in group),
        evidence=any(sequence in evidence for sequence, *_ in group),
    )


def is_said(kind: str) -> bool:
    """Whether the text of a step was said by somebody, as against printed by a program."""
    return kind in (StepKind.MESSAGE, StepKind.THOUGHT, StepKind.TOOL_CALL)
