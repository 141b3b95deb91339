"""Pages of a team: its people, its settings, handing it over and deleting it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hindsight_site.accounts import deletion, invitations, people, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.enums import DeletionState, TeamRole
from hindsight_site.accounts.forms import TeamForm
from hindsight_site.accounts.models import Membership, Team, TeamDeletion
from hindsight_site.accounts.pages import SESSION_KEY, TeamRequest, person_page, team_page
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.refusals import Refused

ROLE_ORDER = {role: place for place, role in enumerate(TeamRole.values)}


@require_safe
@team_page()
def people_page(request: TeamRequest) -> HttpResponse:
    """Who is in the team and who is invited."""
    return show_people(request)


def show_people(
    request: TeamRequest, refusal: Refused | None = None, wanted: dict[str, str] | None = None
) -> HttpResponse:
    """Render the people page, with what was refused and the form as it was filled in."""
    in_gift = permissions.ROLES_IN_GIFT[request.membership.role]
    members = Membership.objects.of(request.team).select_related("user").order_by("created_at", "id")[:500]
    shown = sorted(members, key=lambda member: ROLE_ORDER[member.role])
    manages = permissions.can(request.membership, permissions.MANAGE)
    open_ones = invitations.open_invitations(request.team) if manages else []
    context = {
        "members": shown,
        "invitations": [(each, invitations.link(each)) for each in open_ones],
        "roles": [(role.value, role.label) for role in TeamRole if role in in_gift],
        "in_gift": in_gift,
        "only_owner": sum(member.role == TeamRole.OWNER for member in shown) == 1,
        "what_roles_may": permissions.WHAT_ROLES_MAY,
        "now": timezone.now(),
        "refusal": refusal,
        "wanted": wanted or {"role": TeamRole.REVIEWER.value},
    }
    return render(request, "accounts/team.html", context, status=refusal.status if refusal else 200)


def _tried(request: TeamRequest, act: Callable[[], Any], done: str) -> HttpResponse:
    """Do `act` and go back to the people page with `done`, or show there why it was refused."""
    try:
        act()
    except Refused as refusal:
        return show_people(request, refusal)
    messages.success(request, done)
    return redirect("team")


@require_POST
@team_page(permissions.MANAGE)
def change_role(request: TeamRequest, membership_id: uuid.UUID) -> HttpResponse:
    """Give a member another role."""
    member = _member(request, membership_id)
    role = request.POST.get("role", "")
    return _tried(
        request,
        lambda: people.change_role(
            team=request.team,
            by=person(request.user),
            membership=member,
            role=role,
            allowed=permissions.ROLES_IN_GIFT[request.membership.role],
        ),
        f"{member.user} is now {dict(TeamRole.choices).get(role, role).lower()}.",
    )


@require_POST
@team_page(permissions.MANAGE)
def remove_member(request: TeamRequest, membership_id: uuid.UUID) -> HttpResponse:
    """Remove somebody from the team."""
    member = _member(request, membership_id)
    return _tried(
        request,
        lambda: people.remove(
            team=request.team,
            by=person(request.user),
            membership=member,
            allowed=permissions.ROLES_IN_GIFT[request.membership.role],
        ),
        f"{member.user} is no longer in {request.team.name}. What they judged and wrote stays.",
    )


def _member(request: TeamRequest, membership_id: uuid.UUID) -> Membership:
    return get_object_or_404(Membership.objects.of(request.team).select_related("user"), pk=membership_id)


@require_POST
@team_page()
def leave(request: TeamRequest) -> HttpResponse:
    """Leave the team oneself."""
    try:
        people.leave(team=request.team, by=person(request.user), membership=request.membership)
    except Refused as refusal:
        return show_people(request, refusal)
    request.session.pop(SESSION_KEY, None)
    messages.success(request, f"You have left {request.team.name}.")
    return redirect("overview")


@require_http_methods(["GET", "HEAD", "POST"])
@person_page
def new_team(request: Any) -> HttpResponse:
    """Found another team and work in it from now on."""
    form = TeamForm(request.POST or None, initial={"time_zone": request.user.time_zone})
    if request.method == "POST" and form.is_valid():
        team = people.found_team(by=person(request.user), owner=request.user, **form.cleaned_data)
        request.session[SESSION_KEY] = str(team.pk)
        messages.success(request, f"{team.name} is yours. Connect its first agent.")
        return redirect("connect")
    return render(request, "accounts/team_new.html", {"form": form})


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def settings_page(request: TeamRequest) -> HttpResponse:
    """Name and time zone of the team; for owners, handing over and deleting too."""
    form = TeamForm(request.POST) if request.method == "POST" else TeamForm.of(request.team)
    if request.method == "POST" and form.is_valid():
        people.change_team(team=request.team, by=person(request.user), **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("team_settings")
    return _show_settings(request, form)


def _show_settings(request: TeamRequest, form: TeamForm, refusal: Refused | None = None) -> HttpResponse:
    heirs = Membership.objects.of(request.team).select_related("user").exclude(role=TeamRole.OWNER)
    owns = permissions.can(request.membership, permissions.OWN)
    context = {"form": form, "heirs": list(heirs.order_by("created_at")[:500]) if owns else [], "refusal": refusal}
    return render(request, "accounts/team_settings.html", context, status=refusal.status if refusal else 200)


@require_POST
@team_page(permissions.OWN)
def transfer(request: TeamRequest) -> HttpResponse:
    """Make another member owner and oneself admin."""
    try:
        heir = _member(request, uuid.UUID(request.POST.get("member", "")))
    except ValueError:
        return redirect("team_settings")
    try:
        people.transfer_ownership(team=request.team, by=person(request.user), giver=request.membership, heir=heir)
    except Refused as refusal:
        return _show_settings(request, TeamForm.of(request.team), refusal)
    messages.success(request, f"{heir.user} owns {request.team.name} now; you are an admin.")
    return redirect("team")


@require_POST
@team_page(permissions.OWN)
def delete_team(request: TeamRequest) -> HttpResponse:
    """Suspend the team at once and have it deleted, after its short name was typed."""
    try:
        job = deletion.request_deletion(
            team=request.team,
            by=person(request.user),
            requested_by=request.user,
            confirmation=request.POST.get("confirmation", ""),
        )
    except Refused as refusal:
        return _show_settings(request, TeamForm.of(request.team), refusal)
    request.session.pop(SESSION_KEY, None)
    return redirect("team_deletion", team_id=request.team.pk, deletion_id=job.pk)


@require_safe
@person_page
def deletion_page(request: Any, team_id: uuid.UUID, deletion_id: uuid.UUID) -> HttpResponse:
    """How far the deletion is, for the person who asked for it; also when the team is gone."""
    gone = Team(pk=team_id)
    enter_team(gone)
    asked_by_me = TeamDeletion.objects.of(gone).filter(requested_by=request.user)
    job = get_object_or_404(asked_by_me, pk=deletion_id)
    ended = job.state == DeletionState.DONE
    return render(request, "accounts/team_deletion.html", {"job": job, "ended": ended})
