"""What the queue and the schedule call. Arguments are ids; everything else is read from the rows."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from hindsight_site import stuck_work
from hindsight_site.accounts import leases
from hindsight_site.accounts.enums import JobKind
from hindsight_site.accounts.jobs import running, sweeping
from hindsight_site.accounts.models import Job, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue, oldest_waiting
from memories import reembedding_job
from reflection import pipeline, retention
from reflection.actions import REFLECT
from reflection.announcing import reflection_ended
from reflection.consolidation import job as consolidating
from reflection.consolidation import weekly
from reflection.enums import ReflectionStatus
from reflection.erasing import running as erasing
from reflection.exporting import running as exporting
from reflection.importing import running as importing
from reflection.invariants import running as invariants
from reflection.models import Reflection
from reflection.review import mails, sampling

logger = logging.getLogger(__name__)
# What each kind of job does.
HANDLERS: dict[str, running.Handler] = {
    JobKind.ERASURE: erasing.run,
    JobKind.EXPORT: exporting.run,
    JobKind.IMPORT: importing.run,
    JobKind.INVARIANTS: invariants.run,
    JobKind.CONSOLIDATION: consolidating.run,
    JobKind.REEMBEDDING: reembedding_job.run,
}
WAKE_UP_LOST_AFTER = timedelta(seconds=30)
DIED = "Its worker died at every attempt. Ask for a new reflection to try again."


def reflect(team_id: str, reflection_id: str) -> str:
    """Run one reflection; harmless when it runs elsewhere or has ended."""
    return pipeline.reflect(Team.objects.get(pk=team_id), uuid.UUID(reflection_id))


def run_job(team_id: str, job_id: str) -> str:
    """Carry one job on for a turn; harmless when it runs elsewhere, has ended, or its team is gone."""
    team = Team.objects.filter(pk=team_id, suspended_at=None).first()
    return running.run(team, uuid.UUID(job_id), HANDLERS) if team else "gone"


def check_invariants() -> str:
    """Ask for the nightly check of every team."""
    return f"{invariants.request_all()} asked for"


def sweep_jobs() -> str:
    """Wake workers for reflections and jobs whose wake-up or worker was lost; bury those that failed too often."""
    woken = buried = 0
    stuck = {"reflections": 0, "jobs": 0}
    oldest = oldest_waiting()
    for team in Team.objects.all():
        with team_transaction(team):
            jobs_woken, jobs_buried = sweeping.sweep(team)
            woken, buried = woken + jobs_woken, buried + jobs_buried + _bury(team)
            for reflection in leases.lost(Reflection.objects.of(team), WAKE_UP_LOST_AFTER, oldest)[:200]:
                enqueue(REFLECT, team.pk, reflection.pk)
                woken += 1
            for name, model in (("reflections", Reflection), ("jobs", Job)):
                stuck[name] += _stuck(team, name, model)
    stuck_work.tell(stuck)
    if woken or buried:
        logger.info("swept jobs", extra={"woken": woken, "buried": buried})
    return f"{woken} woken, {buried} buried"


def _stuck(team: Team, name: str, model: type[Reflection] | type[Job]) -> int:
    """How many are stuck; the log says whose, since the alarm is for the whole site."""
    count = leases.stuck(model.objects.of(team), timezone.now()).count()
    if count:
        logger.error("work is stuck", extra={"team": str(team.pk), "work": name, "count": count})
    return count


def _bury(team: Team) -> int:
    """A reflection whose worker died at every attempt ends visibly as failed."""
    dead = leases.dead(Reflection.objects.of(team), settings.REFLECTION_MAX_ATTEMPTS)
    buried = list(dead.select_for_update(of=("self",), skip_locked=True).select_related("team", "trace"))
    for reflection in buried:
        reflection.status, reflection.error = ReflectionStatus.FAILED, DIED
        reflection.finished_at, reflection.lease_until = timezone.now(), None
        reflection.save(update_fields=["status", "error", "finished_at", "lease_until"])
        reflection_ended(reflection)
    return len(buried)


def consolidate() -> str:
    """Ask for the week's look across every scope with new episodes."""
    return f"{weekly.request_due(timezone.now())} looks asked for"


def open_batches() -> str:
    """Open the week's review batch of every team whose week has begun."""
    return sampling.open_due(timezone.now())


def queue_review_mails() -> str:
    """Queue the mails about the review that are due, and carry on with those that wait."""
    return mails.queue_due(timezone.now())


def send_review_mail(team_id: str, mail_id: str) -> str:
    """Send one mail about the review; harmless when it was sent, is being sent, or its team is gone."""
    team = Team.objects.filter(pk=team_id, suspended_at=None).first()
    return mails.send(team, uuid.UUID(mail_id)) if team else "gone"


def purge_old() -> str:
    """Delete the traces and receipts that are older than their team keeps them."""
    return retention.purge(timezone.now())
