"""Error → change → success: the places in a trace where something failed and then worked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memories.enums import FailureClass
from reflection.distill.calls import Attempt, attempts
from reflection.distill.changes import Change, changed_arguments, explains, same_arguments
from reflection.distill.wording import generalise, leaves, one_line
from reflection.forms import TraceForm

HORIZON = 15  # attempts after a failure in which its fix is looked for
SWITCH_HORIZON = 3  # attempts after a failure in which another tool may stand in
_NAME_WORD = re.compile(r"[a-z]+|[\u3400-\u9fff]{2,}")
_BY = re.compile(r"_?(?:by|via|from|using|with)_.*$")


@dataclass(frozen=True, slots=True)
class Pair:
    """A failure with what was changed and the success that followed.

    `kind` is "changed" (same tool, other arguments), "prepared" (`through` was done first, then the
    same call worked) or "switched" (another tool did it). `failures` counts calls that met this error.
    """

    kind: str
    failed: Attempt
    fixed: Attempt
    changes: tuple[Change, ...] = ()
    through: Attempt | None = None
    failures: int = 1

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
    """Sort every failed call of a trace into fixed, passing and unresolved."""
    made = attempts(trace)
    pairs: list[Pair] = []
    passing: list[Passing] = []
    recovered: list[Attempt] = []
    unresolved: list[Attempt] = []
    for index, failed in enumerate(made):
        if failed.error is None:
            continue
        outcome = _what_became(failed, made[index + 1 :])
        if isinstance(outcome, Pair):
            pairs.append(outcome)
        elif isinstance(outcome, Passing):
            passing.append(outcome)
        elif any(later.tool == failed.tool and later.succeeded for later in made[index + 1 :]):
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
        if same_arguments(failed.arguments, attempt.arguments):
            through = _prepared_by(later[:place], failed)
            if transient or through is None:
                return Passing(failed, attempt)
            return Pair("prepared", failed, attempt, through=through)
        if not transient and explains(failed, attempt, message):
            return Pair("changed", failed, attempt, changed_arguments(failed.arguments, attempt.arguments))
    if transient:
        return Passing(failed, None)
    return _switched(failed, later)


def _prepared_by(between: Sequence[Attempt], failed: Attempt) -> Attempt | None:
    """Return the last change made between a failure and the same call working, or None."""
    return next(
        (
            attempt
            for attempt in reversed(between)
            if attempt.changes_state
            and attempt.error is None
            and not (attempt.tool == failed.tool and same_arguments(attempt.arguments, failed.arguments))
        ),
        None,
    )


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
    of the name in common, or the same value asked for. A tool that changes something must have been
    given the same input throughout.
    """
    if failed.call is None or other.call is None or failed.changes_state != other.changes_state:
        return False
    asked = {str(value) for _, value in leaves(failed.arguments) if value not in (None, "")}
    given = {str(value) for _, value in leaves(other.arguments) if value not in (None, "")}
    if failed.changes_state:
        return bool(given) and given <= asked
    mine, theirs = _name_words(failed.tool), _name_words(other.tool)
    same_end = len(mine & theirs) >= 2 and len(mine & theirs) >= len(mine | theirs) - 2
    return same_end or any(len(value) > 3 and value in " ".join(given) for value in asked)


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
