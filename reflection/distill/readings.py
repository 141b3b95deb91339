"""Reading one changed argument: what in the change answers the error, told without the run's own values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reflection.distill.calls import Attempt
from reflection.distill.changes import Change, holds, mentions, names, share_words
from reflection.distill.commands import CommandFix
from reflection.distill.placeholders import is_setting, looks_like_id, stem
from reflection.distill.shapes import Shape, respelt, shape_of
from reflection.distill.stated import (
    allowed_values,
    does_not_know,
    forbids,
    is_taken,
    misses,
    not_found,
    speaks_of_input,
    states_rule,
    wants_less,
    wants_more,
)
from reflection.distill.wording import leaves

_WHOLE = re.compile(r"\binteger|\bwhole\b|\bint\b|整数", re.IGNORECASE)
_ID_NAME = re.compile(r"(?:^|_|\.)(?:id|ids|number|no|key|token)$|Id$|编号$|单号$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fix:
    """What put a call right. `kind` is a key of `phrasing`'s tables; `changes` are the arguments it is about.

    `values` are the values that the error allows, or the lines that came into a script; `instead` those
    that went; `shapes` the forms of the old and the new value; `lookup` the tool that gave the new value.
    """

    kind: str
    changes: tuple[Change, ...] = ()
    values: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    shapes: tuple[Shape | None, Shape] | None = None
    lookup: str = ""
    command: CommandFix | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """The error of the failing call, and what was called between it and the success."""

    message: str
    between: Sequence[Attempt] = ()


def read(change: Change, case: Case) -> Fix | None:
    """Return the first reading of a change that holds, or None: then nothing ties it to the error."""
    if change.old is None or change.new is None:
        return None if "[" in change.path else _added_or_dropped(change, case)
    return next((fix for reading in _READINGS if (fix := reading(change, case)) is not None), None)


def _added_or_dropped(change: Change, case: Case) -> Fix | None:
    named = names(case.message, change)
    if change.old is None:
        return Fix("needed" if misses(case.message) else "added", (change,)) if named else None
    if does_not_know(case.message):
        return Fix("refused", (change,)) if named else None
    return Fix("dropped", (change,)) if named else None


def _typed(change: Change, case: Case) -> Fix | None:
    old, new = type_name(change.old), type_name(change.new)
    if old == new == "number" and _WHOLE.search(case.message):
        whole = _is_whole(change.new) and not _is_whole(change.old)
        return Fix("typed", (change,), values=("whole number", "fraction")) if whole else None
    if old == new or not _about_its_form(change, case):
        return None
    asks_whole = new == "number" and _is_whole(change.new) and _WHOLE.search(case.message)
    return Fix("typed", (change,), values=("whole number" if asks_whole else new, old))


def _shaped(change: Change, case: Case) -> Fix | None:
    """The value was written in another form, and that form is one that a tool may ask for."""
    old, new = shape_of(change.old), shape_of(change.new)
    if new is None or not new.demanded or old == new or str(change.new) in allowed_values(case.message):
        return None
    if new.hint is not None and not new.hint.search(case.message):
        return None
    if re.sub(r"\d", "0", str(change.old)) == re.sub(r"\d", "0", str(change.new)):
        return None  # the same form with other digits
    if not_found(case.message) and not (new.dated and names(case.message, change)):
        return None
    # Free text that gave way to a date is another thing asked for, not the same one in another form.
    same_thing = old is not None or mentions(case.message, change)
    if not (same_thing and _about_its_form(change, case)):
        return None
    return Fix("shaped", (change,), shapes=(old, new))


def _respelt(change: Change, case: Case) -> Fix | None:
    how = respelt(change.old, change.new)
    tied = how is not None and (_about_its_form(change, case) or not_found(case.message))
    return Fix("respelt", (change,), values=how) if tied and how else None


def _allowed(change: Change, case: Case) -> Fix | None:
    allowed = allowed_values(case.message)
    fits = str(change.new) in allowed and str(change.old) not in allowed
    return Fix("allowed", (change,), values=allowed) if fits else None


def _offered(change: Change, case: Case) -> Fix | None:
    """The error itself names the value that worked."""
    if isinstance(change.new, (int, float)) or not holds(case.message, change.new):
        return None
    if len(str(change.new)) < 3 or str(change.new) in str(change.old):
        return None
    if is_setting(change.new, change.name):
        return Fix("suggested", (change,))
    return Fix("listed" if re.search(r"\[[^\]]*,|,[^,]+,|、.+、", case.message) else "told", (change,))


def _looked_up(change: Change, case: Case) -> Fix | None:
    """The new value came out of a call that was made for it after the error."""
    if not isinstance(change.new, str) or len(change.new) < 3 or holds(case.message, change.new):
        return None
    if not (not_found(case.message) or names(case.message, change)):
        return None
    for attempt in reversed(case.between):
        if attempt.result is None or not attempt.succeeded or attempt.changes_state:
            continue
        asked = [str(value) for _, value in leaves(attempt.arguments)]
        meant = looks_like_id(change.new, change.name) or share_words(
            attempt.tool.replace("_", " "), change.name.replace("_", " ")
        )
        if meant and change.new not in asked and holds(attempt.result.content, change.new):
            return Fix("looked_up", (change,), lookup=attempt.tool)
    return None


def _numbered(change: Change, case: Case) -> Fix | None:
    if type_name(change.old) != "number" or type_name(change.new) != "number":
        return None
    if states_rule(case.message) and mentions(case.message, change) and holds(case.message, change.new):
        return Fix("limited", (change,))
    if change.new < change.old and wants_less(case.message):
        return Fix("smaller", (change,))
    if change.new > change.old and wants_more(case.message):
        return Fix("larger", (change,))
    return None


def _swapped(change: Change, case: Case) -> Fix | None:
    """One setting in place of another, or an id of another sort (a gift card for a certificate)."""
    message = case.message
    if not_found(message) or is_taken(message) or forbids(message) or not mentions(message, change):
        return None
    sorts = stem(change.old), stem(change.new)
    if all(sorts) and sorts[0] != sorts[1]:
        return Fix("swapped", (change,))
    settings = is_setting(change.old, change.name) and is_setting(change.new, change.name)
    return Fix("swapped", (change,)) if settings else None


def _reworded(change: Change, case: Case) -> Fix | None:
    """A search for the same thing in fewer words. In more words it may be for another thing."""
    if not (isinstance(change.old, str) and isinstance(change.new, str) and not_found(case.message)):
        return None
    if looks_like_id(change.new, change.name):
        return None
    before, after = change.old.lower().split(), change.new.lower().split()
    fewer = len(before) > len(after) >= 1 and set(after) <= set(before)
    return Fix("shortened", (change,)) if fewer else None


def _strict(change: Change, case: Case) -> Fix | None:
    """The error states a rule for the argument it names; what the value became is this run's business."""
    message = case.message
    if not_found(message) or is_taken(message) or not states_rule(message) or not names(message, change):
        return None
    other_thing = _ID_NAME.search(change.name) or looks_like_id(change.new, change.name)
    return None if other_thing else Fix("strict", (change,))


_READINGS: tuple[Callable[[Change, Case], Fix | None], ...] = (
    _typed,
    _shaped,
    _respelt,
    _allowed,
    _offered,
    _looked_up,
    _numbered,
    _swapped,
    _reworded,
    _strict,
)


def _about_its_form(change: Change, case: Case) -> bool:
    """Return whether an error speaks of the argument, or of bad input in general."""
    return names(case.message, change) or holds(case.message, change.old) or speaks_of_input(case.message)


def type_name(value: object) -> str:
    """Return the sort of a JSON value: truth value, number, list, object or string."""
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, (list, tuple)):
        return "list"
    return "object" if hasattr(value, "keys") else "string"


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, float)) and float(value).is_integer()
