"""Where something stands in a text, and which of two overlapping finds is kept."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

PLACEHOLDER = re.compile(r"<(SECRET|IBAN|EMAIL|ID_CARD|BANK_CARD|PHONE|IP)_([1-9]\d{0,8})>")


class SpanType(StrEnum):
    """What is masked, strongest first: of two overlapping finds the earlier type is kept."""

    SECRET = "SECRET"  # noqa: S105
    IBAN = "IBAN"
    EMAIL = "EMAIL"
    ID_CARD = "ID_CARD"
    BANK_CARD = "BANK_CARD"
    PHONE = "PHONE"
    IP = "IP"


_RANK = {kind: rank for rank, kind in enumerate(SpanType)}


@dataclass(frozen=True, slots=True)
class Span:
    """A find: `text[start:end] == value`, offsets in characters, end exclusive."""

    start: int
    end: int
    type: SpanType
    value: str


def keep_strongest(spans: Iterable[Span], taken: Iterable[tuple[int, int]]) -> list[Span]:
    """The spans in order of position without overlaps; stronger types win, then the longer, then the earlier.

    `taken` are ranges that no span may touch (placeholders of an earlier masking).
    """
    held = sorted((start, end) for start, end in taken)
    kept = []
    for span in sorted(spans, key=lambda span: (_RANK[span.type], span.start - span.end, span.start)):
        place = bisect_left(held, (span.start, span.end))
        free_before = place == 0 or held[place - 1][1] <= span.start
        free_after = place == len(held) or held[place][0] >= span.end
        if free_before and free_after:
            held.insert(place, (span.start, span.end))
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)
