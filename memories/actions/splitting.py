"""Taking a merge apart: what was taken in becomes a memory of its own again."""

from __future__ import annotations

import uuid

import numpy as np
from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, NotFound
from memories import indexing, team_policy
from memories.actions.changing import fingerprint, is_settled
from memories.actions.conflicts import notice
from memories.actions.merging import draft_of, quotes_of, take_out
from memories.actions.promoting import PROMOTED, TAKEN_IN
from memories.actions.relating import relate
from memories.actions.remembering import prepare, store
from memories.enums import RelationKind, Status
from memories.models import Evidence, Memory, Merge, Relation
from memories.safety.masking import mask_text


@transaction.atomic
def split(*, team: Team, by: Actor, memory: Memory, merge: uuid.UUID | None = None, reason: str = "") -> Memory:
    """Bring back what `memory` took in (the latest, or the one named) as its own memory with its own evidence.

    The support and the confidence it gave are taken back. Returns the memory brought back. Raises
    `Conflict` when the memory took in nothing, `NotFound` for a merge that is not its own.
    """
    memory.refresh_from_db(from_queryset=Memory.objects.of(team).select_for_update(no_key=True))
    chosen = _chosen(team, memory, merge)
    before = fingerprint(memory)
    brought, draft = quotes_of(chosen), draft_of(chosen)
    new, _ = prepare(team, memory.scope, chosen.agent, draft, team_policy.of(team).life)
    embedding = indexing.embed_memories([new])[0]
    store(team, by, new, draft, embedding)
    Evidence.objects.of(team).filter(pk__in=[row.pk for row in brought]).update(memory=new)
    take_out(team, chosen)
    Memory.objects.of(team).filter(pk=memory.pk).update(updated_at=timezone.now())
    memory.refresh_from_db()
    relate(team=team, by=by, source=new, target=memory, kind=RelationKind.RELATES_TO, note="split from it")
    _hand_over_origin(team, by, chosen, memory, new)
    audit.record(
        team=team,
        by=by,
        verb="memory.split",
        on=memory,
        before=before,
        after=audit.fingerprint({"memory": fingerprint(memory), "split_off": str(new.pk)}),
        detail={"into": str(new.pk), "support": memory.support_count},
        reason=mask_text(reason),
    )
    notice(team=team, by=by, memory=new, near=indexing.nearest(team, [new.scope_id], np.asarray(embedding), limit=20))
    return new


def _hand_over_origin(team: Team, by: Actor, merge: Merge, memory: Memory, new: Memory) -> None:
    """What was promoted into `memory` is a copy of its own now: forgetting the origin must reach that."""
    if merge.origin_id is None:
        return
    origin = Memory.objects.of(team).filter(pk=merge.origin_id).exclude(status=Status.FORGOTTEN).first()
    if origin is None:
        return
    if not Merge.objects.of(team).filter(memory=memory, origin_id=origin.pk).exists():
        edges = Relation.objects.of(team).filter(source=memory, target=origin, kind=RelationKind.DISTILLED_FROM)
        edges.filter(note=TAKEN_IN).delete()
    relate(team=team, by=by, source=new, target=origin, kind=RelationKind.DISTILLED_FROM, note=PROMOTED)


def _chosen(team: Team, memory: Memory, merge: uuid.UUID | None) -> Merge:
    if is_settled(memory):
        raise Conflict("This memory was forgotten; there is nothing left to split.", code="invalid_transition")
    merges = Merge.objects.of(team).filter(memory=memory).select_related("agent", "team")
    if merge is not None:
        found = merges.filter(pk=merge).first()
        if found is None:
            raise NotFound("This memory took in no such other one; GET its merges to see what it did.")
        return found
    latest = merges.order_by("-created_at", "-pk").first()
    if latest is None:
        raise Conflict("This memory took in no other one: there is nothing to split.", code="nothing_merged")
    return latest
