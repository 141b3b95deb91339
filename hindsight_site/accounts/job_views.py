"""Pages of long work: what there is, how far one is, stopping it."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from hindsight_site import cursors
from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.enums import ChunkRole, JobKind, JobStatus
from hindsight_site.accounts.jobs import actions, files, queries, results
from hindsight_site.accounts.jobs.estimates import estimate
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused

LOOK_AGAIN_SECONDS = 2


@require_safe
@team_page()
def job_list(request: TeamRequest) -> HttpResponse:
    """Long work, newest first."""
    page = cursors.newest_first(queries.visible(request.team, None), request.GET)
    return render(request, "jobs/list.html", {"page": page})


@require_safe
@team_page()
def job_detail(request: TeamRequest, job_id: uuid.UUID) -> HttpResponse:
    """One job. While it is at work the page looks again by itself, without a script."""
    job = queries.get(request.team, None, job_id)
    told = estimate(done=job.done, total=job.total, begun_at=job.begun_at, now=timezone.now())
    is_export = job.kind == JobKind.EXPORT and job.status == JobStatus.DONE
    context = {
        "job": job,
        "progress": told,
        "rows": results.rows(job.result),
        "asked": results.rows(job.arguments),
        "file_size": files.size(job, ChunkRole.OUTPUT) if is_export else 0,
        "is_export": is_export,
        "again": LOOK_AGAIN_SECONDS if job.is_open else 0,
    }
    return render(request, "jobs/job.html", context)


@require_POST
@team_page(permissions.MANAGE)
def job_cancel(request: TeamRequest, job_id: uuid.UUID) -> HttpResponse:
    """Stop a job."""
    job = queries.get(request.team, None, job_id)
    try:
        job = actions.cancel(team=request.team, by=person(request.user), job=job)
    except Refused as refusal:
        messages.error(request, refusal.message)
    else:
        ended = job.status == JobStatus.CANCELLED
        messages.success(request, "Cancelled." if ended else "It stops before its next step.")
    return redirect("job", job_id=job_id)
