"""What the queue and the schedule call. Arguments are ids; everything else is read from the rows."""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings

from hindsight_site.accounts.models import Team
from hindsight_site.queue import enqueue
from memories.lifecycle import sweep as lifecycle
from memories.search import vector_indexes

SWEEP = "memories.tasks.sweep_team"
SLICE_SECONDS = 60  # the queue ends a task after two minutes


def sweep() -> str:
    """Have the rules of life applied to every team."""
    teams = Team.objects.filter(suspended_at=None).order_by("pk")
    for team in teams:
        enqueue(SWEEP, team.pk)
    return f"{len(teams)} teams"


def sweep_team(team_id: str) -> str:
    """Apply the rules of life to one team; a large team goes on in a task of its own."""
    team = Team.objects.filter(pk=team_id, suspended_at=None).first()
    if team is None:
        return "gone"
    run = lifecycle.sweep(team=team, seconds=SLICE_SECONDS)
    if run.paused:
        enqueue(SWEEP, team.pk)
    return f"{run.examined} examined, {run.changes} changed, {run.state}"


def sync_vector_indexes() -> str:
    """Have the indexes of big teams built by a process that connects as the owner of the tables.

    The role that serves owns none and cannot make one. Nobody waits for the process: building takes minutes,
    more than a task may, and a second one that is started meanwhile sees the first and ends.
    """
    if not vector_indexes.is_due():
        return "nothing to do"
    command = [
        sys.executable,
        str(settings.BASE_DIR / "manage.py"),
        "vector_indexes",
        "--data-dir",
        str(settings.DATA_DIR),
    ]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - our own command
    return "started"
