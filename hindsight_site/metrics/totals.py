"""What all teams together have recalled, reflected and spent: read from their rows, where the truth is.

Row-level security shows one team at a time, so the teams are visited one after the other, by two quick
statements each. A visit's numbers are kept: when there are more teams than can be seen in the time that a
scrape may take, those that were seen longest ago are visited, and the rest counts as last seen.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.quotas import period_of
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.metrics.text import Metric, by, one

KEPT_SECONDS = 15.0  # how long a visit's numbers are good for
BUDGET_SECONDS = 1.0  # what the visits of one scrape may take together

Key = tuple[str, str]  # what is counted, in which state

# By indexes that begin with the team and the time, or hold only what is open. The oldest task of the table is
# one that a worker may take now; a run that waits for its next attempt is not late.
OF_A_TEAM = """
SELECT CASE WHEN degraded THEN 'recall degraded' ELSE 'recall' END, status, count(*)
FROM memories_recall WHERE team_id = %(team)s AND created_at > now() - interval '5 minutes' GROUP BY 1, 2
UNION ALL
SELECT 'recall ms', '', coalesce(sum(took_ms), 0)
FROM memories_recall WHERE team_id = %(team)s AND created_at > now() - interval '5 minutes'
UNION ALL
SELECT 'reflection', status, count(*) FROM reflection_reflection
WHERE team_id = %(team)s AND status IN ('queued', 'running') GROUP BY 2
UNION ALL
SELECT 'reflection', status, count(*) FROM reflection_reflection
WHERE team_id = %(team)s AND status NOT IN ('queued', 'running') AND created_at > now() - interval '1 day' GROUP BY 2
UNION ALL
SELECT 'oldest', 'reflection', coalesce(extract(epoch FROM now() - min(run_after)), 0) FROM reflection_reflection
WHERE team_id = %(team)s AND status IN ('queued', 'running') AND status = 'queued' AND run_after <= now()
UNION ALL
SELECT 'job', status, count(*) FROM accounts_job
WHERE team_id = %(team)s AND status IN ('queued', 'running') GROUP BY 2
UNION ALL
SELECT 'job', status, count(*) FROM accounts_job
WHERE team_id = %(team)s AND status NOT IN ('queued', 'running') AND created_at > now() - interval '1 day' GROUP BY 2
UNION ALL
SELECT 'oldest', 'job', coalesce(extract(epoch FROM now() - min(run_after)), 0) FROM accounts_job
WHERE team_id = %(team)s AND status IN ('queued', 'running') AND status = 'queued' AND run_after <= now()
UNION ALL
SELECT 'tokens', '', coalesce(sum(amount), 0) FROM accounts_teamusage
WHERE team_id = %(team)s AND kind = 'model_tokens' AND period = %(month)s
UNION ALL
(SELECT 'findings', '', coalesce((result->>'findings')::numeric, 0) FROM accounts_job
WHERE team_id = %(team)s AND kind = 'invariants' AND status = 'done' ORDER BY created_at DESC LIMIT 1)
"""


@dataclass(frozen=True, slots=True)
class Visit:
    """A team's numbers, and when they were read (monotonic seconds)."""

    at: float
    numbers: Mapping[Key, float]


_visits: dict[uuid.UUID, Visit] = {}
_reading = threading.Lock()  # scrapes at once read once


def read() -> list[Metric]:
    """The metrics of all teams. Call inside a transaction of its own. Raises DatabaseError."""
    with _reading:
        _visit_those_due()
        return told(list(_visits.values()), time.monotonic())


def _visit_those_due() -> None:
    teams = {team.pk: team for team in Team.objects.only("pk")}
    for gone in _visits.keys() - teams.keys():
        del _visits[gone]
    begun = time.monotonic()
    long_ago = {pk: _visits[pk].at if pk in _visits else float("-inf") for pk in teams}
    for pk in sorted(long_ago, key=long_ago.__getitem__):
        if time.monotonic() - begun > BUDGET_SECONDS or begun - long_ago[pk] < KEPT_SECONDS:
            break
        _visits[pk] = Visit(time.monotonic(), _numbers_of(teams[pk]))


def _numbers_of(team: Team) -> dict[Key, float]:
    month, _ = period_of(Spent.MODEL_TOKENS, timezone.now())
    enter_team(team)
    with connection.cursor() as cursor:
        cursor.execute(OF_A_TEAM, {"team": team.pk, "month": month})
        return {(what, state): float(number) for what, state, number in cursor.fetchall()}


def told(visits: list[Visit], now: float) -> list[Metric]:
    """The metrics that the visits add up to: sums, and of ages the highest."""
    sums: Counter[Key] = Counter()
    oldest = {"reflection": 0.0, "job": 0.0}
    for visit in visits:
        for (what, state), number in visit.numbers.items():
            if what == "oldest":
                oldest[state] = max(oldest[state], number)
            else:
                sums[what, state] += number  # type: ignore[assignment]
    recalls = Metric(
        "hindsight_recalls_5m",
        "Recalls of the last five minutes, by how they ended and whether they were cut short.",
        {
            (("status", status), ("degraded", degraded)): sums[what, status]
            for what, degraded in (("recall", "false"), ("recall degraded", "true"))
            for status in ("matched", "no_match")
        },
    )
    return [
        one("hindsight_teams", "Teams.", len(visits)),
        recalls,
        one("hindsight_recall_milliseconds_5m", "What those recalls took, added up.", sums["recall ms", ""]),
        by(
            "hindsight_reflections",
            "Reflections that are open, and those of the last 24 hours that ended, by status.",
            "status",
            _states(sums, "reflection", _REFLECTION_STATES),
        ),
        by(
            "hindsight_jobs",
            "Jobs that are open, and those of the last 24 hours that ended, by status.",
            "status",
            _states(sums, "job", _JOB_STATES),
        ),
        by(
            "hindsight_oldest_due_seconds",
            "How long the oldest reflection and job has been due without a worker taking it.",
            "work",
            oldest,
        ),
        one("hindsight_model_tokens_month", "Model tokens spent this month (UTC).", sums["tokens", ""]),
        one(
            "hindsight_integrity_findings",
            "Rows that contradict each other, as each team's last integrity check found.",
            sums["findings", ""],
        ),
        one(
            "hindsight_totals_age_seconds",
            "How long ago the team was visited whose numbers above are the oldest.",
            max((now - visit.at for visit in visits), default=0.0),
        ),
    ]


_REFLECTION_STATES = ("queued", "running", "stored", "nothing_new", "rejected", "skipped", "failed")
_JOB_STATES = ("queued", "running", "done", "failed", "cancelled")


def _states(sums: Mapping[Key, float], what: str, states: tuple[str, ...]) -> dict[str, float]:
    """Every state, with 0 for those that no row is in: an alert on a line that is not there never fires."""
    return {state: sums[what, state] for state in states}
