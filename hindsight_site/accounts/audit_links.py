"""From an event to the page of what it speaks of, where that still exists.

Looked up by name, not by import: the audit speaks of rows of every app, and the apps stand on this one.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.urls import reverse

from hindsight_site.accounts.models import AuditEvent, Team


@dataclass(frozen=True, slots=True)
class Place:
    """Where objects of one type are shown: the model, the fields that are needed, and the address from them."""

    model: str
    fields: tuple[str, ...]
    address: Callable[..., str]


PLACES = {
    "memory": Place("memories.Memory", ("pk",), lambda pk: reverse("memory", args=[pk])),
    "recall": Place("memories.Recall", ("pk",), lambda pk: reverse("recall", args=[pk])),
    "scope": Place("memories.Scope", ("slug",), lambda slug: f"{reverse('memories')}?scope={slug}"),
    "trace": Place("reflection.Trace", ("pk",), lambda pk: reverse("trace", args=[pk])),
    "reflection": Place("reflection.Reflection", ("trace_id",), lambda pk: reverse("trace", args=[pk]) if pk else ""),
    "reviewbatch": Place("reflection.ReviewBatch", ("week",), lambda week: reverse("review-batch", args=[week])),
    "reviewitem": Place("reflection.ReviewItem", ("pk",), lambda pk: reverse("review-item", args=[pk])),
    "agent": Place("accounts.Agent", ("slug",), lambda slug: reverse("connect_agent", args=[slug])),
    "apitoken": Place(
        "accounts.ApiToken",
        ("agent__slug",),
        lambda slug: reverse("connect_agent", args=[slug]) if slug else reverse("connect"),
    ),
    "membership": Place("accounts.Membership", (), lambda: reverse("team")),
    "invitation": Place("accounts.Invitation", (), lambda: reverse("team")),
}


def links_of(team: Team, events: Iterable[AuditEvent]) -> dict[tuple[str, str], str]:
    """Return the address of each object that exists, by its type and id. One query for each type on the page."""
    wanted: dict[str, set[uuid.UUID]] = defaultdict(set)
    for event in events:
        if event.object_type in PLACES and (ident := _uuid(event.object_id)):
            wanted[event.object_type].add(ident)
    found = {(kind, str(pk)): PLACES[kind].address(*row) for kind in wanted for pk, *row in _rows(team, kind, wanted)}
    return {**found, ("team", str(team.pk)): reverse("team")}


def _rows(team: Team, kind: str, wanted: dict[str, set[uuid.UUID]]) -> Iterable[tuple[Any, ...]]:
    place = PLACES[kind]
    rows = apps.get_model(place.model)._default_manager.filter(team_id=team.pk, pk__in=wanted[kind])
    return rows.order_by().values_list("pk", *place.fields)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
