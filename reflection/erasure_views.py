"""The page of an erasure: what is to go, what that would take, and a typed word."""

from __future__ import annotations

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from reflection.erasing.asking import CONFIRMATION, request_erasure
from reflection.erasing.preview import preview
from reflection.erasing.targets import Target, TargetKind, target_of


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def erase(request: TeamRequest) -> HttpResponse:
    """Choose, look, confirm: two posts, so that nothing about a person stands in an address or a log."""
    sent = request.POST if request.method == "POST" else request.GET
    chosen = {"target": sent.get("target", TargetKind.PERSON), "values": sent.get("values", "")}
    if request.method == "GET":
        return _show(request, chosen)
    try:
        target = read_target(request.POST)
        if "confirmation" in request.POST:
            job = request_erasure(
                team=request.team,
                by=person(request.user),
                target=target,
                confirmation=request.POST["confirmation"],
                person=request.user,
            )
            return redirect("job", job_id=job.pk)
        return _show(request, chosen, found=preview(request.team, target))
    except Refused as refusal:
        shown = preview(request.team, target) if refusal.code == "not_confirmed" else None
        return _show(request, chosen, refusal, found=shown)


def read_target(form: QueryDict) -> Target:
    """The target as typed: a person's identifiers one a line. Raises `Invalid`."""
    kind, typed = form.get("target", ""), form.get("values", "").replace("\x00", "")
    return target_of(kind, typed.splitlines() if kind == TargetKind.PERSON else [typed])


def _show(
    request: TeamRequest, chosen: dict[str, str], refusal: Refused | None = None, found: object = None
) -> HttpResponse:
    context = {
        "kinds": TargetKind.choices,
        "chosen": chosen,
        "agents": list(Agent.objects.of(request.team).order_by("slug").values_list("slug", flat=True)[:200]),
        "found": found,
        "refusal": refusal,
        "word": CONFIRMATION,
    }
    return render(request, "jobs/erase.html", context, status=refusal.status if refusal else 200)
