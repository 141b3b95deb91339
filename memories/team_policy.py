"""The policy a team has set: read once per use, parsed once per version."""

from __future__ import annotations

import json
from functools import lru_cache

from django.db import connection

from hindsight_site.accounts.models import Team
from memories.models import PolicyVersion
from memories.policy import Policy
from memories.policy_table import Values, complete, policy_of


def current(team: Team) -> PolicyVersion | None:
    """The version in force, None while the team has the defaults."""
    return PolicyVersion.objects.of(team).order_by("-number").first()


def of(team: Team) -> Policy:
    """The team's policy now.

    One look at one indexed row: a change counts at once in every process. Only the parsing is kept.
    """
    # Asked at every recall and write, in SQL: putting it together through the ORM takes longer than running it.
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT number, "values"::text FROM memories_policyversion WHERE team_id = %s ORDER BY number DESC LIMIT 1',
            [team.pk],
        )
        row = cursor.fetchone()
    return _parsed(0, "{}") if row is None else _parsed(*row)


def values_of(version: PolicyVersion | None) -> Values:
    """Every number of a version; of None the defaults."""
    return complete(version.values if version else {})


@lru_cache(maxsize=256)
def _parsed(number: int, values: str) -> Policy:
    return policy_of(json.loads(values), version=number)
