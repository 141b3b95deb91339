"""People and rules judging a memory: approve, demote, archive, restore, pin, quarantine."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from memories.actions.changing import change, lock
from memories.confidence import Belief
from memories.enums import FailureClass, Kind, Status, Tier, Trust
from memories.models import Memory

LASTING_KINDS = {Kind.FACT, Kind.PREFERENCE, Kind.EXPERIENCE, Kind.RELATION}
# Only what is true beyond one run may become semantic.
LASTING_FAILURES = {FailureClass.NONE, FailureClass.PERMANENT}


@transaction.atomic
def approve(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """A person (or a token with the review scope) says: true, and worth recalling.

    Raises confidence by one observation, lasting kinds become semantic, and a person's word becomes
    the trust. Approving twice counts once.
    """
    if memory.approved_at and memory.status == Status.ACTIVE and not memory.needs_review:
        return memory
    lock(team, memory)
    values = {
        **_observed(memory, success=True),
        "status": Status.ACTIVE,
        "tier": Tier.SEMANTIC if may_become_semantic(memory) else memory.tier,
        "trust": Trust.HUMAN if by.is_person else memory.trust,
        "approved_at": timezone.now(),
        "needs_review": False,
        "weight": 1.0,
    }
    return change(
        team=team, by=by, memory=memory, verb="memory.approved", values=values, detail=_why(reason, note)
    )


@transaction.atomic
def demote(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """Say no: the memory is kept in history and never recalled. Demoting twice counts once."""
    if memory.status == Status.DEMOTED:
        return memory
    lock(team, memory)
    values = {
        **_observed(memory, success=False),
        "status": Status.DEMOTED,
        "approved_at": None,
        "needs_review": False,
    }
    return change(
        team=team, by=by, memory=memory, verb="memory.demoted", values=values, detail=_why(reason, note)
    )


@transaction.atomic
def archive(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """Put a memory aside: recalled on request only, restored in one call."""
    if memory.status == Status.ARCHIVED:
        return memory
    values = {"status": Status.ARCHIVED}
    return change(
        team=team, by=by, memory=memory, verb="memory.archived", values=values, detail=_why(reason, note)
    )


@transaction.atomic
def restore(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """Bring an archived, demoted or superseded memory back into recall."""
    if memory.status == Status.ACTIVE:
        return memory
    values = {"status": Status.ACTIVE, "expires_at": None}
    return change(
        team=team, by=by, memory=memory, verb="memory.restored", values=values, detail=_why(reason, note)
    )


@transaction.atomic
def pin(*, team: Team, by: Actor, memory: Memory, pinned: bool = True) -> Memory:
    """Exempt a memory from fading and eviction, or stop doing so."""
    if memory.pinned == pinned:
        return memory
    verb = "memory.pinned" if pinned else "memory.unpinned"
    return change(team=team, by=by, memory=memory, verb=verb, values={"pinned": pinned})


@transaction.atomic
def quarantine(*, team: Team, by: Actor, memory: Memory, reason: str) -> Memory:
    """Take a memory out of recall until a person has looked at it."""
    if memory.status == Status.QUARANTINED:
        return memory
    values = {"status": Status.QUARANTINED, "needs_review": True}
    return change(
        team=team, by=by, memory=memory, verb="memory.quarantined", values=values, detail={"reason": reason}
    )


@transaction.atomic
def release(*, team: Team, by: Actor, memory: Memory, reason: str = "") -> Memory:
    """A person looked at a quarantined memory and found it harmless."""
    values = {"status": Status.ACTIVE, "needs_review": False}
    return change(
        team=team, by=by, memory=memory, verb="memory.released", values=values, detail=_why(reason, "")
    )


@transaction.atomic
def reject(*, team: Team, by: Actor, memory: Memory, reason: str = "") -> Memory:
    """A person looked at a quarantined memory and refused it for good."""
    values = {"status": Status.REJECTED, "needs_review": False}
    return change(
        team=team, by=by, memory=memory, verb="memory.rejected", values=values, detail=_why(reason, "")
    )


@transaction.atomic
def put_back(*, team: Team, by: Actor, memory: Memory, before: dict[str, Any]) -> Memory:
    """Undo a verdict: put the governed fields back to what `changing.governed` said before it."""
    approved_at = before["approved_at"]
    values = {**before, "approved_at": parse_datetime(approved_at) if approved_at else None}
    return change(team=team, by=by, memory=memory, verb="memory.verdict_undone", values=values)


def may_become_semantic(memory: Memory) -> bool:
    """Whether what it says can hold beyond the one run it came from."""
    return memory.kind in LASTING_KINDS and memory.failure_class in LASTING_FAILURES


def _observed(memory: Memory, *, success: bool) -> dict[str, float]:
    belief = Belief(memory.alpha, memory.beta).observe(success=success)
    return {"alpha": belief.alpha, "beta": belief.beta, "confidence": belief.mean}


def _why(reason: str, note: str) -> dict[str, Any]:
    # A note can quote the memory: the verdict keeps it, the audit only says that there was one.
    return {"reason": reason, "has_note": bool(note)}
