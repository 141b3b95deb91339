"""Edges between memories."""

from __future__ import annotations

from django.db import transaction

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from memories.models import Memory, Relation


@transaction.atomic
def relate(
    *, team: Team, by: Actor, source: Memory, target: Memory, kind: str, weight: float = 1.0, note: str = ""
) -> Relation:
    """Draw an edge from `source` to `target`; the same edge twice is one."""
    relation, created = Relation.objects.of(team).get_or_create(
        team=team, source=source, target=target, kind=kind, defaults={"weight": weight, "note": note[:300]}
    )
    if created:
        audit.record(
            team=team,
            by=by,
            verb="memory.related",
            on=source,
            detail={"kind": kind, "target": str(target.pk)},
        )
    return relation
