"""Deleting for good: what stays is a tombstone and an audit event."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import IdempotencyKey, Team
from memories import indexing
from memories.actions.changing import change, is_settled
from memories.enums import Status
from memories.models import Evidence, Memory, Relation, Revision


@transaction.atomic
def forget(*, team: Team, by: Actor, memory: Memory, reason: str = "") -> Memory:
    """Delete text, structure, vectors, tokens, evidence, revisions and relations of a memory."""
    # Whatever happens beside it, forgetting wins.
    memory.refresh_from_db(from_queryset=Memory.objects.of(team).select_for_update())
    if is_settled(memory):
        return memory
    values = {
        "status": Status.FORGOTTEN,
        "content": "",
        "snippet": "",
        "structure": {},
        "tags": [],
        "metadata": {},
        "environment": {},
        "fingerprint": "",
        "actor": "",
        "needs_review": False,
        "pinned": False,
    }
    change(team=team, by=by, memory=memory, verb="memory.forgotten", values=values, detail={"reason": reason})
    Evidence.objects.of(team).filter(memory=memory).delete()
    Revision.objects.of(team).filter(memory=memory).delete()
    Relation.objects.of(team).filter(source=memory).delete()
    Relation.objects.of(team).filter(target=memory).delete()
    indexing.drop(memory)
    if following := indexing.turn_after(memory):
        indexing.index(team, [following])  # its vector was made with this text before it
    # The answer to the call that wrote it holds its text.
    IdempotencyKey.objects.of(team).filter(body__id=str(memory.pk)).delete()
    return memory


def clear_evidence_of_trace(*, team: Team, trace_id: uuid.UUID) -> int:
    """Empty every quote from a trace that is being deleted; the rows stay and say so. Returns how many."""
    return (
        Evidence.objects.of(team)
        .filter(trace_id=trace_id)
        .update(quote="", step_id=None, start=0, end=0, removed_at=timezone.now())
    )
