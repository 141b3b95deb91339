"""Pages of webhooks: which addresses are told of what, and what became of each message."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hindsight_site import cursors
from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import Actor, person
from hindsight_site.accounts.forms import add_refusal
from hindsight_site.accounts.models import Webhook, WebhookDelivery
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.accounts.webhooks import actions, delivering
from hindsight_site.refusals import Refused


class WebhookForm(forms.Form):
    """Where to send what."""

    url = forms.CharField(
        label="Address",
        max_length=500,
        widget=forms.URLInput({"placeholder": "https://example.org/hindsight", "autocomplete": "off"}),
        help_text="A public address of yours that takes POST requests. Redirects are not followed.",
    )
    events = forms.MultipleChoiceField(
        label="Tell it when",
        choices=[(event.value, event.label) for event in actions.OFFERED],
        widget=forms.CheckboxSelectMultiple,
    )
    description = forms.CharField(label="What it is for", max_length=200, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def webhooks_page(request: TeamRequest) -> HttpResponse:
    """The team's webhooks, and a form for another one. The secret is shown once, in the answer to it."""
    form, secret = WebhookForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        try:
            webhook, secret = actions.create_webhook(team=request.team, by=person(request.user), **form.cleaned_data)
        except Refused as refusal:
            add_refusal(form, refusal)
        else:
            return _once(request, webhook, secret)
    rows = Webhook.objects.of(request.team).order_by("-created_at", "-pk")
    context = {"webhooks": list(rows), "form": form, "secret": delivering.callback_secret(request.team)}
    return render(request, "accounts/webhooks.html", context, status=422 if form.errors else 200)


def _once(request: TeamRequest, webhook: Webhook, secret: str) -> HttpResponse:
    answer = render(request, "accounts/webhook_secret.html", {"webhook": webhook, "secret": secret})
    answer["Cache-Control"] = "no-store"
    return answer


@require_safe
@team_page(permissions.MANAGE)
def webhook_page(request: TeamRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """One webhook, and what was sent to it in the last month."""
    webhook = get_object_or_404(Webhook.objects.of(request.team), pk=webhook_id)
    rows = WebhookDelivery.objects.of(request.team).filter(webhook=webhook)
    page = cursors.newest_first(rows, request.GET)
    events = [event.label for event in actions.OFFERED if event.value in webhook.events]
    return render(request, "accounts/webhook.html", {"webhook": webhook, "page": page, "events": events})


def _ping(request: TeamRequest, by: Actor, webhook: Webhook) -> str:
    actions.ping(team=request.team, by=by, webhook=webhook)
    return "A test message is on its way; its line below says how it ended."


def _switch(works: bool) -> Callable[[TeamRequest, Actor, Webhook], str]:
    def act(request: TeamRequest, by: Actor, webhook: Webhook) -> str:
        actions.change_webhook(team=request.team, by=by, webhook=webhook, works=works)
        return "It is told again." if works else "It is told nothing any more."

    return act


ACTS: dict[str, Callable[[TeamRequest, Actor, Webhook], str]] = {
    "ping": _ping,
    "on": _switch(True),
    "off": _switch(False),
}


@require_POST
@team_page(permissions.MANAGE)
def webhook_act(request: TeamRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Test it, switch it on or off, give it a new secret, or delete it: the form's `act`."""
    webhook = get_object_or_404(Webhook.objects.of(request.team), pk=webhook_id)
    by, wanted = person(request.user), request.POST.get("act", "")
    if wanted == "secret":
        return _once(request, webhook, actions.rotate_secret(team=request.team, by=by, webhook=webhook))
    if wanted == "delete":
        actions.delete_webhook(team=request.team, by=by, webhook=webhook)
        messages.success(request, "Deleted, with its log.")
        return redirect("webhooks")
    if act := ACTS.get(wanted):
        _told(request, lambda: act(request, by, webhook))
    return redirect("webhook", webhook_id=webhook.pk)


@require_POST
@team_page(permissions.MANAGE)
def webhook_redeliver(request: TeamRequest, delivery_id: uuid.UUID) -> HttpResponse:
    """Send one message again."""
    rows = WebhookDelivery.objects.of(request.team).exclude(webhook=None).select_related("webhook")
    delivery = get_object_or_404(rows, pk=delivery_id)

    def again() -> str:
        actions.redeliver(team=request.team, by=person(request.user), delivery=delivery)
        return "It is on its way again."

    _told(request, again)
    return redirect("webhook", webhook_id=delivery.webhook_id)


def _told(request: Any, act: Callable[[], str]) -> None:
    try:
        messages.success(request, act())
    except Refused as refusal:
        messages.error(request, refusal.message)
