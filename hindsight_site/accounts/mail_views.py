"""Pages about the mails that people get unasked: choosing on the account page, and ending one from a mail."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from hindsight_site.accounts import mail_choices
from hindsight_site.accounts.pages import person_page
from hindsight_site.refusals import NotFound


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
