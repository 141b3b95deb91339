"""How far the team's looking back is: what waits, runs, is done and is dead, since the queue was last empty."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Min, Q
from django.utils import timezone

from hindsight_site.accounts import leases
from hindsight_site.accounts.jobs.estimates import estimate
from hindsight_site.accounts.models import Agent, Team
from reflection.enums import REFLECTION_OPEN, ReflectionStatus
from reflection.models import Reflection

LOOKED_BACK = timedelta(hours=24)  # a batch that began before is counted from then on
# The newest run before which all earlier ones had ended: there the present batch begins.
BEGUN = """
SELECT max(created_at) FROM (
    SELECT created_at, max(coalesce(finished_at, 'infinity')) OVER (
        ORDER BY created_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS busy_until
    FROM reflection_reflection
    WHERE team_id = %(team)s AND created_at > %(since)s AND status <> 'skipped'
      AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)
) AS runs WHERE busy_until IS NULL OR busy_until < created_at
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """The runs since the queue was last empty; all counts are 0 when there were none in the last day.

    `retrying` are those of `waiting` that failed before and wait for their next attempt; `dead` failed for good;
    `stuck` are due, or at work, far longer than anything takes: somebody should look. `per_minute` and
    `seconds_left` are None without a ground for a guess.
    """

    begun_at: datetime | None
    waiting: int
    retrying: int
    running: int
    done: int
    dead: int
    by_status: dict[str, int]
    stuck: int
    oldest_waiting_seconds: float
    per_minute: float | None
    seconds_left: float | None

    @property
    def open(self) -> int:
        return self.waiting + self.running

    @property
    def settled(self) -> int:
        return self.done + self.dead

    @property
    def total(self) -> int:
        return self.open + self.done + self.dead


def batch(team: Team, agent: Agent | None, now: datetime | None = None) -> Batch:
    """Count the present batch of a team, or of one agent of it. Call inside the team's transaction."""
    now = now or timezone.now()
    runs = Reflection.objects.of(team)
    runs = runs if agent is None else runs.filter(agent=agent)
    begun_at = _begun_at(team, agent, now)
    ours = runs.filter(Q(created_at__gte=begun_at) | Q(status__in=REFLECTION_OPEN)) if begun_at else runs.none()
    told_by_status = (
        ours.exclude(status=ReflectionStatus.SKIPPED)
        .order_by()
        .values_list("status")
        .annotate(
            count=Count("pk"),
            again=Count("pk", filter=Q(attempts__gt=0)),
            due=Min("run_after", filter=Q(run_after__lte=now)),
        )
    )
    rows = {str(status): (count, again, due) for status, count, again, due in told_by_status}
    counts: Counter[str] = Counter({status: count for status, (count, _, _) in rows.items()})
    _, retrying, due = rows.get(ReflectionStatus.QUEUED, (0, 0, None))
    waiting, running = counts[ReflectionStatus.QUEUED], counts[ReflectionStatus.RUNNING]
    dead = counts[ReflectionStatus.FAILED]
    done = counts.total() - waiting - running - dead
    queued = runs.filter(status=ReflectionStatus.QUEUED)
    held = queued.aggregate(
        due=Min("run_after", filter=Q(run_after__lte=now)), retrying=Count("pk", filter=Q(attempts__gt=0))
    )
    due = held["due"]
    seconds = (now - begun_at).total_seconds() if begun_at else 0.0
    told = estimate(done=done + dead, total=counts.total(), begun_at=begun_at, now=now)
    return Batch(
        begun_at=begun_at,
        waiting=waiting,
        retrying=held["retrying"] if waiting else 0,
        running=running,
        done=done,
        dead=dead,
        by_status={status: counts[status] for status in ReflectionStatus.values if status != ReflectionStatus.SKIPPED},
        stuck=leases.stuck(runs, now).count() if waiting + running else 0,
        oldest_waiting_seconds=(now - due).total_seconds() if due else 0.0,
        per_minute=60 * (done + dead) / seconds if seconds and done + dead and waiting + running else None,
        seconds_left=told.seconds_left if waiting + running else None,
    )


def _begun_at(team: Team, agent: Agent | None, now: datetime) -> datetime | None:
    with connection.cursor() as cursor:
        asked: dict[str, Any] = {"team": team.pk, "since": now - LOOKED_BACK, "agent": agent.pk if agent else None}
        cursor.execute(BEGUN, asked)
        return cursor.fetchone()[0]
