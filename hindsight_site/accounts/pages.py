"""What a page needs to know of its reader: the team, the role, and what the shell shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from hindsight_site.accounts import permissions
from hindsight_site.accounts.models import Membership, Team, User
from hindsight_site.accounts.tenancy import enter_person, enter_team

SESSION_KEY = "team_id"


class TeamRequest(HttpRequest):
    """A request of a signed-in person, in one of their teams."""

    user: User
    team: Team
    membership: Membership


def team_page(permission: str = permissions.READ) -> Callable:
    """Decorate a view: the reader is signed in, has a team, and may. Sets `team` and `membership`."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @login_required
        @wraps(view)
        def wrapper(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
            membership = current_membership(request)
            if membership is None:
                return render(request, "accounts/no_team.html", status=403)
            request.membership, request.team = membership, membership.team
            enter_team(request.team)
            permissions.check_can(membership, permission)
            with timezone.override(request.user.time_zone):
                return view(request, *args, **kwargs)

        return wrapper

    return decorate


def person_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view about the person and not a team: signed in, in a team or in none."""

    @login_required
    @wraps(view)
    def wrapper(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        membership = current_membership(request)
        if membership is not None:
            request.membership, request.team = membership, membership.team
            enter_team(request.team)
        with timezone.override(request.user.time_zone):
            return view(request, *args, **kwargs)

    return wrapper


def current_membership(request: HttpRequest) -> Membership | None:
    """The membership this person works in: the one chosen in the switcher, else the oldest."""
    person = cast(User, request.user)
    enter_person(person)
    mine = Membership.objects.select_related("team").filter(user=person, team__suspended_at=None)
    chosen = request.session.get(SESSION_KEY)
    memberships = list(mine.order_by("created_at")[:50])
    request.memberships = memberships  # type: ignore[attr-defined] # the switcher lists them
    for membership in memberships:
        if str(membership.team_id) == chosen:
            return membership
    return memberships[0] if memberships else None


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of every page: team, role, what the role may, and the teams to switch to."""
    membership = getattr(request, "membership", None)
    if membership is None:
        user = getattr(request, "user", None)
        return {"frame": "base_plain.html", "theme": getattr(user, "theme", "")}
    return {
        "frame": "base.html",
        "team": membership.team,
        "membership": membership,
        "may": permissions.ROLES[membership.role],
        "memberships": getattr(request, "memberships", []),
        "theme": request.user.theme,  # type: ignore[union-attr]
    }
