"""Reading memories: the one query module that pages and API share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import NotFound
from memories import scopes
from memories.enums import RelationKind, Status, Tier
from memories.gating import gates_of
from memories.models import Evidence, Memory
from memories.policies import LIVE

MOST_WORDS = 12  # of a search; what is typed after them narrows no further


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list may be narrowed by; every part is optional."""

    scope: str = ""
    agent: str = ""
    tier: str = ""
    kind: str = ""
    status: str = ""
    tag: str = ""
    trust: str = ""
    text: str = ""
    created_after: datetime | None = None
    created_before: datetime | None = None
    needs_review: bool | None = None


def visible(team: Team, agent: Agent | None) -> QuerySet[Memory]:
    """The memories a caller may see: an agent those of its readable scopes, the team all of them.

    What a scope's review mode holds back an agent sees only when it wrote that itself.
    """
    memories = Memory.objects.of(team).select_related("scope", "agent").exclude(over())
    if agent is None:
        return memories
    readable = scopes.readable(team, agent)
    held = gates_of(team, readable).held()
    return memories.filter(scope__in=[scope.pk for scope in readable]).filter(~held | Q(agent=agent))


def get(team: Team, agent: Agent | None, memory_id: uuid.UUID | str) -> Memory:
    """Return one visible memory, or raise `NotFound`."""
    memory = visible(team, agent).filter(pk=memory_id).first()
    if memory is None:
        raise NotFound("There is no such memory.")
    return memory


def narrow(memories: QuerySet[Memory], filters: Filters) -> QuerySet[Memory]:
    """Apply `filters`. Without a status, tombstones are left out."""
    exact = {
        "scope__slug": filters.scope,
        "agent__slug": filters.agent,
        "tier": filters.tier,
        "kind": filters.kind,
        "status": filters.status,
        "trust": filters.trust,
        "created_at__gte": filters.created_after,
        "created_at__lt": filters.created_before,
        "needs_review": filters.needs_review,
    }
    memories = memories.filter(**{name: value for name, value in exact.items() if value not in ("", None)})
    if not filters.status:
        memories = memories.exclude(status=Status.FORGOTTEN)
    if filters.tag:
        memories = memories.filter(tags__contains=[filters.tag])
    if filters.text:
        memories = memories.filter(has_words("content", filters.text))
    return memories


def has_words(column: str, text: str) -> Q:
    """Every word of `text` stands somewhere in a column, in any order and whatever its case."""
    return reduce(and_, (Q(**{f"{column}__icontains": word}) for word in text.split()[:MOST_WORDS]), Q())


def contested(team: Team, memory_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these memories contradict another live one, unsettled."""
    ids = list(memory_ids)
    return {pk for pair in contradicting(team, ids) for pk in pair} & set(ids)


def contradicting(team: Team, memory_ids: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """The unsettled contradictions between live memories that one of these takes part in."""
    # Asked at every recall, in SQL: putting it together through the ORM takes longer than running it.
    with connection.cursor() as cursor:
        ids = "{" + ",".join(map(str, memory_ids)) + "}"  # an array written by the driver takes four times as long
        cursor.execute(_CONTRADICTING, {"team": team.pk, "ids": ids, "live": [str(s) for s in LIVE]})
        return cursor.fetchall()


_CONTRADICTING = f"""
SELECT r.source_id, r.target_id FROM memories_relation r
JOIN memories_memory s ON s.team_id = r.team_id AND s.id = r.source_id AND s.status = ANY(%(live)s)
JOIN memories_memory t ON t.team_id = r.team_id AND t.id = r.target_id AND t.status = ANY(%(live)s)
WHERE r.team_id = %(team)s AND r.kind = '{RelationKind.CONTRADICTS}' AND r.settled_at IS NULL
  AND (r.source_id = ANY(%(ids)s::uuid[]) OR r.target_id = ANY(%(ids)s::uuid[]))
"""  # noqa: S608 - made of a constant


def traces_behind(team: Team, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, frozenset[uuid.UUID]]:
    """The traces that each of these memories rests on; memories without evidence are left out."""
    rows = Evidence.objects.of(team).filter(memory__in=list(memory_ids)).exclude(trace_id=None)
    rows = rows.filter(Q(removed_at=None) | Q(step_id=None))  # not what stood under an earlier text
    found: dict[uuid.UUID, set[uuid.UUID]] = {}
    for memory, trace in rows.values_list("memory_id", "trace_id").distinct():
        if trace is not None:
            found.setdefault(memory, set()).add(trace)
    return {memory: frozenset(traces) for memory, traces in found.items()}


def over(now: datetime | None = None) -> Q:
    """Working memory past its time: gone at once, though the sweep removes it later."""
    return Q(tier=Tier.WORKING, status__in=LIVE, expires_at__lte=now or timezone.now())


def unexpired(now: datetime | None = None) -> Q:
    """Not past its expiry or validity: what the hourly sweep has not archived yet is gone all the same."""
    now = now or timezone.now()
    return (
        (Q(expires_at=None) | Q(expires_at__gt=now))
        & (Q(valid_until=None) | Q(valid_until__gt=now))
        & (Q(valid_from=None) | Q(valid_from__lte=now))
    )
