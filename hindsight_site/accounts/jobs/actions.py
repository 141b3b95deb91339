"""The only writers of jobs as those who ask see them: ask for one, cancel one."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts import audit, sealing
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import JobStatus
from hindsight_site.accounts.jobs.models import Job, JobChunk
from hindsight_site.accounts.models import ApiToken, Team, User
from hindsight_site.queue import enqueue
from hindsight_site.refusals import Conflict

RUN_JOB = "reflection.tasks.run_job"  # the one task that knows what every kind of job does
SEALED_ARGUMENTS = "job arguments"


@transaction.atomic
def request(
    *,
    team: Team,
    by: Actor,
    kind: str,
    arguments: dict[str, Any] | None = None,
    secret: dict[str, Any] | None = None,
    person: User | None = None,
    token: ApiToken | None = None,
) -> Job:
    """Queue a job and wake a worker. `arguments` are shown with the job; `secret` is sealed until it ends.

    The audit says what kind of job it is, never what it works on.
    """
    sealed = sealing.seal(json.dumps(secret).encode(), team_id=team.pk, purpose=SEALED_ARGUMENTS) if secret else None
    job = Job.objects.create(team=team, kind=kind, arguments=arguments or {}, sealed=sealed, person=person, token=token)
    after = audit.fingerprint({"job": job.pk, "kind": kind})
    audit.record(team=team, by=by, verb="job.requested", on=job, after=after, detail={"kind": kind})
    enqueue(RUN_JOB, team.pk, job.pk)
    return job


@transaction.atomic
def cancel(*, team: Team, by: Actor, job: Job) -> Job:
    """Stop a job: at once when it waits, else before its next batch. What it did until then stays done.

    Cancelling a cancelled job changes nothing. Raises `Conflict` when it has ended otherwise.
    """
    job = Job.objects.of(team).select_for_update().get(pk=job.pk)
    if job.status == JobStatus.CANCELLED or (job.cancel_requested_at and job.is_open):
        return job
    if not job.is_open:
        raise Conflict(f"This job has ended already: {job.get_status_display().lower()}.", code="job_ended")
    before, now = audit.fingerprint({"job": job.pk, "status": job.status}), timezone.now()
    job.cancel_requested_at = now
    if job.status == JobStatus.QUEUED:
        job.status, job.finished_at, job.sealed, job.lease_until = JobStatus.CANCELLED, now, None, None
        drop_files(job)
    job.save(update_fields=["cancel_requested_at", "status", "finished_at", "sealed", "lease_until"])
    after = audit.fingerprint({"job": job.pk, "status": job.status, "cancel": now})
    audit.record(team=team, by=by, verb="job.cancelled", on=job, before=before, after=after, detail={"kind": job.kind})
    return job


def drop_files(job: Job) -> None:
    """Delete what was uploaded for a job that will not run again, and a file that it did not finish."""
    JobChunk.objects.of(job.team).filter(job=job).delete()
