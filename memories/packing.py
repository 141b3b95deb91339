"""The text an agent puts into its prompt: hits packed to a token budget, framed as background. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memories.contents import cut
from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END
from memories.enums import Kind

LESSON_CHARS = 100  # each lesson is cut to about this, at a sentence end
OTHER_CHARS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One hit to be packed."""

    text: str
    kind: str
    scope: str
    contested: bool


def token_estimate(text: str) -> int:
    """About how many model tokens a text takes: 4 ASCII characters each, 1.5 per other character.

    An upper estimate for today's tokenizers, so that a budget is kept rather than met.
    """
    ascii_chars = sum(character.isascii() for character in text)
    return -(-ascii_chars // 4) + -(-3 * (len(text) - ascii_chars) // 2)


def pack(lines: Sequence[Line], token_budget: int) -> str:
    """Return the framed context, best hits first, within `token_budget`; empty when nothing fits."""
    left = token_budget - token_estimate(CONTEXT_BEGIN) - token_estimate(CONTEXT_END) - 2
    packed = []
    for line in lines:
        text = _format(line)
        cost = token_estimate(text) + 1
        if cost > left:
            continue
        packed.append(text)
        left -= cost
    return "\n".join([CONTEXT_BEGIN, *packed, CONTEXT_END]) if packed else ""


def _format(line: Line) -> str:
    limit = LESSON_CHARS if line.kind == Kind.EXPERIENCE else OTHER_CHARS
    mark = " (contested)" if line.contested else ""
    words = " ".join(cut(line.text, limit).split())
    return f"- [{Kind(line.kind).label.lower()}, {line.scope}]{mark} {words}"
