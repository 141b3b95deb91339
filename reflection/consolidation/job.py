"""The look across the last week's episodes, asked for by a person: scope by scope, to be watched and stopped."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from django.db import transaction

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import JOB_OPEN, JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Scope
from reflection import pipeline
from reflection.consolidation import weekly
from reflection.enums import REFLECTION_OPEN, ReflectionStatus
from reflection.models import Reflection, ReflectionResult


@transaction.atomic
def request_consolidation_job(*, team: Team, by: Actor, person: User | None = None) -> Job:
    """Queue a look across every scope's last week; one that waits or is at work is returned."""
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # two clicks ask for one
    standing = Job.objects.of(team).filter(kind=JobKind.CONSOLIDATION, status__in=JOB_OPEN).first()
    return standing or jobs.request(team=team, by=by, kind=JobKind.CONSOLIDATION, person=person)


def run(work: Work) -> dict[str, Any]:
    """Ask for the look of one scope after the other and carry it out. Stopped, it has asked for no further one."""
    with team_transaction(work.team):
        scopes = list(Scope.objects.of(work.team).select_related("agent").order_by("created_at", "pk"))
    work.plan(len(scopes), "looking across the week, scope by scope")
    for scope in scopes[work.cursor.get("place", 0) :]:
        with work.batch(1, doing=f"looking across {scope.name}"):
            look = weekly.request_in_scope(work.team, scope, work.job.created_at, by=work.by, again=True)
            looks = [*work.cursor.get("looks", []), *([str(look.pk)] if look else [])]
            work.cursor.update(place=work.cursor.get("place", 0) + 1, looks=looks)
        if look is not None:
            pipeline.reflect(work.team, look.pk)  # unless a worker was faster: then that one does it
    return _told(work.team, [uuid.UUID(ident) for ident in work.cursor.get("looks", [])], len(scopes))


def _told(team: Team, looks: list[uuid.UUID], scopes: int) -> dict[str, Any]:
    with team_transaction(team):
        states = Counter(Reflection.objects.of(team).filter(pk__in=looks).values_list("status", flat=True))
        memories = ReflectionResult.objects.of(team).filter(reflection__in=looks).count()
    ended = {
        str(ReflectionStatus(status).label).lower(): n for status, n in states.items() if status not in REFLECTION_OPEN
    }
    waiting = sum(states[status] for status in REFLECTION_OPEN)
    result = {"scopes": scopes, "with_episodes_of_the_week": len(looks), "looks": ended, "memories_written": memories}
    return {**result, "still_at_work": waiting} if waiting else result
