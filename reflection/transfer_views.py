"""Pages of exports and imports, and of looking across the week."""

from __future__ import annotations

import uuid

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.enums import JobKind
from hindsight_site.accounts.jobs import queries
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Invalid, Refused
from memories.enums import ScopeKind
from memories.models import Scope
from reflection.consolidation.job import request_consolidation_job
from reflection.exporting.running import request_export
from reflection.exporting.serving import attachment
from reflection.importing.running import ImportFormat, request_import

NAMES = ("format", "scope", "agent")


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def export(request: TeamRequest) -> HttpResponse:
    """Say what an export holds, and ask for one."""
    if request.method == "POST":
        job = request_export(team=request.team, by=person(request.user), person=request.user)
        return redirect("job", job_id=job.pk)
    return render(request, "jobs/export.html")


@require_safe
@team_page(permissions.MANAGE)
def export_file(request: TeamRequest, job_id: uuid.UUID) -> StreamingHttpResponse:
    """Download the file of a finished export."""
    return attachment(queries.get(request.team, None, job_id, kind=JobKind.EXPORT))


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def import_page(request: TeamRequest) -> HttpResponse:
    """Choose a file and where its memories go."""
    chosen = {name: request.POST.get(name, "") for name in NAMES}
    if request.method == "GET":
        return _show(request, chosen)
    try:
        sent = request.FILES.get("file")
        if not isinstance(sent, UploadedFile):
            raise Invalid("Choose a file first.")
        job = request_import(
            team=request.team,
            by=person(request.user),
            data=sent.chunks(),
            format=chosen["format"] or ImportFormat.AUTO,
            scope=chosen["scope"],
            agent=chosen["agent"],
            person=request.user,
        )
    except Refused as refusal:
        return _show(request, chosen, refusal)
    return redirect("job", job_id=job.pk)


def _show(request: TeamRequest, chosen: dict[str, str], refusal: Refused | None = None) -> HttpResponse:
    shared = Scope.objects.of(request.team).filter(kind=ScopeKind.SHARED).order_by("slug")[:200]
    context = {
        "formats": ImportFormat.choices,
        "scopes": [(scope.slug, scope.name) for scope in shared],
        "agents": list(Agent.objects.of(request.team).order_by("slug").values_list("slug", "name")[:200]),
        "chosen": chosen,
        "refusal": refusal,
    }
    return render(request, "jobs/import.html", context, status=refusal.status if refusal else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def consolidate(request: TeamRequest) -> HttpResponse:
    """Say what a look across the week is, and ask for one."""
    if request.method == "POST":
        job = request_consolidation_job(team=request.team, by=person(request.user), person=request.user)
        return redirect("job", job_id=job.pk)
    return render(request, "jobs/consolidate.html")
