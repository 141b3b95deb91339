"""What the queue and the schedule call. Arguments are ids; everything else is read from the rows."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import timedelta

from django.conf import settings

from hindsight_site.accounts.models import Team
from hindsight_site.queue import enqueue
from memories import vector_outbox
from memories.lifecycle import sweep as lifecycle
from memories.search import engines, vector_indexes
from memories.search.engines import EngineError

logger = logging.getLogger(__name__)
SWEEP = "memories.tasks.sweep_team"
SLICE_SECONDS = 60  # the queue ends a task after two minutes
TEAM_FORGOTTEN_WITHIN = timedelta(days=30)  # of an engine that was down when the team was deleted


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


def carry_vectors_over(team_id: str) -> str:
    """Tell the vector index what became of a team's vectors; a large lot goes on in a task of its own."""
    team = Team.objects.filter(pk=team_id, suspended_at=None).first()
    if team is None or not engines.is_external():
        return "nothing to do"
    try:
        done = vector_outbox.carry_over(team, engines.current(), seconds=SLICE_SECONDS / 2)
    except EngineError as error:
        logger.warning("vectors not carried over: %s", error)  # stays noted: the sweep comes back to it
        return "the vector index failed"
    if done and vector_outbox.is_waiting(team):
        enqueue(vector_outbox.CARRY_OVER, team.pk)
    return f"{done} memories"


def sweep_vector_changes() -> str:
    """Wake workers for what the vector index was not told because a wake-up was lost or it was down."""
    return f"{vector_outbox.wake_lost()} woken" if engines.is_external() else "nothing to do"


def forget_vectors_of_deleted_teams() -> str:
    """Remove what the vector index still holds of teams that are gone."""
    if not engines.is_external():
        return "nothing to do"
    try:
        return f"{vector_outbox.forget_deleted_teams(engines.current(), within=TEAM_FORGOTTEN_WITHIN)} forgotten"
    except EngineError as error:
        logger.warning("vectors of deleted teams not removed: %s", error)
        return "the vector index failed"
