"""Carrying a verdict out on its memory, and putting the memory back as it was."""

from __future__ import annotations

from typing import Any

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, FieldError, Invalid
from memories import actions
from memories.actions.changing import GOVERNED, governed
from memories.enums import Status
from memories.models import Memory
from reflection.enums import Decision
from reflection.models import ReviewItem, Verdict
from reflection.review.undoing import ChangedSince, state_to_put_back


def invalid(field: str, message: str) -> Invalid:
    """A refusal of one field of a verdict."""
    return Invalid(f"{field} {message}", errors=(FieldError(field, message),))


def carry_out(team: Team, by: Actor, memory: Memory, verdict: Verdict) -> None:
    """Do to the memory what the verdict says, and keep in the verdict what stood there before and after."""
    before: dict[str, Any] = {**governed(memory), "revision": memory.revision}
    _apply(team, by, memory, verdict)
    before["after"] = {**governed(memory), "revision": memory.revision}
    verdict.before, verdict.memory_revision = before, memory.revision
    if verdict.item.quorum == 1:
        verdict.content = ""  # the words of an edit are the memory's own now; a second copy would outlive it
    verdict.save(update_fields=["before", "memory_revision", "content"])


def is_carried_out(verdict: Verdict) -> bool:
    """Whether this verdict is the one that changed the memory."""
    return "after" in verdict.before


def _apply(team: Team, by: Actor, memory: Memory, verdict: Verdict) -> None:
    if verdict.decision == Decision.SENSITIVE:
        reason = "flagged as sensitive in the review"
        actions.quarantine(team=team, by=by, memory=memory, reason=reason)
        return
    if verdict.decision == Decision.DEMOTE:
        actions.demote(team=team, by=by, memory=memory, reason=verdict.reason, note=verdict.note)
        return
    if verdict.decision == Decision.EDIT:
        revision = memory.revision
        reason = "edited in the review"
        actions.revise(team=team, by=by, memory=memory, content=verdict.content, reason=reason, keeps_support=True)
        if memory.revision == revision:
            raise invalid("content", "is the same as before. Approve it as it is, or change it.")
        if memory.status == Status.QUARANTINED and not by.is_person:
            return  # a token's words that read like a planted instruction are not approved along
    actions.approve(team=team, by=by, memory=memory, note=verdict.note)


def put_back(team: Team, by: Actor, item: ReviewItem, verdict: Verdict) -> None:
    """Put the memory where it was before `verdict` was carried out. Raises `Conflict` when it moved on since."""
    memory = Memory.objects.of(team).get(pk=item.memory_id)
    before, after = verdict.before, verdict.before["after"]
    if memory.status == Status.FORGOTTEN:
        raise Conflict("The memory was forgotten since: there is nothing to put back.", code="forgotten")
    try:
        if memory.revision != after["revision"]:
            raise ChangedSince
        state = state_to_put_back({name: before[name] for name in GOVERNED}, after, governed(memory))
    except ChangedSince:
        raise Conflict(
            f"Somebody changed this memory after you decided ({memory.get_status_display().lower()}, "
            f"revision {memory.revision} now): an undo would take their change back too. "
            "Change the memory on its own page.",
            code="changed_since",
        ) from None
    if before["revision"] != after["revision"]:
        reason = "edit undone in the review"
        actions.rollback(team=team, by=by, memory=memory, to=before["revision"], reason=reason, keeps_support=True)
    actions.put_back(team=team, by=by, memory=memory, before=state)
