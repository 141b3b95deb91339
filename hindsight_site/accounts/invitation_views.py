"""Inviting people, and the page that an invitation's link opens."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from hindsight_site.accounts import invitations, mailing, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Invitation, User
from hindsight_site.accounts.pages import SESSION_KEY, TeamRequest, team_page
from hindsight_site.accounts.team_views import show_people
from hindsight_site.refusals import NotFound, Refused


@require_POST
@team_page(permissions.MANAGE)
def invite(request: TeamRequest) -> HttpResponse:
    """Invite somebody by e-mail."""
    email, role = request.POST.get("email", ""), request.POST.get("role", "")
    try:
        invitation = invitations.invite(
            team=request.team,
            by=person(request.user),
            email=email,
            role=role,
            allowed=permissions.ROLES_IN_GIFT[request.membership.role],
            inviter=request.user,
        )
    except Refused as refusal:
        return show_people(request, refusal, {"email": email, "role": role})
    tell(request, f"{invitation.email} has mail. The link works once, for seven days.", invitation)
    return redirect("team")


@require_POST
@team_page(permissions.MANAGE)
def resend(request: TeamRequest, invitation_id: uuid.UUID) -> HttpResponse:
    """Mail an invitation again; the former link stops working."""
    invitation = _invitation(request, invitation_id)
    try:
        invitations.resend(
            team=request.team,
            by=person(request.user),
            invitation=invitation,
            allowed=permissions.ROLES_IN_GIFT[request.membership.role],
            sender=request.user,
        )
    except Refused as refusal:
        return show_people(request, refusal)
    tell(request, f"{invitation.email} has mail again; the former link works no more.", invitation)
    return redirect("team")


@require_POST
@team_page(permissions.MANAGE)
def revoke(request: TeamRequest, invitation_id: uuid.UUID) -> HttpResponse:
    """Take an invitation back."""
    invitation = _invitation(request, invitation_id)
    try:
        invitations.revoke(team=request.team, by=person(request.user), invitation=invitation)
    except Refused as refusal:
        return show_people(request, refusal)
    messages.success(request, f"The invitation of {invitation.email} is taken back.")
    return redirect("team")


def tell(request: TeamRequest, done: str, invitation: Invitation) -> None:
    """Say that a mail was sent, or as it is: where it went instead, and to hand the link on."""
    if instead := mailing.where_instead():
        messages.warning(request, f"{instead} Hand the link below on to {invitation.email} yourself.")
    else:
        messages.success(request, done)


def _invitation(request: TeamRequest, invitation_id: uuid.UUID) -> Invitation:
    return get_object_or_404(Invitation.objects.of(request.team), pk=invitation_id)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def open_invitation(request: Any, token: str) -> HttpResponse:
    """What one is invited to, for everybody who has the link; accepting wants the invited address."""
    try:
        found = invitations.find(token)
    except NotFound as refusal:
        request.session.pop(invitations.SESSION_KEY, None)
        return render(request, "accounts/invitation_gone.html", {"refusal": refusal}, status=404)
    invitation = found.invitation
    if request.method == "POST" and request.user.is_authenticated:
        return _accept(request, found)
    context = {
        "invitation": invitation,
        "invited_to": found.team,
        "is_theirs": request.user.is_authenticated and request.user.email.lower() == invitation.email,
        "has_account": User.objects.filter(email__iexact=invitation.email).exists(),
        "here": request.path,
    }
    if not request.user.is_authenticated:
        request.session[invitations.SESSION_KEY] = token
    return render(request, "accounts/invitation.html", context)


def _accept(request: Any, found: invitations.Found) -> HttpResponse:
    invitations.accept(team=found.team, by=person(request.user), invitation=found.invitation, person=request.user)
    request.session[SESSION_KEY] = str(found.team.pk)
    messages.success(request, f"Welcome to {found.team.name}.")
    return redirect("overview")
