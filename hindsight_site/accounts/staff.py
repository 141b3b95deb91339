"""The admin works in one team at a time: row-level security holds for staff as for everyone."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, cast

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from hindsight_site.accounts import audit
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import enter_team

SESSION_KEY = "staff_team"


class StaffSite(admin.AdminSite):
    """Every page shows which team staff work in; until one is chosen the lists of team data are empty."""

    site_header = "Hindsight administration"
    site_title = "Hindsight"
    index_title = "Administration"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        def in_team(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if team := chosen_team(request):
                enter_team(team)
            return view(request, *args, **kwargs)

        return super().admin_view(update_wrapper(in_team, view), cacheable)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        if self.has_permission(request):
            context |= {"staff_team": chosen_team(request), "teams": Team.objects.order_by("name")[:500]}
        return context

    def get_urls(self) -> list[Any]:
        choose = require_POST(self.admin_view(self.work_in))
        return [path("work-in/", choose, name="work_in"), *super().get_urls()]

    def work_in(self, request: HttpRequest) -> HttpResponse:
        """Work in another team from now on; the team's audit says that staff came in."""
        team = Team.objects.filter(slug=request.POST.get("team", "")).first()
        if team is None:
            messages.error(request, "There is no such team.")
            return redirect("admin:index")
        request.session[SESSION_KEY] = str(team.pk)
        enter_team(team)
        as_it_is = audit.state_of(team)
        audit.record(
            team=team, by=audit.person(cast(User, request.user)), verb="staff.entered", on=team, before=as_it_is
        )
        messages.success(request, f"You work in {team} now.")
        return redirect("admin:index")


def chosen_team(request: HttpRequest) -> Team | None:
    """The team that staff work in, if they chose one."""
    if not hasattr(request, "staff_team"):
        ident = request.session.get(SESSION_KEY)
        request.staff_team = Team.objects.filter(pk=ident).first() if ident else None  # type: ignore[attr-defined]
    return request.staff_team  # type: ignore[attr-defined]
