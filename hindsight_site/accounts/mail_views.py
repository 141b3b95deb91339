"""Pages about the mails that people get unasked: choosing on the account page, ending one, following its link."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hindsight_site.accounts import mail_choices
from hindsight_site.accounts.pages import SESSION_KEY, current_membership, person_page
from hindsight_site.refusals import NotFound

LED_TO = frozenset({"review", "review-metrics", "quarantine"})  # the pages that mails lead to, by name


@require_POST
@person_page
def choose_mails(request: Any) -> HttpResponse:
    """Keep which mails the person wants."""
    mail_choices.choose(person=request.user, kinds=request.POST.getlist("mails"))
    messages.success(request, "Saved.")
    return redirect("account")


@csrf_exempt  # the link itself is the proof, and a mail program that posts has no cookie of ours
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask before ending a kind of mail; end it when posted, by the page's button or by a mail program (RFC 8058).

    Looking changes nothing: programs that scan mails follow every link.
    """
    try:
        found = mail_choices.find(token)
    except NotFound as refusal:
        return render(request, "accounts/unsubscribe.html", {"refusal": refusal}, status=404)
    if request.method == "POST":
        mail_choices.switch_off(person=found.person, kind=found.kind)
    done = request.method == "POST" or found.kind in found.person.mails_off
    return render(request, "accounts/unsubscribe.html", {"kind": found.kind, "done": done})


@require_safe
@login_required
def follow(request: Any, team_id: uuid.UUID, page: str) -> HttpResponse:
    """Open a page in the team that a mail was about, and say so where the person worked in another one.

    404 for a team they are not in, and for a page that no mail leads to.
    """
    current = current_membership(request)
    found = next((one for one in request.memberships if one.team_id == team_id), None)
    if found is None or current is None or page not in LED_TO:
        raise Http404
    if found.team_id != current.team_id:
        request.session[SESSION_KEY] = str(team_id)
        messages.info(
            request, f"You are now in {found.team.name}: the mail was about it. You were in {current.team.name}."
        )
    return redirect(page)
