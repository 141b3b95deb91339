"""Deleting for good: what stays is a tombstone and an audit event."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import IdempotencyKey, Team
from memories import indexing
from memories.actions.changing import fingerprint, is_settled
from memories.actions.merging import quotes_of, withdraw_origin
from memories.actions.promoting import PROMOTED
from memories.enums import RelationKind, Status
from memories.models import Evidence, Memory, Merge, QuarantineCase, Relation, Revision
from memories.policies import check_move
from memories.safety.masking import mask_text
from memories.signals import forgotten
from memories.sources import source_of

OWN_ROWS = (Merge, QuarantineCase, Evidence, Revision)  # what hangs on one memory


@transaction.atomic
def forget(*, team: Team, by: Actor, memory: Memory, reason: str = "") -> Memory:
    """Delete text, structure, vectors, tokens, evidence, revisions and relations of a memory."""
    # Whatever happens beside it, forgetting wins.
    memory.refresh_from_db(from_queryset=Memory.objects.of(team).select_for_update())
    forget_many(team=team, by=by, memories=[memory], reason=reason)
    return memory


@transaction.atomic
def forget_many(*, team: Team, by: Actor, memories: Sequence[Memory], reason: str = "") -> None:
    """Like `forget` for many memories, whose rows the caller holds locked as they stand."""
    going = [memory for memory in memories if not is_settled(memory)]
    ids = [memory.pk for memory in going]
    if not going:
        return
    following = [turn for memory in going if (turn := indexing.turn_after(memory)) and turn.pk not in set(ids)]
    # Words that may quote them; the reason for forgetting itself comes after.
    audit.forget_reasons(team=team, object_type="memory", ids=[str(ident) for ident in ids])
    reason = mask_text(reason)
    _empty(team, by, going, reason)
    _reach_copies(team, by, going, reason)
    for table in OWN_ROWS:
        table.objects.of(team).filter(memory_id__in=ids).delete()
    Relation.objects.of(team).filter(source_id__in=ids).delete()
    Relation.objects.of(team).filter(target_id__in=ids).delete()
    indexing.drop_many(team, ids)
    if following:
        indexing.index(team, following)  # their vectors were made with this text before them
    # The answers to the calls that wrote them hold their text.
    IdempotencyKey.objects.of(team).filter(body__id__in=[str(ident) for ident in ids]).delete()
    forgotten.send(sender=Memory, team=team, ids=ids)


def _nothing() -> dict[str, Any]:
    """The fields of a tombstone."""
    return {
        "status": Status.FORGOTTEN,
        "content": "",
        "snippet": "",
        "structure": {},
        "tags": [],
        "metadata": {},
        "environment": {},
        "fingerprint": "",
        "actor": "",
        "session_id": "",
        "sequence": None,
        "needs_review": False,
        "pinned": False,
        "updated_at": timezone.now(),
    }


def _empty(team: Team, by: Actor, memories: Sequence[Memory], reason: str) -> None:
    events = []
    for memory in memories:
        check_move(memory, Status.FORGOTTEN)
        before, came_from = fingerprint(memory), memory.status
        for name, value in _nothing().items():
            setattr(memory, name, value)
        detail = {"status": str(Status.FORGOTTEN), "from": came_from}
        after = fingerprint(memory)
        events.append(audit.Change("memory.forgotten", "memory", str(memory.pk), before, after, detail, reason))
    Memory.objects.of(team).filter(pk__in=[memory.pk for memory in memories]).update(**_nothing())
    audit.record_many(team=team, by=by, changes=events)


def _reach_copies(team: Team, by: Actor, memories: Sequence[Memory], reason: str) -> None:
    """What was promoted from them to shared scopes goes with them: the copies, and what others took in.

    A copy that others stand behind too stays, without what it had from its origin.
    """
    ids = [memory.pk for memory in memories]
    with_merges = set(Merge.objects.of(team).filter(origin_id__in=ids).values_list("origin_id", flat=True))
    for memory in memories:
        if memory.pk in with_merges:
            withdraw_origin(team=team, by=by, origin=memory)
    copies = Relation.objects.of(team).filter(target_id__in=ids, kind=RelationKind.DISTILLED_FROM, note=PROMOTED)
    for edge in copies.select_related("source", "target"):
        if edge.source_id not in ids and _rests_on_others(team, edge.source, edge.target, ids):
            drop_evidence(team=team, by=by, memory=edge.source, evidence=_brought_by(team, edge), reason=reason)
        else:
            forget(team=team, by=by, memory=edge.source, reason=reason)


def _rests_on_others(team: Team, copy: Memory, origin: Memory, going: Sequence[uuid.UUID]) -> bool:
    """Whether something else stands behind a copy than the memories that are `going`: another trace, another
    memory, what somebody else said, or a person who approved it when another trace still did."""
    own = Evidence.objects.of(team).filter(memory_id__in=going).exclude(trace_id=None)
    others = Evidence.objects.of(team).filter(memory=copy).exclude(trace_id=None)
    others = others.exclude(trace_id__in=own.values("trace_id"))
    said = Merge.objects.of(team).filter(memory=copy, trace_id=None).exclude(agent=origin.agent_id)
    edges = Relation.objects.of(team).filter(source=copy, kind=RelationKind.DISTILLED_FROM)
    approved = copy.approved_at if copy.approved_at != origin.approved_at else None
    return (
        others.filter(removed_at=None).exists()
        or said.exists()
        or edges.exclude(target_id__in=going).exists()
        or (approved is not None and others.filter(created_at__lte=approved).exists())
    )


def _brought_by(team: Team, promoted: Relation) -> QuerySet[Evidence]:
    """The quotes that a copy has from its origin, and nobody else brought."""
    of_copy = Evidence.objects.of(team).filter(memory=promoted.source)
    others = {row.pk for merge in Merge.objects.of(team).filter(memory=promoted.source) for row in quotes_of(merge)}
    steps = Evidence.objects.of(team).filter(memory=promoted.target).exclude(step_id=None)
    places = set(steps.values_list("step_id", "start", "end"))
    brought = [row.pk for row in of_copy if (row.step_id, row.start, row.end) in places and row.pk not in others]
    return of_copy.filter(pk__in=brought)


@transaction.atomic
def drop_evidence(*, team: Team, by: Actor, memory: Memory, evidence: QuerySet[Evidence], reason: str = "") -> int:
    """Take these quotes away from a memory that rests on others too, and the support that came with them.

    Returns how many quotes went. `evidence` must be of this memory.
    """
    memory.refresh_from_db(from_queryset=Memory.objects.of(team).select_for_update(no_key=True))
    before, dropped = fingerprint(memory), evidence.filter(memory=memory).delete()[0]
    left = Evidence.objects.of(team).filter(memory=memory).exclude(trace_id=None)
    sources = {source_of(*row) for row in left.values_list("trace_id", "trace_digest")}
    memory.support_count = max(1, min(memory.support_count, len(sources)))
    memory.updated_at = timezone.now()
    memory.save(update_fields=["support_count", "updated_at"])
    detail = {"quotes": dropped, "support": memory.support_count}
    after = audit.fingerprint({"memory": fingerprint(memory), "quotes_dropped": dropped})
    audit.record(
        team=team, by=by, verb="memory.evidence_dropped", on=memory, before=before, after=after, detail=detail,
        reason=mask_text(reason),
    )  # fmt: skip
    return dropped


def clear_evidence_of_trace(*, team: Team, trace_id: uuid.UUID) -> int:
    """Empty every quote from a trace that is being deleted; the rows stay and say so. Returns how many."""
    # What another memory took in from it goes whole: its words came from there.
    Merge.objects.of(team).filter(trace_id=trace_id).delete()
    return (
        Evidence.objects.of(team)
        .filter(trace_id=trace_id)
        .update(quote="", step_id=None, start=0, end=0, removed_at=timezone.now())
    )
