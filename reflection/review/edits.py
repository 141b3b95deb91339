"""Whether an edit changed what a memory says, or only how. Pure."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from memories.sameness import same_conclusion

MOST_REWORDED = 1 / 3  # of the words; an edit that changes more is looked at once more
_WORD = re.compile(r"[㐀-䶿一-鿿]|[^\s㐀-䶿一-鿿]+")  # Chinese has no blanks: each sign counts


def is_material(before: str, after: str) -> bool:
    """Whether a second person should see the change: a number, a negation, a name or an opposite came or went, or
    more than a third of the words are others."""
    if not same_conclusion(before, after):
        return True
    old, new = _WORD.findall(before.casefold()), _WORD.findall(after.casefold())
    return 1 - SequenceMatcher(None, old, new, autojunk=False).ratio() > MOST_REWORDED
