"""Writing messages in the transaction of what happened: what is rolled back is never told."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from hindsight_site.accounts.enums import WebhookEvent
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.webhooks.models import Webhook, WebhookDelivery
from hindsight_site.queue import enqueue

DELIVER = "hindsight_site.accounts.tasks.deliver_webhook"


def emit(team: Team, event: WebhookEvent, data: dict[str, Any]) -> None:
    """Tell every working webhook that asked for `event`. `data` holds ids, states and counts, never memory text."""
    for webhook in Webhook.objects.of(team).filter(disabled_at=None, events__contains=[event]):
        send(team, webhook.url, event, data, webhook=webhook)


def call_back(team: Team, url: str, event: WebhookEvent, data: dict[str, Any]) -> None:
    """Tell the address that a caller gave with its own request."""
    send(team, url, event, data, webhook=None)


def send(
    team: Team, url: str, event: WebhookEvent, data: dict[str, Any], *, webhook: Webhook | None
) -> WebhookDelivery:
    """Write one delivery and wake a worker."""
    payload = {"type": event.value, "timestamp": timezone.now().isoformat(), "team": team.slug, "data": data}
    delivery = WebhookDelivery.objects.create(team=team, webhook=webhook, url=url, event=event, payload=payload)
    enqueue(DELIVER, team.pk, delivery.pk)
    return delivery
