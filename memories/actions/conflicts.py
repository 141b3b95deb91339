"""Contradictions: noticed when something is written or revised. `settling` decides them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils.dateparse import parse_datetime

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from memories.actions.changing import fingerprint
from memories.actions.quarantining import quarantine
from memories.actions.relating import relate
from memories.actions.settling import open_edges, settle_by_traces, settle_conflict, touching
from memories.contradiction import Claim, contradiction
from memories.enums import ConflictReason, Kind, QuarantineRule, RelationKind, Resolution, Tier, Trust
from memories.models import Memory, Relation
from memories.policies import LIVE, is_trusted
from memories.search.vectors import VectorHit

LEAST_COSINE = 0.5  # further apart, two texts are about different things
NEIGHBOURS = 20  # nearest memories that a new one is compared with
_RANK = {Trust.EXTERNAL: 0, Trust.AGENT: 1, Trust.VERIFIED: 2, Trust.HUMAN: 3}


def notice(*, team: Team, by: Actor, memory: Memory, near: Sequence[VectorHit]) -> list[Relation]:
    """Join `memory` to those of its live neighbours that it contradicts; both sides wait for a person.

    Advice from a lower-trust source against a trusted memory is quarantined instead: it reaches no agent
    before somebody looked. Returns the edges drawn.
    """
    if memory.status not in LIVE or memory.tier == Tier.WORKING or memory.sequence is not None:
        return []
    found = _contradicted(team, memory, near)
    if not found:
        return []
    joined = _joined_already(team, memory)
    edges = [
        relate(team=team, by=by, source=memory, target=other, kind=RelationKind.CONTRADICTS, note=reason)
        for other, reason in found
        if other.pk not in joined
    ]
    if any(_must_wait(memory, other, reason) for other, reason in found):
        quarantine(
            team=team,
            by=by,
            memory=memory,
            reason=QuarantineRule.OPPOSES_TRUSTED.label,
            rule=QuarantineRule.OPPOSES_TRUSTED,
        )
        return edges
    if edges:
        fresh = {edge.target_id for edge in edges}
        for each in sorted([memory, *(other for other, _ in found if other.pk in fresh)], key=lambda one: one.pk):
            _flag(team, by, each)
        settle_by_traces(team=team, memory=memory)
    return edges


def contradict(*, team: Team, by: Actor, memory: Memory, other: Memory, note: str) -> None:
    """Join two memories of which a source says that both cannot hold; both wait for a person.

    Against what a person or its own outcome stands behind, the new one is held back instead. What `reconsider` can
    check by itself carries a `ConflictReason`; this is the source's word, so only a person or traces settle it.
    """
    if memory.pk == other.pk or memory.status not in LIVE or other.pk in _joined_already(team, memory):
        return
    relate(team=team, by=by, source=memory, target=other, kind=RelationKind.CONTRADICTS, note=note)
    if is_trusted(other) and not is_trusted(memory):
        rule = QuarantineRule.OPPOSES_TRUSTED
        quarantine(team=team, by=by, memory=memory, reason=rule.label, rule=rule)
        return
    for each in sorted([memory, other], key=lambda one: one.pk):
        _flag(team, by, each)
    settle_by_traces(team=team, memory=memory)


def _contradicted(team: Team, memory: Memory, near: Sequence[VectorHit]) -> list[tuple[Memory, str]]:
    ids = _close(memory, near)
    claims = _claims(team, memory.scope_id, ids)
    own = claim_of(memory)
    reasons = {pk: reason for pk, claim in claims.items() if (reason := contradiction(own, claim))}
    if not reasons:
        return []
    others = Memory.objects.of(team).filter(pk__in=list(reasons)).in_bulk()
    return [(others[pk], reasons[pk]) for pk in ids if pk in others]


def suspected(team: Team, news: Sequence[tuple[Memory, Sequence[VectorHit]]]) -> list[list[VectorHit]]:
    """Return of each new memory's neighbours those that it contradicts: what `notice` then has to look at.

    For memories of one scope that are written together: their neighbours are read in one statement, and each
    text is taken apart once, however many it is laid beside.
    """
    wanted = {pk for memory, near in news for pk in _close(memory, near)}
    claims = _claims(team, news[0][0].scope_id, sorted(wanted)) if wanted else {}
    found = []
    for memory, near in news:
        close, own = set(_close(memory, near)), claim_of(memory)
        against = [hit for hit in near if hit.memory_id in close and hit.memory_id in claims]
        found.append([hit for hit in against if contradiction(own, claims[hit.memory_id])])
    return found


def _close(memory: Memory, near: Sequence[VectorHit]) -> list[uuid.UUID]:
    """The neighbours that may be about the same thing, closest first."""
    return [hit.memory_id for hit in near if hit.cosine >= LEAST_COSINE and hit.memory_id != memory.pk]


def _claims(team: Team, scope_id: uuid.UUID, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Claim]:
    """The claims of those of these memories that a new one of the scope can contradict."""
    if not ids:
        return {}
    # Asked at every write, in SQL: putting it together through the ORM takes longer than running it.
    with connection.cursor() as cursor:
        cursor.execute(_COMPARED, [team.pk, "{" + ",".join(map(str, ids)) + "}", scope_id, [str(s) for s in LIVE]])
        rows = cursor.fetchall()
    return {
        pk: _claim(content, kind, json.loads(structure), json.loads(environment), *rest)
        for pk, content, kind, structure, environment, *rest in rows
    }


_CLAIMED = ("content", "kind", "structure", "environment", "valid_from", "valid_until", "actor")
_COMPARED = f"""
SELECT id, {", ".join(_CLAIMED)} FROM memories_memory
WHERE team_id = %s AND id = ANY(%s::uuid[]) AND scope_id = %s AND status = ANY(%s) AND sequence IS NULL
  AND tier <> '{Tier.WORKING}'
