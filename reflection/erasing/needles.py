"""What to look for: a text as a pattern that PostgreSQL and Python read alike. Pure.

The same pattern finds it in a text column and in JSON printed as text, where quotes and backslashes are
escaped and a line break is the two characters `\\n`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ERASED = "[erased]"
_LETTER = "A-Za-z0-9\u00c0-\u024f"
_UNSEEN = "\u00ad\u200b-\u200f\u2060\ufeff"  # soft hyphens, zero-width characters, marks of direction
_IS_UNSEEN = re.compile(f"[{_UNSEEN}]")
_BETWEEN = f"[{_UNSEEN}]*"
_GAP = rf"(?:[\s{_UNSEEN}]|\\[nrt])+"
_WIDE = 0xFEE0  # from "!" to "！", and so for every printable ASCII character
_NOT_AFTER_LETTER = rf"(?:(?<![{_LETTER}])|(?<=\\[nrt]))"
_NOT_BEFORE_LETTER = rf"(?![{_LETTER}])"
_IS_LETTER = re.compile(f"[{_LETTER}]")


@dataclass(frozen=True, slots=True)
class Needle:
    """A text to look for, whatever its case, white space and width, and through what nobody sees.

    `whole`: not inside a longer word ("Ann", "planning"). Chinese and other scripts without spaces have no
    such borders; there it is found anywhere.
    """

    text: str
    whole: bool = False

    @property
    def body(self) -> str:
        """What is looked for, as an advanced regular expression of PostgreSQL's that Python takes too."""
        # What came by the API is in the first form; a command line or an old row need not be.
        text = _IS_UNSEEN.sub("", self.text)
        spellings = dict.fromkeys(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC"))
        bodies = [_GAP.join(_BETWEEN.join(map(_any_width, word)) for word in text.split()) for text in spellings]
        return bodies[0] if len(bodies) == 1 else f"(?:{'|'.join(bodies)})"

    @property
    def pattern(self) -> str:
        """The body with the borders of a whole word around it, where that is asked for."""
        if not self.whole:
            return self.body
        words = self.text.split()
        before = _NOT_AFTER_LETTER if _IS_LETTER.match(words[0][0]) else ""
        after = _NOT_BEFORE_LETTER if _IS_LETTER.match(words[-1][-1]) else ""
        return f"{before}{self.body}{after}"


def pattern_of(needles: Iterable[Needle]) -> str:
    """One pattern that finds any of them."""
    return "|".join(f"(?:{needle.pattern})" for needle in needles)


def rough_of(needles: Iterable[Needle]) -> str:
    """One pattern without borders: finds at least as much, and several times as fast in the database."""
    return "|".join(f"(?:{needle.body})" for needle in needles)


def without(value: Any, pattern: re.Pattern[str], *, words_only: bool = False) -> Any:
    """The value of a column with every string that holds a find erased, at any depth of JSON, keys too.

    `words_only` cuts the find alone out and leaves the text around it: for names and labels.
    """
    if isinstance(value, str):
        if words_only:
            return pattern.sub(ERASED, value)
        return ERASED if pattern.search(value) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ERASED if pattern.search(json.dumps(value)) else value
    if isinstance(value, list | tuple):
        return [without(item, pattern, words_only=words_only) for item in value]
    if isinstance(value, dict):
        return {pattern.sub(ERASED, key): without(item, pattern, words_only=words_only) for key, item in value.items()}
    return value


def compiled(needles: Iterable[Needle]) -> re.Pattern[str]:
    """`pattern_of` for Python."""
    return re.compile(pattern_of(needles), re.IGNORECASE)


def _any_width(character: str) -> str:
    if not "!" <= character <= "~":
        return _escaped(character)
    wide = dict.fromkeys(chr(ord(form) + _WIDE) for form in (character, character.lower(), character.upper()))
    return f"(?:{_escaped(character)}|[{''.join(wide)}])"


def _escaped(character: str) -> str:
    if character == '"':
        return r'\\*"'
    if character == "\\":
        return r"\\+"
    return character if character.isalnum() or not character.isascii() else f"\\{character}"
