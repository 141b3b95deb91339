"""The text an agent puts into its prompt: hits packed to a token budget, framed as background. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memories.advice import is_advice
from memories.contents import cut, sentences
from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END
from memories.enums import Kind

LESSON_CHARS = 100  # a lesson is cut to about this, in whole sentences, when the budget is short
WHOLE_CHARS = 400  # and to about this when it is not
LONGEST_SENTENCE = 200  # the first one is kept whole up to this
OTHER_CHARS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One hit to be packed."""

    text: str
    kind: str
    scope: str
    contested: bool
    warning: bool = False  # it tells what not to do


def token_estimate(text: str) -> int:
    """About how many model tokens a text takes: 4 ASCII characters each, 1.5 per other character.

    An upper estimate for today's tokenizers, so that a budget is kept rather than met.
    """
    ascii_chars = len(text.encode("ascii", "ignore"))
    return -(-ascii_chars // 4) + -(-3 * (len(text) - ascii_chars) // 2)


def pack(lines: Sequence[Line], token_budget: int) -> str:
    """Return the framed context, best hits first, within `token_budget`; empty when nothing fits.

    A hit is told in full where that leaves room for the gist of those below it, and shortened otherwise.
    """
    left = token_budget - token_estimate(CONTEXT_BEGIN) - token_estimate(CONTEXT_END) - 2
    short = [_format(line, LESSON_CHARS) for line in lines]
    below = [_cost(text) for text in short]
    packed = []
    for place, line in enumerate(lines):
        whole = _format(line, WHOLE_CHARS)
        text = whole if _cost(whole) + sum(below[place + 1 :]) <= left else short[place]
        if _cost(text) > left:
            continue
        packed.append(text)
        left -= _cost(text)
    return "\n".join([CONTEXT_BEGIN, *packed, CONTEXT_END]) if packed else ""


def _cost(text: str) -> int:
    return token_estimate(text) + 1


def gist(text: str, limit: int) -> str:
    """Return whole sentences of a lesson in about `limit` characters: what it is about, what it advises, the rest.

    The first sentence and the first piece of advice are kept whatever the limit, each cut only beyond
    `LONGEST_SENTENCE`: neither means much without the other.
    """
    if len(text) <= limit:
        return text
    found = sentences(text)
    ranked = sorted(range(1, len(found)), key=lambda place: (not is_advice(found[place]), place))
    chosen = {0: cut(found[0], LONGEST_SENTENCE)}
    if not is_advice(found[0]) and ranked and is_advice(found[ranked[0]]):
        chosen[ranked[0]] = cut(found[ranked[0]], LONGEST_SENTENCE)
    left = limit - sum(len(sentence) + 1 for sentence in chosen.values())
    for place in ranked:
        if place not in chosen and len(found[place]) <= left:
            chosen[place] = found[place]
            left -= len(found[place]) + 1
    return " ".join(chosen[place] for place in sorted(chosen))


def _format(line: Line, lesson_chars: int) -> str:
    mark = " (contested)" if line.contested else ""
    text = gist(line.text, lesson_chars) if line.kind == Kind.EXPERIENCE else cut(line.text, OTHER_CHARS)
    words = " ".join(text.split())
    label = "warning" if line.warning else Kind(line.kind).label.lower()
    return f"- [{label}, {line.scope}]{mark} {words}"
