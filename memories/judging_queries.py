"""Reading what waits for a judgement: conflicts and quarantine, for pages and API alike."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, QuerySet
from django.db.models.functions import JSONObject

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import NotFound
from memories import queries
from memories.actions.settling import open_edges
from memories.enums import QuarantineDecision, RelationKind, ScopeKind, Status, Tier
from memories.models import Evidence, Memory, Merge, QuarantineCase, Relation, Scope, Settlement
from memories.policies import LIVE

SIDES = ("source__scope", "source__agent", "target__scope", "target__agent")
MOST_MERGES, MOST_SCOPES = 12, 200
DECIDED = (QuarantineDecision.RELEASED, QuarantineDecision.REJECTED)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits for a person's judgement."""

    conflicts: int
    quarantined: int


def waiting(team: Team) -> Waiting:
    """Count the open conflicts and the memories held back."""
    held = Memory.objects.of(team).filter(status=Status.QUARANTINED).count()
    return Waiting(conflicts=open_edges(team).count(), quarantined=held)


def for_page(team: Team, memory_id: uuid.UUID) -> Memory:
    """Return one memory with the team's shared scopes beside it, in one query. Raises `NotFound`."""
    shared = Scope.objects.of(team).filter(kind=ScopeKind.SHARED).order_by("name")[:MOST_SCOPES]
    scopes_beside = ArraySubquery(shared.values(json=JSONObject(slug="slug", name="name")))
    memory = queries.visible(team, None).annotate(shared_scopes=scopes_beside).filter(pk=memory_id).first()
    if memory is None:
        raise NotFound("There is no such memory.")
    memory.team = team  # known already: not to be read again
    return memory


def of_memory(memory: Memory) -> dict[str, Any]:
    """What the page of a memory (`for_page`) says beside it: what it took in, and with whom it may be shared."""
    may_be_shared = memory.scope.kind == ScopeKind.PRIVATE and memory.status in LIVE and memory.tier != Tier.WORKING
    merges = Merge.objects.of(memory.team).filter(memory=memory).select_related("agent").order_by("-created_at", "-id")
    return {
        "merges": list(merges[:MOST_MERGES]),
        "share_with": memory.shared_scopes if may_be_shared else [],  # type: ignore[attr-defined]
    }


# --- Conflicts -------------------------------------------------------------------------------------------


def conflicts(team: Team, agent: Agent | None, *, settled: bool = False) -> QuerySet[Relation]:
    """The conflicts whose two sides the caller may see: the open ones, or those that a decision settled.

    An agent is shown none with a side that waits for a review: it would read there what is held back from it.
    """
    edges = Relation.objects.of(team).filter(kind=RelationKind.CONTRADICTS) if settled else open_edges(team)
    if settled:
        edges = edges.filter(settled_at__isnull=False, settlements__undone_at=None, settlements__isnull=False)
    return _visible(team, agent, edges).select_related(*SIDES)


def _visible(team: Team, agent: Agent | None, edges: QuerySet[Relation]) -> QuerySet[Relation]:
    if agent is None:
        return edges
    seen = queries.visible(team, agent).values("pk")
    return edges.filter(source__in=seen, target__in=seen)


def conflict(team: Team, agent: Agent | None, conflict_id: uuid.UUID) -> Relation:
    """Return one conflict, open or settled, or raise `NotFound`."""
    edges = Relation.objects.of(team).filter(pk=conflict_id, kind=RelationKind.CONTRADICTS)
    found = _visible(team, agent, edges).select_related(*SIDES).first()
    if found is None:
        raise NotFound("There is no such conflict.", code="conflict_not_found")
    return found


def settlements_of(team: Team, edges: Iterable[Relation]) -> dict[uuid.UUID, Settlement]:
    """The standing decision of each of these conflicts that has one."""
    rows = Settlement.objects.of(team).filter(conflict__in=[edge.pk for edge in edges], undone_at=None)
    return {row.conflict_id: row for row in rows}


def latest_settlements(team: Team, limit: int) -> list[Settlement]:
    """The latest standing decisions, with both sides."""
    rows = Settlement.objects.of(team).filter(undone_at=None)
    return list(rows.select_related(*(f"conflict__{name}" for name in SIDES)).order_by("-created_at", "-id")[:limit])


def evidence_of(team: Team, memories: Iterable[Memory]) -> dict[uuid.UUID, list[Evidence]]:
    """What each of these memories rests on, in one query."""
    rows = Evidence.objects.of(team).filter(memory__in=[memory.pk for memory in memories])
    found: dict[uuid.UUID, list[Evidence]] = defaultdict(list)
    for row in rows.order_by("created_at", "step_sequence"):
        found[row.memory_id].append(row)
    return dict(found)


# --- Quarantine --------------------------------------------------------------------------------------------


def held_back(team: Team, agent: Agent | None) -> QuerySet[Memory]:
    """The memories in quarantine that the caller may see."""
    return queries.visible(team, agent).filter(status=Status.QUARANTINED)


def cases_of(team: Team, memories: Iterable[Memory]) -> dict[uuid.UUID, QuarantineCase]:
    """The newest case of each of these memories."""
    rows = QuarantineCase.objects.of(team).filter(memory__in=[memory.pk for memory in memories])
    return {row.memory_id: row for row in rows.order_by("created_at", "id")}


def decided(team: Team, agent: Agent | None) -> QuerySet[QuarantineCase]:
    """The cases that somebody decided, whose memory the caller may see."""
    cases = QuarantineCase.objects.of(team).filter(decision__in=DECIDED).exclude(memory__status=Status.FORGOTTEN)
    if agent is not None:
        cases = cases.filter(memory__in=queries.visible(team, agent).values("pk"))
    return cases.select_related("memory__scope", "memory__agent")


def lately_decided(team: Team, limit: int) -> list[QuarantineCase]:
    """The latest decisions, newest first."""
    return list(decided(team, None).order_by(F("decided_at").desc(nulls_last=True), "-id")[:limit])


def opposed(team: Team, memories: Sequence[Memory]) -> dict[uuid.UUID, list[Memory]]:
    """What each of these memories contradicts, unsettled."""
    edges = Relation.objects.of(team).filter(
        source__in=[memory.pk for memory in memories], kind=RelationKind.CONTRADICTS, settled_at=None
    )
    found: dict[uuid.UUID, list[Memory]] = defaultdict(list)
    for edge in edges.select_related("target__scope", "target__agent"):
        found[edge.source_id].append(edge.target)
    return dict(found)
