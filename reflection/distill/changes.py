"""What differs between two calls, and how that relates to the words of an error."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reflection.distill.wording import leaves, show

_WORD = re.compile(r"[A-Za-z]{3,}|[\u3400-\u9fff]|\d+(?:\.\d+)?")
_LINES = 400  # of a script that are compared
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
    leaf_texts = sorted(f"{path}={json.dumps(_clean(value), default=str)}" for path, value in leaves(arguments))
    return "\n".join(leaf_texts)


def changed_arguments(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the arguments that differ, in the order of the new call: leaf by leaf, but an argument
    that became a list or an object, or stopped being one, as a whole."""
    before, after = _flat(old, new), _flat(new, old)
    paths = [*after, *(path for path in before if path not in after)]
    return tuple(
        Change(path, before.get(path), after.get(path))
        for path in paths
        if _clean(before.get(path)) != _clean(after.get(path))
        or isinstance(before.get(path), bool) != isinstance(after.get(path), bool)
    )


def mentions(message: str, change: Change) -> bool:
    """Return whether an error message speaks of an argument: its name, its old value or its new one."""
    return names(message, change) or bool(words(message) & (_value_words(change.old) | _value_words(change.new)))


def names(message: str, change: Change) -> bool:
    """Return whether an error message speaks of an argument by a word of its name."""
    last = change.name.rsplit(".", 1)[-1]
    spoken = words(re.sub(r"([a-z])([A-Z])", r"\1 \2", last).replace("_", " "))
    return bool(words(message) & spoken) or (bool(last) and _stands_in(last, message))


def holds(message: str, value: object) -> bool:
    """Return whether a value stands in an error message as a word of its own."""
    return value is not None and not isinstance(value, bool) and _stands_in(show(value, 200), message)


def share_words(one: str, other: str) -> bool:
    """Return whether two texts have a telling word in common."""
    return bool(words(one) & words(other))


def words(text: str) -> set[str]:
    """Return the telling words and numbers of a text."""
    return {word.lower() for word in _WORD.findall(text)} - _LITTLE


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


def _flat(arguments: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten arguments, save those that are nested here and plain in the other call, or the reverse."""
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in other and _nested(value) != _nested(other[name]):
            flat[str(name)] = value
        else:
            flat.update(leaves(value, str(name)))
    return flat


def _nested(value: object) -> str:
    return "list" if isinstance(value, (list, tuple)) else "object" if isinstance(value, Mapping) else ""


def _stands_in(text: str, message: str) -> bool:
    return bool(text) and re.search(rf"(?<![A-Za-z0-9_]){re.escape(text)}(?![A-Za-z0-9_])", message) is not None


def _value_words(value: object) -> set[str]:
    return set() if value is None else words(show(value, 200).replace("_", " "))


def _clean(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value
