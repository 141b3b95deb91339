"""What the filters of the audit offer: the verbs, kinds of objects and actors that a team's events have.

Each is read by skipping through an index (PostgreSQL wiki, "Loose indexscan"): as many steps as there are
different values, however many events there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from django.db import connection

from hindsight_site.accounts.models import Team

MOST_ACTORS = 300  # in the select; others are found by their name or id

_SKIP = """
WITH RECURSIVE found AS (
  (SELECT {column} AS value FROM accounts_auditevent WHERE team_id = %(team)s ORDER BY {column} LIMIT 1)
  UNION ALL
  SELECT (SELECT {column} FROM accounts_auditevent
          WHERE team_id = %(team)s AND {column} > found.value ORDER BY {column} LIMIT 1)
  FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL
"""
_ACTORS = """
WITH RECURSIVE found AS (
  (SELECT actor_kind, actor_id FROM accounts_auditevent WHERE team_id = %(team)s
   ORDER BY actor_kind, actor_id LIMIT 1)
  UNION ALL
  SELECT after.actor_kind, after.actor_id FROM found, LATERAL (
    SELECT actor_kind, actor_id FROM accounts_auditevent
    WHERE team_id = %(team)s AND (actor_kind, actor_id) > (found.actor_kind, found.actor_id)
    ORDER BY actor_kind, actor_id LIMIT 1
  ) AS after
)
SELECT found.actor_kind, found.actor_id, newest.actor_label FROM found, LATERAL (
  SELECT actor_label FROM accounts_auditevent AS event
  WHERE team_id = %(team)s AND event.actor_kind = found.actor_kind AND event.actor_id = found.actor_id
  ORDER BY at DESC LIMIT 1
) AS newest
LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Acted:
    """Somebody who did something, by the name they had last."""

    kind: str  # enums.ActorKind
    id: str
    label: str


def verbs_of(team: Team) -> dict[str, list[str]]:
    """Return the verbs of a team's events by their family: {"memory": ["memory.approved", …]}."""
    verbs = sorted(_values(team, "verb"))
    return {family: list(them) for family, them in groupby(verbs, key=lambda verb: verb.partition(".")[0])}


def kinds_of(team: Team) -> list[str]:
    """Return the kinds of objects that a team's events speak of."""
    return sorted(_values(team, "object_type"))


def actors_of(team: Team) -> list[Acted]:
    """Return who did something, by kind and name; whatever has no id of its own (rules) is left out."""
    with connection.cursor() as cursor:
        cursor.execute(_ACTORS, {"team": team.pk, "most": MOST_ACTORS})
        found = [Acted(*row) for row in cursor.fetchall()]
    return sorted((one for one in found if one.id), key=lambda one: (one.kind, one.label.lower()))


def _values(team: Team, column: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_SKIP.format(column=column), {"team": team.pk})
        return [value for (value,) in cursor.fetchall()]
