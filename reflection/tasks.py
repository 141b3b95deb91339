"""What the queue and the schedule call. Arguments are ids; everything else is read from the rows."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue
from reflection import pipeline
from reflection.actions import REFLECT
from reflection.enums import ReflectionStatus
from reflection.models import Reflection
from reflection.review import sampling

logger = logging.getLogger(__name__)
WAKE_UP_LOST_AFTER = timedelta(seconds=30)


def reflect(team_id: str, reflection_id: str) -> str:
    """Run one reflection; harmless when it runs elsewhere or has ended."""
    return pipeline.reflect(Team.objects.get(pk=team_id), uuid.UUID(reflection_id))


def sweep_jobs() -> str:
    """Wake workers for reflections whose wake-up or worker was lost; bury those that failed too often."""
    woken = buried = 0
    for team in Team.objects.all():
        with team_transaction(team):
            buried += _bury(team)
            for reflection in _lost(team):
                enqueue(REFLECT, team.pk, reflection.pk)
                woken += 1
    if woken or buried:
        logger.info("swept jobs", extra={"woken": woken, "buried": buried})
    return f"{woken} woken, {buried} buried"


def _lost(team: Team) -> list[Reflection]:
    now = timezone.now()
    waiting = Q(status=ReflectionStatus.QUEUED, run_after__lt=now, created_at__lt=now - WAKE_UP_LOST_AFTER)
    abandoned = Q(status=ReflectionStatus.RUNNING, lease_until__lt=now)
    return list(Reflection.objects.of(team).filter(waiting | abandoned).order_by("run_after")[:200])


def _bury(team: Team) -> int:
    """A reflection whose worker died at every attempt ends visibly as failed."""
    now = timezone.now()
    return (
        Reflection.objects.of(team)
        .filter(
            status=ReflectionStatus.RUNNING,
            lease_until__lt=now,
            attempts__gte=settings.REFLECTION_MAX_ATTEMPTS,
        )
        .update(
            status=ReflectionStatus.FAILED,
            finished_at=now,
            lease_until=None,
            error="Its worker died at every attempt. Ask for a new reflection to try again.",
        )
    )


def open_batches() -> str:
    """Open the week's review batch of every team whose week has begun."""
    return sampling.open_due(timezone.now())
