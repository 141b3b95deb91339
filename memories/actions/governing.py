"""People and rules judging a memory: approve, demote, archive, restore, pin."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from memories.actions.changing import change, lock
from memories.actions.quarantining import back_in_quarantine, close_case
from memories.confidence import Belief
from memories.enums import FailureClass, Kind, QuarantineDecision, Status, Tier, Trust
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
        **_judged(memory),
        "weight": 1.0,
        "fades": {},
    }
    return change(
        team=team, by=by, memory=memory, verb="memory.approved", values=values, detail=_noted(note), reason=reason
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
        **_judged(memory),
    }
    return change(
        team=team, by=by, memory=memory, verb="memory.demoted", values=values, detail=_noted(note), reason=reason
    )


@transaction.atomic
def archive(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """Put a memory aside: recalled on request only, restored in one call."""
    if memory.status == Status.ARCHIVED:
        return memory
    values = {"status": Status.ARCHIVED}
    return change(
        team=team, by=by, memory=memory, verb="memory.archived", values=values, detail=_noted(note), reason=reason
    )


@transaction.atomic
def restore(*, team: Team, by: Actor, memory: Memory, reason: str = "", note: str = "") -> Memory:
    """Bring an archived, demoted or superseded memory back into recall.

    It counts like a hit, and the rules of life spare it for a while. An end of validity that has passed goes.
    """
    if memory.status == Status.ACTIVE:
        return memory
    now = timezone.now()
    over = memory.valid_until is not None and memory.valid_until <= now
    values = {
        "status": Status.ACTIVE,
        "expires_at": None,
        "valid_until": None if over else memory.valid_until,
        "renewed_at": now,
        "restored_at": now,
        "archived_at": None,
        "archived_by": "",
    }
    return change(
        team=team, by=by, memory=memory, verb="memory.restored", values=values, detail=_noted(note), reason=reason
    )


@transaction.atomic
def pin(*, team: Team, by: Actor, memory: Memory, pinned: bool = True) -> Memory:
    """Exempt a memory from fading and eviction, or stop doing so."""
    if memory.pinned == pinned:
        return memory
    verb = "memory.pinned" if pinned else "memory.unpinned"
    return change(team=team, by=by, memory=memory, verb=verb, values={"pinned": pinned})


@transaction.atomic
def put_back(*, team: Team, by: Actor, memory: Memory, before: dict[str, Any]) -> Memory:
    """Undo a verdict: put the governed fields back to what `changing.governed` said before it."""
    approved_at, came_from = before["approved_at"], memory.status
    values = {**before, "approved_at": parse_datetime(approved_at) if approved_at else None}
    change(team=team, by=by, memory=memory, verb="memory.verdict_undone", values=values)
    if memory.status == Status.QUARANTINED and came_from != Status.QUARANTINED:
        back_in_quarantine(team=team, memory=memory)
    elif came_from == Status.QUARANTINED and memory.status != Status.QUARANTINED:
        close_case(team=team, by=by, memory=memory, decision=QuarantineDecision.WITHDRAWN)
    return memory


def may_become_semantic(memory: Memory) -> bool:
    """Whether what it says can hold beyond the one run it came from."""
    return memory.kind in LASTING_KINDS and memory.failure_class in LASTING_FAILURES


def _observed(memory: Memory, *, success: bool) -> dict[str, float]:
    belief = Belief(memory.alpha, memory.beta).observe(success=success)
    return {"alpha": belief.alpha, "beta": belief.beta, "confidence": belief.mean}


def _judged(memory: Memory) -> dict[str, Any]:
    """A person has looked: what was used until now flags it no more."""
    return {
        "needs_review": False,
        "judged_reuse_count": memory.reuse_count,
        "judged_reuse_success_count": memory.reuse_success_count,
    }


def _noted(note: str) -> dict[str, Any]:
    # A note can quote the memory: the verdict keeps it, the audit only says that there was one.
    return {"has_note": bool(note)}
