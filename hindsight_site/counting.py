"""Several figures of a team in one query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import IntegerField, QuerySet, Subquery

from hindsight_site.accounts.models import Team


class _Rows(Subquery):
    """`(SELECT count(*) FROM (…) AS rows)`, whatever the set is limited or joined to."""

    template = "(SELECT count(*) FROM (%(subquery)s) AS rows)"
    output_field = IntegerField()


def counts(team: Team, beside: Mapping[str, Subquery] | None = None, **wanted: QuerySet[Any]) -> dict[str, Any]:
    """Return how many rows each of these sets has, with what `beside` asks for, in one query."""
    each = {name: _Rows(rows.values("pk")) for name, rows in wanted.items()}
    return Team.objects.filter(pk=team.pk).values(**each, **(beside or {})).get()
