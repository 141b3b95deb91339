"""What differs between a call that failed and one that worked, and whether that explains it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reflection.distill.calls import Attempt
from reflection.distill.wording import leaves, looks_like_id, show

_WORD = re.compile(r"[A-Za-z]{3,}|[\u3400-\u9fff]|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NOT_FOUND = re.compile(
    r"not found|no such|does not exist|could not find|不存在|未找到|找不到", re.IGNORECASE
)
_LINES = 400  # of a script that are compared
_WRITTEN = (
    "code",
    "command",
    "cmd",
    "script",
    "query",
    "input",
    "message",
    "sql",
    "patch",
    "content",
    "text",
)
_LITTLE_WORDS = "the and for with was not you are has have that this from error http"
_LITTLE = frozenset(_LITTLE_WORDS.split())


@dataclass(frozen=True, slots=True)
class Change:
    """One argument that changed: `path` as in `flights[0].date`, None for an argument that was not there."""

    path: str
    old: Any
    new: Any

    @property
    def name(self) -> str:
        """The argument's own name, without places in lists."""
        return re.sub(r"\[\d+\]", "", self.path)


def same_arguments(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two calls were made with the same arguments, white space aside."""
    return fingerprint(one) == fingerprint(other)


def fingerprint(arguments: Mapping[str, Any]) -> str:
    """Return a text that is the same for the same arguments, white space aside."""
    leaf_texts = sorted(
        f"{path}={json.dumps(_clean(value), default=str)}" for path, value in leaves(arguments)
    )
    return "\n".join(leaf_texts)


def changed_arguments(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the arguments that differ, leaf by leaf, in the order of the new call."""
    before, after = dict(leaves(old)), dict(leaves(new))
    before.pop("", None)
    after.pop("", None)
    paths = [*after, *(path for path in before if path not in after)]
    return tuple(
        Change(path, before.get(path), after.get(path))
        for path in paths
        if _clean(before.get(path)) != _clean(after.get(path))
    )


def explains(failed: Attempt, fixed: Attempt, message: str) -> bool:
    """Return whether the second call reads as a correction of the first and not as another errand.

    It does when most of the call stayed, or the error itself speaks of what changed, or a written
    argument (a command, a query, code) was edited rather than replaced.
    """
    changes = changed_arguments(failed.arguments, fixed.arguments)
    if not changes:
        return False
    kept = _kept(failed.arguments, fixed.arguments)
    if all(looks_like_id(change.old) and looks_like_id(change.new) for change in changes):
        # Only another id: for a lookup that is another thing looked up, not a lesson.
        return bool(kept) and not _NOT_FOUND.search(message) and any(mentions(message, c) for c in changes)
    if any(_edited(change) for change in changes) or any(_offered(message, change) for change in changes):
        return True
    written = all(change.name in _WRITTEN for change in changes)
    return bool(kept) and not written and (fixed.changes_state or any(mentions(message, c) for c in changes))


def mentions(message: str, change: Change) -> bool:
    """Return whether an error message speaks of an argument: its name, its old value or its new one."""
    said = _words(message)
    spoken = _words(change.name.replace("_", " ")) | _value_words(change.old) | _value_words(change.new)
    return bool(said & spoken)


def share_words(one: str, other: str) -> bool:
    """Return whether two texts have a telling word in common."""
    return bool(_words(one) & _words(other))


def offered_by(message: str, change: Change) -> bool:
    """Return whether the error message itself names the new value that worked."""
    return _offered(message, change)


def fits_gap(message: str, change: Change) -> bool:
    """Return whether a number moved by exactly the gap between two numbers in the error message."""
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (change.old, change.new)):
        return False
    numbers = [float(found) for found in _NUMBER.findall(message)]
    gaps = {round(abs(a - b), 2) for a in numbers for b in numbers if a != b}
    return round(abs(change.new - change.old), 2) in gaps


def edited_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """Return the lines of a script that went and the lines that came, blank ones and comments aside."""
    gone: list[str] = []
    came: list[str] = []
    before, after = (text.splitlines()[:_LINES] for text in (old, new))
    for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]:
        text = line[1:].strip()
        if text and not text.startswith(("#", "//")) and line[0] in "-+":
            (gone if line[0] == "-" else came).append(text)
    return gone, came


def _kept(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the paths of telling values (text or ids) that both calls share."""
    before = dict(leaves(old))
    return [
        path
        for path, value in leaves(new)
        if isinstance(value, str) and _telling(value) and _clean(before.get(path)) == _clean(value)
    ]


def _offered(message: str, change: Change) -> bool:
    if change.new is None or isinstance(change.new, bool):
        return False
    text = show(change.new, 200)
    if len(text) < 3 or text in show(change.old, 200):
        return False
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", message) is not None


def _edited(change: Change) -> bool:
    """Return whether a text value was edited: much of it stayed."""
    if not (isinstance(change.old, str) and isinstance(change.new, str)) or looks_like_id(change.new):
        return False
    old, new = _words(change.old), _words(change.new)
    if not old or not new:
        return False
    shared = len(old & new)
    return shared / len(old | new) >= 0.3 or (shared >= 2 and shared == min(len(old), len(new)))


def _value_words(value: object) -> set[str]:
    return set() if value is None else _words(show(value, 200).replace("_", " "))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)} - _LITTLE


def _telling(value: str) -> bool:
    """Return whether a value is more than a flag: three letters, or two Chinese characters."""
    return len(value) > 2 or (len(value) == 2 and not value.isascii())


def _clean(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value
