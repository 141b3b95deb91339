"""Where a trace repeats what was handed out by recall, so that it can be blanked and not be learnt twice. Pure.

A memory comes back in many dresses: wrapped anew, cut short, sentence by sentence, as JSON inside a tool's
answer or inside the arguments of the next call, escaped more than once. Both sides are folded to one form
(escapes read, white space one blank); what is found is told in places of the text as it stood.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memories.contents import sentences
from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END

# Weight: a Chinese character counts as two. What is shorter is too common to be known as ours.
RECALLED_AT_LEAST = 20  # a whole memory
SENTENCE_AT_LEAST = 30  # one sentence of it, or the beginning of one that was cut short
_ESCAPE = re.compile(
    r"(?P<space>(?:\s|\\+[nrtf])+)"
    r"|\\+u(?P<code>[0-9a-fA-F]{4})(?:(?<=[dD][89abAB]..)\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))?"
    r"|\\+(?P<char>[\"'/])"
    r"|\\+"
)
_CUT_SHORT = re.compile(r"\s?(?:…|\.\.\.)")

Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Needle:
    """A folded text to look for, and its shortest beginning that is heavy enough to be told."""

    words: str
    head: str


def needles(texts: Iterable[str]) -> list[Needle]:
    """Return what to look for of the texts handed out: each whole, and each of its sentences, longest first."""
    found: set[str] = set()
    for text in texts:
        pieces = ((text, RECALLED_AT_LEAST), *((sentence, SENTENCE_AT_LEAST) for sentence in sentences(text)))
        for piece, least in pieces:
            words = folded(piece)[0].strip()
            if _weight(words) >= least:
                found.add(words)
    return [Needle(words, _head(words)) for words in sorted(found, key=lambda words: (-len(words), words))]


def heard(known: Sequence[Needle], texts: Iterable[str]) -> list[Needle]:
    """Return those needles that some of the texts may repeat: the others need not be looked for in each."""
    if not known:
        return []
    everything = "\n".join(folded(text)[0] for text in texts)
    return [needle for needle in known if needle.head in everything]


def folded(text: str) -> tuple[str, array[int]]:
    """Return a text with escapes read and white space as one blank, and where each of its characters began.

    The places have one more entry than the text has characters: its end.
    """
    parts: list[str] = []
    places: array[int] = array("I")
    done, last = 0, ""
    for match in _ESCAPE.finditer(text):
        if match.start() > done:
            parts.append(text[done : match.start()])
            places.extend(range(done, match.start()))
            last = text[match.start() - 1]
        said = _read(match)
        if said and not (said == last == " "):
            parts.append(said)
            places.append(match.start())
            last = said
        done = match.end()
    parts.append(text[done:])
    places.extend(range(done, len(text) + 1))
    return "".join(parts), places


def _read(match: re.Match[str]) -> str:
    """What an escape stands for; a backslash that escapes nothing known is let go."""
    if match["space"]:
        return " "
    if match["low"]:
        return chr(0x10000 + ((int(match["code"], 16) - 0xD800) << 10) + int(match["low"], 16) - 0xDC00)
    if match["code"]:
        char = chr(int(match["code"], 16))
        return " " if char.isspace() else char
    return match["char"] or ""


def echoes(text: str, known: Sequence[Needle]) -> Spans:
    """Return the spans of a text that repeat one of the `needles`, or stand inside one of our frames."""
    spans = list(_frames(text))
    if known:
        words, places = folded(text)
        spans += [(places[start], places[end]) for one in known for start, end in _repeats(words, one)]
    return spans


def _repeats(words: str, needle: Needle) -> Iterator[tuple[int, int]]:
    """Every place where a folded text says the needle whole, or its beginning and then that it was cut short."""
    at = words.find(needle.head)
    while at >= 0:
        end = at + _common(words, at, needle.words)
        if end - at == len(needle.words):
            yield at, end
        elif short := _CUT_SHORT.match(words, end):
            end = short.end()
            yield at, end
        else:
            end = at + 1
        at = words.find(needle.head, end)


def _head(words: str) -> str:
    weight = 0
    for place, char in enumerate(words):
        weight += _weight(char)
        if weight >= SENTENCE_AT_LEAST:
            return words[: place + 1]
    return words


def _common(words: str, at: int, needle: str) -> int:
    """How many characters of the needle stand at that place."""
    least, most = 0, min(len(needle), len(words) - at)
    while least < most:  # halving: one repeated character would otherwise be compared with itself for ever
        middle = (least + most + 1) // 2
        if words.startswith(needle[:middle], at):
            least = middle
        else:
            most = middle - 1
    return least


def _frames(text: str) -> Iterator[tuple[int, int]]:
    """Find framed contexts. Of one that never ends the mark alone: whoever can write the mark into a page
    must not be able to hide all that comes after it; what it handed out is known from the receipts anyway."""
    at = text.find(CONTEXT_BEGIN)
    while at >= 0:
        end = text.find(CONTEXT_END, at + len(CONTEXT_BEGIN))
        stop = end + len(CONTEXT_END) if end >= 0 else at + len(CONTEXT_BEGIN)
        yield at, stop
        at = text.find(CONTEXT_BEGIN, stop)


def blanked(text: str, spans: Spans | None = None) -> str:
    """Return the text with blanks for these spans (None: for all of it), line breaks kept where they were."""
    parts, done = [], 0
    for start, end in [(0, len(text))] if spans is None else sorted(spans):
        start = max(start, done)
        if end > start:
            parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
            done = end
    return "".join([*parts, text[done:]])


def without_echoes(value: Any, known: Sequence[Needle]) -> Any:
    """Return a JSON value whose strings say blanks for what they repeat, each as wide as it is written in JSON.

    So a step that is shown as its arguments keeps the place of everything else in them. Names stay.
    """
    if isinstance(value, str):
        return _blanked_in_json(value, echoes(value, known))
    if isinstance(value, Mapping):
        return {name: without_echoes(inner, known) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_echoes(inner, known) for inner in value]
    return value


def _blanked_in_json(text: str, spans: Spans) -> str:
    if not spans:
        return text
    cut = bytearray(len(text))
    for start, end in spans:
        cut[start:end] = b"\x01" * (end - start)
    return "".join(_wide(char) if gone else char for char, gone in zip(text, cut, strict=True))


def _wide(char: str) -> str:
    return char if char == "\n" else " " * (len(json.dumps(char, ensure_ascii=False)) - 2)


def _weight(text: str) -> int:
    return sum(2 if ord(char) >= 0x2E80 else 1 for char in text)
