"""One action on many items of a batch: what it may touch, doing it, and what was left."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team, User
from hindsight_site.refusals import Refused
from reflection.enums import Decision, ItemState, Stratum
from reflection.models import ReviewItem
from reflection.review import turns, verdicts
from reflection.review.batch_table import Line

APPROVE, DEMOTE, CLAIM, TAKE_BACK = "approve", "demote", "claim", "take_back"
ACTIONS = {APPROVE: "Approve", DEMOTE: "Demote", CLAIM: "Claim for me", TAKE_BACK: "Take my verdict back"}
MEASURED = (Stratum.RANDOM, Stratum.CANARY)  # approved one by one, or they would measure nothing


@dataclass(frozen=True, slots=True)
class Left:
    """An item that an action does not touch, and why."""

    item: ReviewItem
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What an action would do to the chosen items."""

    does: tuple[ReviewItem, ...]
    leaves: tuple[Left, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What an action did."""

    done: tuple[ReviewItem, ...]
    leaves: tuple[Left, ...]


def plan(action: str, rows: Sequence[Line]) -> Plan:
    """Sort the chosen rows into those that `action` is for and those that it leaves."""
    reasons = [(row.item, _why_not(action, row)) for row in rows]
    return Plan(
        does=tuple(item for item, why in reasons if not why),
        leaves=tuple(Left(item, why) for item, why in reasons if why),
    )


def _why_not(action: str, row: Line) -> str:
    item = row.item
    if action == TAKE_BACK:
        return "" if row.mine is not None else "you gave no verdict on it"
    if item.state == ItemState.VOID:
        return "the memory is gone"
    if item.state != ItemState.PENDING:
        return "it is decided"
    if row.mine is not None and row.mine.decision != Decision.CANNOT_TELL:
        return "you judged it already"
    if action == APPROVE and item.stratum in MEASURED:
        return "it belongs to the measurement, which takes one look at each memory"
    return ""


def carry_out(
    *, team: Team, by: Actor, reviewer: User, action: str, items: Iterable[ReviewItem], seen: Mapping[uuid.UUID, int],
    reason: str = "", note: str = "",
) -> Done:  # fmt: skip
    """Do `action` to each item by itself: one that is refused leaves the others as they were done.

    `seen` is the revision of each item's memory that was read: words that changed since are not judged.
    """
    one_by_one: dict[str, Callable[[ReviewItem], object]] = {
        APPROVE: lambda item: verdicts.decide(
            team=team, by=by, reviewer=reviewer, item=item, decision=Decision.APPROVE, version=item.version, note=note,
            revision=seen.get(item.pk),
        ),
        DEMOTE: lambda item: verdicts.decide(
            team=team, by=by, reviewer=reviewer, item=item, decision=Decision.DEMOTE, version=item.version,
            reason=reason, note=note, revision=seen.get(item.pk),
        ),
        TAKE_BACK: lambda item: verdicts.undo(team=team, by=by, reviewer=reviewer, item=item),
        CLAIM: lambda item: turns.claim(team, reviewer, item),
    }  # fmt: skip
    done, leaves = [], []
    for item in items:
        try:
            with transaction.atomic():
                took = one_by_one[action](item)
        except Refused as refusal:
            leaves.append(Left(item, refusal.message))
            continue
        if took is False:
            leaves.append(Left(item, "a colleague has it open"))
        else:
            done.append(item)
    return Done(tuple(done), tuple(leaves))