"""  # noqa: S608 - made of constants


def claim_of(memory: Memory) -> Claim:
    """What is compared of a memory."""
    return _claim(*(getattr(memory, name) for name in _CLAIMED))


def _claim(
    content: str, kind: str, structure: dict[str, Any] | None, environment: dict[str, Any] | None,
    valid_from: datetime | None, valid_until: datetime | None, actor: str,
) -> Claim:  # fmt: skip
    """A claim; the structure may know when it holds where the memory itself does not."""
    told = structure or {}
    return Claim(
        content=content,
        kind=kind,
        structure=told,
        environment=environment or {},
        valid_from=valid_from or parse_datetime(told.get("valid_from") or ""),
        valid_until=valid_until or parse_datetime(told.get("valid_until") or ""),
        actor=actor,
    )


def _joined_already(team: Team, memory: Memory) -> set[uuid.UUID]:
    edges = Relation.objects.of(team).filter(Q(source=memory) | Q(target=memory), kind=RelationKind.CONTRADICTS)
    return {pk for pair in edges.values_list("source_id", "target_id") for pk in pair} - {memory.pk}


def _must_wait(memory: Memory, other: Memory, reason: str) -> bool:
    advises = reason == ConflictReason.OPPOSITE_ADVICE or memory.kind == Kind.EXPERIENCE
    lower = not is_trusted(memory) and _RANK[Trust(memory.trust)] <= _RANK[Trust(other.trust)]
    return advises and is_trusted(other) and lower


def _flag(team: Team, by: Actor, memory: Memory) -> None:
    """Mark one side for review. Neither its text nor its time changes, so an open page of it stays valid."""
    before = fingerprint(memory)
    if Memory.objects.of(team).filter(pk=memory.pk, needs_review=False).update(needs_review=True):
        memory.needs_review = True
        audit.record(team=team, by=by, verb="memory.contested", on=memory, before=before, after=fingerprint(memory))


def reconsider(*, team: Team, by: Actor, memory: Memory, near: Sequence[VectorHit]) -> None:
    """The memory says something else now: end the conflicts that its change resolved, notice new ones."""
    edges = open_edges(team).filter(touching(memory), note__in=ConflictReason.values)
    own = claim_of(memory)
    for edge in edges.select_related("source", "target"):
        other = edge.source if edge.target_id == memory.pk else edge.target
        if not contradiction(own, claim_of(other)):
            settle_conflict(
                team=team, by=by, conflict=edge, decision=Resolution.BOTH, condition="one of the two was changed"
            )
    memory.refresh_from_db()
    notice(team=team, by=by, memory=memory, near=near)
