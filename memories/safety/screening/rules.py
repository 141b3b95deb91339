"""How phrases are found: cheap literals first, then a pattern around them. Linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_BEFORE, _AFTER = 96, 192  # characters around a literal in which its pattern may match
_MOST_FINDS = 24  # per rule; a text with more is judged by the first ones, they all mean the same

_LONG = 4096  # characters from which on collecting the words pays
_SENTENCE_END = re.compile(r"[.!?;\n。！？；]")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` (on lower-case text) is looked for only where one of `literals` stands.

    A find does not count when `unless` stands before it in the same sentence: "never … without approval".
    """

    name: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    pieces: tuple[str, ...]  # the longest word of each literal
    unless: re.Pattern[str] | None = None


def rule(name: str, literals: str, pattern: str, unless: str | None = None) -> Rule:
    """A rule from its name, the literals separated by `|`, and verbose patterns with bounded repeats."""
    made = make_rule(name, literals.split("|"), re.compile(pattern, re.VERBOSE))
    return replace(made, unless=re.compile(unless, re.VERBOSE)) if unless else made


def make_rule(name: str, literals: Iterable[str], pattern: re.Pattern[str]) -> Rule:
    """A rule from ready parts."""
    literals = tuple(dict.fromkeys(literals))
    pieces = tuple(max(_WORD.findall(literal), key=len, default="") for literal in literals)
    return Rule(name, literals, pattern, pieces)


def vocabulary(text: str) -> str:
    """The distinct words of a long text in one string: what is missing here is missing in the text."""
    return " ".join(set(_WORD.findall(text))) if len(text) > _LONG else text


def find_phrases(text: str, rules: Iterable[Rule], words: str) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of every phrase of `rules` in a lower-case text; `words` is its vocabulary."""
    for each in rules:
        left = _MOST_FINDS
        present = [literal for literal, piece in zip(each.literals, each.pieces, strict=True) if piece in words]
        for start, end in regions(text, present):
            for found in each.pattern.finditer(text, start, end):
                if each.unless and each.unless.search(_sentence_before(text, found.start())):
                    continue
                yield each.name, found.start(), found.end()
                left -= 1
                if not left:
                    break
            if not left:
                break


def _sentence_before(text: str, place: int) -> str:
    return _SENTENCE_END.split(text[max(0, place - _BEFORE) : place])[-1]


def regions(text: str, literals: Iterable[str]) -> list[tuple[int, int]]:
    """The neighbourhoods of all literals, merged where they overlap."""
    places = []
    for literal in literals:
        place = text.find(literal)
        while place >= 0:
            places.append(place)
            # The next one inside the same neighbourhood adds little: step over half of it.
            place = text.find(literal, place + _BEFORE // 2)
    regions: list[tuple[int, int]] = []
    for place in sorted(places):
        start, end = max(0, place - _BEFORE), min(len(text), place + _AFTER)
        if regions and start <= regions[-1][1]:
            regions[-1] = (regions[-1][0], end)
        else:
            regions.append((start, end))
    return regions
