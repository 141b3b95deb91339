"""Holding a memory back, and what a person decides about it. Every case keeps its reason and can be undone."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict
from memories import indexing
from memories.actions.changing import change, governed
from memories.enums import QuarantineDecision, QuarantineRule, Status
from memories.models import Memory, QuarantineCase
from memories.safety.planted import SCREENED, planted
from memories.safety.screening import screen

MOST_FINDINGS = 20


@transaction.atomic
def quarantine(*, team: Team, by: Actor, memory: Memory, reason: str, rule: str = QuarantineRule.BY_PERSON) -> Memory:
    """Take a memory out of recall until a person has looked at it."""
    if memory.status == Status.QUARANTINED:
        return memory
    values = {"status": Status.QUARANTINED, "needs_review": True}
    change(
        team=team,
        by=by,
        memory=memory,
        verb="memory.quarantined",
        values=values,
        detail={"reason": reason, "rule": rule},
    )
    open_case(team=team, by=by, memory=memory, reason=reason, rule=rule)
    return memory


def open_case(*, team: Team, by: Actor, memory: Memory, reason: str, rule: str = "") -> QuarantineCase:
    """Write down why a memory is held back, by which rule, and where in its text that shows.

    Without a `rule` it is screening's: its own words, or the step that it rests on.
    """
    verdict = screen(memory.content, channel="memory")
    if not rule:
        own = planted({name: getattr(memory, name) for name in SCREENED})
        rule = QuarantineRule.SCREENING if own else QuarantineRule.SUSPICIOUS_STEP
    is_screening = rule == QuarantineRule.SCREENING or (rule == QuarantineRule.BY_PERSON and verdict.suspicious)
    findings = [
        {"name": signal.name, "start": signal.span[0], "end": signal.span[1]}
        for signal in verdict.signals[:MOST_FINDINGS]
    ]
    return QuarantineCase.objects.create(
        team=team,
        memory=memory,
        rule=QuarantineRule.SCREENING if is_screening else rule,
        reason=reason[:500],
        channel="memory" if is_screening else "step" if rule == QuarantineRule.SUSPICIOUS_STEP else "",
        findings=findings if is_screening else [],
        actor_kind=by.kind,
        actor_label=by.label,
    )


@transaction.atomic
def release(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """A person looked at a quarantined memory and found it harmless.

    It becomes a candidate with the trust it had, still to be reviewed: harmless is not yet true.
    """
    values = {"status": Status.CANDIDATE, "needs_review": True}
    return _decide(team, by, memory, QuarantineDecision.RELEASED, values, reason, note)


@transaction.atomic
def reject(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """A person looked at a quarantined memory and refused it for good."""
    values = {"status": Status.REJECTED, "needs_review": False}
    return _decide(team, by, memory, QuarantineDecision.REJECTED, values, reason, note)


def _decide(
    team: Team, by: Actor, memory: Memory, decision: str, values: dict[str, Any], reason: str, note: str
) -> Memory:
    if memory.status != Status.QUARANTINED:
        raise Conflict(
            f"This memory is {memory.get_status_display().lower()}, not quarantined: there is nothing to decide.",
            code="invalid_transition",
        )
    before = governed(memory)
    change(
        team=team,
        by=by,
        memory=memory,
        verb=f"memory.{decision}",
        values=values,
        detail={"has_note": bool(note)},
        reason=reason,
    )
    close_case(team=team, by=by, memory=memory, decision=decision, note=note or reason, before=before)
    return memory


def close_case(
    *, team: Team, by: Actor, memory: Memory, decision: str, note: str = "", before: dict[str, Any] | None = None
) -> None:
    """Write down what became of the open case of a memory, where there is one."""
    QuarantineCase.objects.of(team).filter(memory=memory, decision="").update(
        decision=decision,
        note=note[:300],
        decided_by=by.label[:254],
        decided_at=timezone.now(),
        before=before or {},
        after={"updated_at": memory.updated_at.isoformat()},
    )


@transaction.atomic
def undo_quarantine_decision(*, team: Team, by: Actor, memory: Memory) -> Memory:
    """Put a released or rejected memory back into quarantine, as long as nobody changed it since."""
    case = QuarantineCase.objects.of(team).filter(memory=memory).order_by("-created_at", "-pk").first()
    if case is None or case.decision not in (QuarantineDecision.RELEASED, QuarantineDecision.REJECTED):
        raise Conflict("Nobody has decided about this memory: there is nothing to undo.", code="nothing_to_undo")
    if case.after.get("updated_at") != memory.updated_at.isoformat():
        raise Conflict(
            "This memory has changed since it was decided; change it on its own page instead.", code="changed_since"
        )
    values = {"status": Status.QUARANTINED, "needs_review": True}
    change(team=team, by=by, memory=memory, verb="memory.verdict_undone", values=values)
    back_in_quarantine(team=team, memory=memory)
    return memory


def back_in_quarantine(*, team: Team, memory: Memory) -> None:
    """A decision was undone: its case is open again. A rejected memory had lost its search rows."""
    case = QuarantineCase.objects.of(team).filter(memory=memory).order_by("-created_at", "-pk").first()
    if case is not None and case.decision:
        QuarantineCase.objects.of(team).filter(pk=case.pk).update(
            decision="", note="", decided_by="", decided_at=None, before={}, after={}
        )
    indexing.index(team, [memory])
