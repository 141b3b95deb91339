"""What runs each minute: wake lost jobs, bury dead ones, delete files whose time is over."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from hindsight_site.accounts import leases
from hindsight_site.accounts.enums import JobStatus
from hindsight_site.accounts.jobs import actions, files
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import end
from hindsight_site.accounts.models import Team
from hindsight_site.queue import enqueue

WAKE_UP_LOST_AFTER = timedelta(seconds=30)
DIED = "Its worker died at every attempt. Ask for it again; what was done until then stays done."


def sweep(team: Team) -> tuple[int, int]:
    """Sweep one team, inside its transaction. Returns how many jobs were woken and how many buried."""
    jobs = Job.objects.of(team).select_related("team")
    buried = list(leases.dead(jobs, settings.JOB_MAX_ATTEMPTS).select_for_update(of=("self",), skip_locked=True))
    for job in buried:
        end(job, JobStatus.FAILED, error=DIED)
    called_off = jobs.filter(~Q(cancel_requested_at=None), status=JobStatus.QUEUED)
    for job in called_off.select_for_update(of=("self",), skip_locked=True):
        end(job, JobStatus.CANCELLED)
    woken = list(leases.lost(jobs.filter(attempts__lt=settings.JOB_MAX_ATTEMPTS), WAKE_UP_LOST_AFTER)[:200])
    for job in woken:
        enqueue(actions.RUN_JOB, team.pk, job.pk)
    files.purge(team)
    return len(woken), len(buried)
