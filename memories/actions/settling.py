"""Deciding a contradiction: by a person, or by two independent traces; and taking the decision back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, FieldError, Invalid
from memories.actions.changing import change, governed
from memories.actions.relating import relate
from memories.confidence import Belief
from memories.enums import RelationKind, Resolution, Status, Trust
from memories.models import Evidence, Memory, Relation, Settlement
from memories.policies import LIVE, is_trusted
from memories.sources import source_of

SETTLING_TRACES = 2
BY_TRACES = audit.system("two independent traces")
SETTLED = "settled a conflict"  # the note of the edge that a settlement draws


@transaction.atomic
def settle_conflict(
    *, team: Team, by: Actor, conflict: Relation, decision: str, condition: str = "", note: str = ""
) -> Settlement:
    """Decide which side of a `contradicts` edge holds; left is its target, which stood there first.

    The loser becomes `superseded` and an edge says by what. For `both`, `condition` says when each holds.
    Raises `Invalid` for a decision that is none, `Conflict` when it is settled already.
    """
    _check(decision, condition)
    before = audit.state_of(conflict)
    left, right = _locked_sides(team, conflict)
    now = timezone.now()
    open_ = Relation.objects.of(team).filter(pk=conflict.pk, kind=RelationKind.CONTRADICTS, settled_at=None)
    if not open_.update(settled_at=now):
        raise Conflict("This conflict is settled already. Undo that first to decide again.", code="already_settled")
    conflict.settled_at = now
    was = {"left": governed(left), "right": governed(right)}
    _carry_out(team, by, left, right, decision)
    settlement = Settlement.objects.create(
        team=team, conflict=conflict, decision=decision, condition=condition.strip(), note=note.strip(), before=was,
        after={"left": _state(left), "right": _state(right)}, actor_kind=by.kind, actor_label=by.label,
    )  # fmt: skip
    audit.record(
        team=team,
        by=by,
        verb="conflict.settled",
        on=conflict,
        before=before,
        detail={"decision": decision, "left": str(left.pk), "right": str(right.pk), "has_note": bool(note)},
    )
    return settlement


def _check(decision: str, condition: str) -> None:
    if decision not in Resolution.values:
        message = f"must be one of: {', '.join(Resolution.values)}."
        raise Invalid(f"decision {message}", errors=(FieldError("decision", message),))
    if decision == Resolution.BOTH and not condition.strip():
        message = "must say when each of both holds, such as “until version 4” or “for guests”."
        raise Invalid(f"condition {message}", errors=(FieldError("condition", message, "required"),))


def _locked_sides(team: Team, conflict: Relation) -> tuple[Memory, Memory]:
    """Left and right as they stand now, held until this transaction ends."""
    ids = [conflict.target_id, conflict.source_id]
    rows = Memory.objects.of(team).filter(pk__in=ids).order_by("pk").select_for_update(no_key=True)
    sides = {memory.pk: memory for memory in rows}
    return sides[ids[0]], sides[ids[1]]


def _carry_out(team: Team, by: Actor, left: Memory, right: Memory, decision: str) -> None:
    if decision == Resolution.BOTH:
        for each in (left, right):
            _unflag(team, by, each)
    elif decision == Resolution.NEITHER:
        for each in (left, right):
            _lose(team, by, each, Status.DEMOTED)
    else:
        winner, loser = (left, right) if decision == Resolution.KEEP_LEFT else (right, left)
        _lose(team, by, loser, Status.SUPERSEDED)
        _unflag(team, by, winner, held=True)
        relate(team=team, by=by, source=winner, target=loser, kind=RelationKind.SUPERSEDES, note=SETTLED)


def _lose(team: Team, by: Actor, memory: Memory, status: str) -> None:
    values: dict[str, Any] = {**_observed(memory, success=False), "needs_review": False}
    if memory.status in LIVE:
        values["status"] = status
    change(team=team, by=by, memory=memory, verb=f"memory.{status}", values=values, detail={"reason": SETTLED})


def _unflag(team: Team, by: Actor, memory: Memory, *, held: bool = False) -> None:
    """Take the flag away unless something else holds it: another conflict, or a gate."""
    values: dict[str, Any] = _observed(memory, success=True) if held else {}
    if memory.status != Status.CANDIDATE and not open_edges(team).filter(touching(memory)).exists():
        values["needs_review"] = False
    if all(getattr(memory, name) == value for name, value in values.items()):
        return
    change(team=team, by=by, memory=memory, verb="memory.uncontested", values=values, detail={"reason": SETTLED})


def touching(memory: Memory) -> Q:
    """Edges at either end of which the memory stands."""
    return Q(source=memory) | Q(target=memory)


def open_edges(team: Team) -> QuerySet[Relation]:
    """The contradictions of a team that nobody has settled and whose two sides are both live."""
    return Relation.objects.of(team).filter(
        kind=RelationKind.CONTRADICTS, settled_at=None, source__status__in=LIVE, target__status__in=LIVE
    )


def _observed(memory: Memory, *, success: bool) -> dict[str, float]:
    belief = Belief(memory.alpha, memory.beta).observe(success=success)
    return {"alpha": belief.alpha, "beta": belief.beta, "confidence": belief.mean}


def _state(memory: Memory) -> dict[str, Any]:
    return {**governed(memory), "updated_at": memory.updated_at.isoformat()}


def settle_by_traces(*, team: Team, memory: Memory) -> list[Settlement]:
    """Settle the conflicts of `memory` that two independent traces decide for it.

    They do when the last two traces to speak of the matter both say what this memory says. What a person
    or an outcome stands behind is never overruled by traces: that waits for a person.
    """
    # What a person opened again is a person's to decide.
    untouched = open_edges(team).filter(touching(memory)).exclude(settlements__undone_at__isnull=False)
    edges = list(untouched.select_related("source", "target"))
    if not edges or memory.trust == Trust.EXTERNAL:  # third-party text settles nothing by itself
        return []
    settled = []
    for edge in edges:
        is_left = edge.target_id == memory.pk
        other = edge.source if is_left else edge.target
        if is_trusted(other) and not is_trusted(memory):
            continue
        if _traces_after(team, memory, other) >= SETTLING_TRACES:
            decision = Resolution.KEEP_LEFT if is_left else Resolution.KEEP_RIGHT
            settled.append(settle_conflict(team=team, by=BY_TRACES, conflict=edge, decision=decision))
    if settled:
        memory.refresh_from_db()
    return settled


def _traces_after(team: Team, memory: Memory, other: Memory) -> int:
    """How many traces first spoke for `memory` after the last one that spoke for `other`."""
    ours, theirs = _first_heard(team, memory), _first_heard(team, other)
    last = max(theirs.values(), default=None)
    return sum(source not in theirs and (last is None or first > last) for source, first in ours.items())


def _first_heard(team: Team, memory: Memory) -> dict[str, datetime]:
    """When each independent source first spoke for a memory."""
    rows = Evidence.objects.of(team).filter(memory=memory, trace_id__isnull=False).order_by("-created_at")
    rows = rows.filter(Q(removed_at=None) | Q(step_id=None))  # not what stood under an earlier text
    return {
        source_of(trace_id, digest): at
        for trace_id, digest, at in rows.values_list("trace_id", "trace_digest", "created_at")
    }


@transaction.atomic
def undo_settlement(*, team: Team, by: Actor, conflict: Relation) -> Settlement:
    """Take the standing decision back: both memories as they were, the conflict open again.

    Raises `Conflict` when there is none, or when a side has changed since: its change would be lost.
    """
    settlement = Settlement.objects.of(team).filter(conflict=conflict, undone_at=None).first()
    if settlement is None:
        raise Conflict("Nobody has settled this conflict: there is nothing to undo.", code="nothing_to_undo")
    before = audit.state_of(conflict)
    left, right = _locked_sides(team, conflict)
    if not Settlement.objects.of(team).filter(pk=settlement.pk, undone_at=None).update(undone_at=timezone.now()):
        raise Conflict("Somebody undid this at the same moment.", code="nothing_to_undo")
    edges = Relation.objects.of(team).filter(kind=RelationKind.SUPERSEDES, note=SETTLED)
    edges.filter(Q(source=left, target=right) | Q(source=right, target=left)).delete()
    conflict.settled_at = None
    conflict.save(update_fields=["settled_at"])
    for name, memory in (("left", left), ("right", right)):
        _put_back(team, by, memory, settlement.before[name], settlement.after[name])
    audit.record(
        team=team,
        by=by,
        verb="conflict.reopened",
        on=conflict,
        before=before,
        detail={"decision": settlement.decision},
    )
    settlement.refresh_from_db()
    return settlement


def _put_back(team: Team, by: Actor, memory: Memory, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Back to `before`, keeping the feedback that came since: only what the decision counted is taken off."""
    if memory.updated_at.isoformat() != after["updated_at"]:
        raise Conflict(
            "One of the two memories has changed since this was settled: an undo would take that change back too. "
            "Change the memory on its own page.",
            code="changed_since",
        )
    alpha = memory.alpha - (after["alpha"] - before["alpha"])
    beta = memory.beta - (after["beta"] - before["beta"])
    approved_at = before["approved_at"]
    values = {
        **before,
        "alpha": alpha,
        "beta": beta,
        "confidence": Belief(alpha, beta).mean,
        "approved_at": parse_datetime(approved_at) if approved_at else None,
    }
    change(team=team, by=by, memory=memory, verb="memory.verdict_undone", values=values)
