"""How a call was put right: the one thing between a failing call and a working one that explains both.

A later success of the same tool is a fix only when something ties it to the error: the error names the
argument or its value, or the same value was written another way. Everything else is another errand, and
gives no lesson.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from memories.enums import FailureClass
from reflection.distill.calls import Attempt, command_of
from reflection.distill.changes import Change, changed_arguments, edited_lines, mentions, names, words
from reflection.distill.commands import command_fix, cuts_output
from reflection.distill.failures import classify
from reflection.distill.readings import Case, Fix, read, type_name
from reflection.distill.stated import does_not_know, misses
from reflection.distill.wording import one_line

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MISSING_NAME = re.compile(r"name '(?P<name>\w+)' is not defined|\b(?P<other>\w+) is not defined")
_WRITTEN = ("code", "message")  # what a call without arguments was asked in: a script or prose
_LINES = 3  # of an edit that is told
_EDIT_CHARS = 200
_ALIKE = 0.6  # of two lines, from which one reads as an edit of the other
_SEVERAL = ("added", "needed", "dropped", "refused")  # told of all the arguments they are true of


def find_fix(failed: Attempt, fixed: Attempt, message: str, between: Sequence[Attempt]) -> Fix | None:
    """Return how `fixed` puts `failed` right, whose error was `message`, or None when it does not.

    `between` are the attempts between the two, where the new value may have been looked up.
    """
    old, new = (command_of(attempt.tool, attempt.arguments) for attempt in (failed, fixed))
    if old is not None and new is not None and "code" not in failed.arguments:
        return _command_fix(old, new, message, fixed)
    changes = changed_arguments(failed.arguments, fixed.arguments)
    if any(change.name in _WRITTEN for change in changes) and set(failed.arguments) <= set(_WRITTEN):
        return _script_fix(changes, message)
    if renamed := _renamed(changes, message):
        return renamed
    if gap := next((change for change in changes if _fits_gap(message, change)), None):
        return Fix("gap", (gap,))
    named = [change for change in changes if mentions(message, change)]
    about = named or (list(changes) if len(changes) == 1 else [])
    found = [fix for change in about if (fix := read(change, Case(message, between))) is not None]
    return _together(found) if found else None


def _together(found: Sequence[Fix]) -> Fix:
    """Return the first fix, with the other arguments that were added or dropped like it."""
    first = found[0]
    if first.kind in _SEVERAL:
        return Fix(first.kind, tuple(fix.changes[0] for fix in found if fix.kind == first.kind))
    return first


def _renamed(changes: Sequence[Change], message: str) -> Fix | None:
    """The same value under another name."""
    for old in changes:
        tied = old.new is None and (names(message, old) or does_not_know(message) or misses(message))
        if not tied or old.old in ("", 0, 1):  # too common to be known again; true and false equal 1 and 0
            continue
        for new in changes:
            if new.old is None and new.new == old.old and "[" not in new.path + old.path:
                return Fix("renamed", (old, new))
    return None


def _fits_gap(message: str, change: Change) -> bool:
    """Return whether a number moved by exactly the gap between two numbers in the error message."""
    if type_name(change.old) != "number" or type_name(change.new) != "number":
        return False
    numbers = {float(found) for found in _NUMBER.findall(message)}
    gaps = {round(abs(a - b), 2) for a in numbers for b in numbers if a != b}
    # A number that the error itself names was set to it, or was it, and did not move by a gap.
    told = {float(change.old), float(change.new)} & numbers
    return not told and round(abs(change.new - change.old), 2) in gaps


def _command_fix(old: str, new: str, message: str, fixed: Attempt) -> Fix | None:
    """Read a change of a command; one whose output is cut off must not look like a failure either."""
    found = command_fix(old, new, message)
    shown = fixed.result.content if fixed.result is not None else ""
    if found is None or (cuts_output(new) and classify(shown) != FailureClass.NONE):
        return None
    return Fix("command", command=found)


def _script_fix(changes: Sequence[Change], message: str) -> Fix | None:
    """Read an edit of a script: an import that was missing, or few lines that the error speaks of."""
    change = next((c for c in changes if c.name == "code"), None)
    if change is None or not (isinstance(change.old, str) and isinstance(change.new, str)):
        return None
    gone, came = edited_lines(change.old, change.new)
    missing = _MISSING_NAME.search(message)
    if missing is not None:
        name = missing["name"] or missing["other"]
        brings = re.compile(rf"(?:from\b.*)?\bimport\b.*\b{re.escape(name)}\b")
        imports = [line for line in came if brings.match(line)]
        if imports:
            return Fix("edited", (change,), values=(imports[0],))
    few = len(came) + len(gone) <= _LINES and len("".join(gone + came)) <= _EDIT_CHARS
    if not (came and few and words(message) & words(" ".join(came))):
        return None
    if not gone or _alike("\n".join(gone), "\n".join(came)):
        return Fix("edited", (change,), tuple(map(one_line, came)), tuple(map(one_line, gone)))
    return None


def _alike(old: str, new: str) -> bool:
    """Return whether a line was edited rather than replaced."""
    return difflib.SequenceMatcher(None, old, new).ratio() >= _ALIKE
