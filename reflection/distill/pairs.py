"""Error → change → success: the places in a trace where something failed and then worked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memories.enums import FailureClass
from reflection.distill.calls import Attempt, attempts, command_of
from reflection.distill.changes import Change, changed_arguments, same_arguments
from reflection.distill.commands import program, same_command
from reflection.distill.fixes import find_fix
from reflection.distill.placeholders import generalise
from reflection.distill.readings import Fix
from reflection.distill.setups import mends, prepares
from reflection.distill.wording import leaves, one_line
from reflection.forms import TraceForm

HORIZON = 15  # attempts after a failure in which its fix is looked for
SWITCH_HORIZON = 3  # attempts after a failure in which another tool may stand in
PREPARED_BY = 2  # calls at most that made the same call work; after more of them none can be named
_NAME_WORD = re.compile(r"[a-z]+|[\u3400-\u9fff]{2,}")
_BY = re.compile(r"_?(?:by|via|from|using|with)_.*$")


@dataclass(frozen=True, slots=True)
class Pair:
    """A failure with what was changed and the success that followed.

    `kind` is "changed" (same tool, put right by `fix`), "prepared" (`through` was done first, then the
    same call worked) or "switched" (another tool did it). `failures` counts calls that met this error.
    """

    kind: str
    failed: Attempt
    fixed: Attempt
    fix: Fix | None = None
    through: tuple[Attempt, ...] = ()
    failures: int = 1

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every argument that differs between the two calls."""
        return changed_arguments(self.failed.arguments, self.fixed.arguments) if self.kind == "changed" else ()

    @property
    def message(self) -> str:
        """The error's own words, verbatim."""
        return error_message(self.failed)


@dataclass(frozen=True, slots=True)
class Passing:
    """A failure that passed by itself: the same call, made again, worked (`again`), or its words say so."""

    failed: Attempt
    again: Attempt | None


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that failed in a trace, sorted by what became of it.

    `recovered` failures were followed by a success of the same tool that explains nothing (another
    thing was looked up); `unresolved` ones were never made good.
    """

    attempts: tuple[Attempt, ...]
    pairs: tuple[Pair, ...] = ()
    passing: tuple[Passing, ...] = ()
    recovered: tuple[Attempt, ...] = ()
    unresolved: tuple[Attempt, ...] = field(default=())


def error_message(attempt: Attempt) -> str:
    """Return the words of an attempt's error on one line, or ""."""
    if attempt.error is None or attempt.result is None:
        return ""
    return one_line(attempt.result.text[attempt.error.start : attempt.error.end])


def find_pairs(trace: TraceForm) -> Findings:
    """Sort every failed call of a trace into fixed, passing, recovered and unresolved."""
    made = attempts(trace)
    pairs: list[Pair] = []
    passing: list[Passing] = []
    recovered: list[Attempt] = []
    unresolved: list[Attempt] = []
    last_success = {_what(attempt): index for index, attempt in enumerate(made) if attempt.succeeded}
    for index, failed in enumerate(made):
        if failed.error is None:
            continue
        outcome = _what_became(failed, made[index + 1 :])
        if isinstance(outcome, Pair):
            pairs.append(outcome)
        elif isinstance(outcome, Passing):
            passing.append(outcome)
        elif last_success.get(_what(failed), -1) > index:
            recovered.append(failed)
        else:
            unresolved.append(failed)
    return Findings(made, _merged(pairs), tuple(passing), tuple(recovered), tuple(unresolved))


def _what_became(failed: Attempt, later: Sequence[Attempt]) -> Pair | Passing | None:
    transient = failed.error is not None and failed.error.failure_class == FailureClass.TRANSIENT
    message = error_message(failed)
    for place, attempt in enumerate(later[:HORIZON]):
        if attempt.tool != failed.tool or not attempt.succeeded:
            continue
        if _same_call(failed, attempt):
            return _worked_again(failed, attempt, later[:place], transient)
        fix = None if transient else find_fix(failed, attempt, message, later[:place])
        if fix is not None:
            return Pair("changed", failed, attempt, fix)
    if transient:
        return Passing(failed, None)
    return _switched(failed, later)


def _worked_again(
    failed: Attempt, again: Attempt, between: Sequence[Attempt], transient: bool
) -> Pair | Passing | None:
    """The same call worked: by itself, or after something was done; None when it cannot be told what."""
    done = [
        attempt
        for attempt in between
        if attempt.changes_state and attempt.error is None and not _same_call(attempt, failed)
    ]
    if transient or not done:
        return Passing(failed, again)
    if any(mends(attempt) for attempt in done):
        return None
    through = tuple(attempt for attempt in done if prepares(attempt, failed, error_message(failed)))
    return Pair("prepared", failed, again, through=through) if 0 < len(through) <= PREPARED_BY else None


def _same_call(one: Attempt, other: Attempt) -> bool:
    """Return whether two attempts made the same call; of a command, however much output it shows."""
    if one.tool != other.tool:
        return False
    first, second = (command_of(attempt.tool, attempt.arguments) for attempt in (one, other))
    if first is not None and second is not None and same_command(first, second):
        return True
    return same_arguments(one.arguments, other.arguments)


def _what(attempt: Attempt) -> tuple[str, str]:
    """Return what an attempt used: its tool, and the program where a shell ran it."""
    command = command_of(attempt.tool, attempt.arguments)
    return attempt.tool, program(command) if command is not None else ""


def _switched(failed: Attempt, later: Sequence[Attempt]) -> Pair | None:
    """Return the pair in which another tool did what the failed one could not."""
    if any(a.tool == failed.tool and a.succeeded for a in later):
        return None
    for attempt in later[:SWITCH_HORIZON]:
        if attempt.tool != failed.tool and attempt.succeeded and _stands_in(failed, attempt):
            return Pair("switched", failed, attempt)
    return None


def _stands_in(failed: Attempt, other: Attempt) -> bool:
    """Return whether another tool was used for the same end.

    Reading tools stand in when they look for the same thing: the same stem before "by" or most words
    of the name in common, or the same value asked for by a tool that the name or the error points to.
    A tool that changes something must have been given the same input throughout.
    """
    if failed.call is None or other.call is None or failed.changes_state != other.changes_state:
        return False
    asked = {str(value) for _, value in leaves(failed.arguments) if value not in (None, "")}
    given = {str(value) for _, value in leaves(other.arguments) if value not in (None, "")}
    if failed.changes_state:
        return bool(given) and given <= asked
    mine, theirs = _name_words(failed.tool), _name_words(other.tool)
    same_end = len(mine & theirs) >= 2 and len(mine & theirs) >= len(mine | theirs) - 2
    message = error_message(failed).lower()
    pointed_to = bool(mine & theirs) or any(len(word) > 3 and word in message for word in theirs)
    return same_end or (pointed_to and any(len(value) > 3 and value in " ".join(given) for value in asked))


def _name_words(tool: str) -> set[str]:
    return set(_NAME_WORD.findall(_BY.sub("", tool.lower())))


def _merged(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Keep one pair per tool and error: the last failure before the fix, with the count of failures."""
    kept: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        key = (pair.failed.tool, re.sub(r"\d+", "#", generalise(pair.message, {})))
        earlier = kept.pop(key, None)
        kept[key] = replace(pair, failures=pair.failures + (earlier.failures if earlier else 0))
    return tuple(kept.values())
