"""Reading memories: the one query module that pages and API share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import NotFound
from memories import scopes
from memories.enums import RelationKind, Status
from memories.models import Memory, Relation


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
    """The memories a caller may see: an agent those of its readable scopes, the team all of them."""
    memories = Memory.objects.of(team).select_related("scope", "agent")
    if agent is None:
        return memories
    return memories.filter(scope__in=[scope.pk for scope in scopes.readable(team, agent)])


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
        memories = memories.filter(content__icontains=filters.text)
    return memories


def contested(team: Team, memory_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these memories contradict another live one, unsettled."""
    ids = list(memory_ids)
    edges = Relation.objects.of(team).filter(
        Q(source__in=ids) | Q(target__in=ids), kind=RelationKind.CONTRADICTS, settled_at=None
    )
    pairs = edges.values_list("source_id", "target_id")
    return {pk for pair in pairs for pk in pair} & set(ids)


def unexpired(now: datetime | None = None) -> Q:
    """Not past its expiry or validity: what the hourly sweep has not archived yet is gone all the same."""
    now = now or timezone.now()
    return (
        (Q(expires_at=None) | Q(expires_at__gt=now))
        & (Q(valid_until=None) | Q(valid_until__gt=now))
        & (Q(valid_from=None) | Q(valid_from__lte=now))
    )
