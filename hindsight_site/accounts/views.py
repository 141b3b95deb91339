"""Pages of a person's own: which team they work in, and in what colours."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from hindsight_site.accounts.enums import Theme
from hindsight_site.accounts.models import Membership, User
from hindsight_site.accounts.pages import SESSION_KEY


@require_POST
@login_required
def switch_team(request: HttpRequest) -> HttpResponse:
    """Work in another of one's teams from now on. 404 for a team one is not in."""
    mine = Membership.objects.filter(user=cast(User, request.user), team__suspended_at=None)
    chosen = request.POST.get("team", "")
    if chosen not in {str(team_id) for team_id in mine.values_list("team_id", flat=True)}:
        raise Http404
    request.session[SESSION_KEY] = chosen
    return redirect("overview")


@require_POST
@login_required
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep a person's choice of colours."""
    chosen = request.POST.get("theme", "")
    if chosen in Theme.values:
        person = cast(User, request.user)
        person.theme = chosen
        person.save(update_fields=["theme"])
    return redirect_back(request)


def redirect_back(request: HttpRequest) -> HttpResponseRedirect:
    """Go where the form says, when that is a page of this site; else to the overview."""
    target = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(target, allowed_hosts=None) and target.startswith("/")
    return HttpResponseRedirect(target) if ours else redirect("overview")
