"""The only writers of webhooks."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from hindsight_site import outbound
from hindsight_site.accounts import audit, sealing
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import DELIVERY_OPEN, WebhookEvent
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.webhooks import signing
from hindsight_site.accounts.webhooks.delivering import SEALED_SECRET
from hindsight_site.accounts.webhooks.emitting import DELIVER, send
from hindsight_site.accounts.webhooks.models import Webhook, WebhookDelivery
from hindsight_site.queue import enqueue
from hindsight_site.refusals import Conflict, FieldError, Invalid

MOST = 20  # of a team
OFFERED = tuple(event for event in WebhookEvent if event != WebhookEvent.PING)


@transaction.atomic
def create_webhook(
    *, team: Team, by: Actor, url: str, events: Collection[str], description: str = ""
) -> tuple[Webhook, str]:
    """Create a webhook; the secret is returned once. Raises `Invalid` for an address or event that cannot be."""
    _check(url, events)
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # so that two calls count one after the other
    if Webhook.objects.of(team).count() >= MOST:
        raise Conflict(f"A team has at most {MOST} webhooks: delete one first.", code="too_many_webhooks")
    secret = signing.new_secret()
    webhook = Webhook(team=team, url=url, events=sorted(set(events)), description=description)
    webhook.sealed_secret = _sealed(team, secret)
    webhook.save(force_insert=True)
    audit.record(team=team, by=by, verb="webhook.created", on=webhook, detail={"events": webhook.events})
    return webhook, secret


@transaction.atomic
def change_webhook(
    *,
    team: Team,
    by: Actor,
    webhook: Webhook,
    url: str | None = None,
    events: Collection[str] | None = None,
    description: str | None = None,
    works: bool | None = None,
) -> Webhook:
    """Change what is given; `works` switches it on or off. Raises `Invalid`."""
    _check(webhook.url if url is None else url, webhook.events if events is None else events)
    before = audit.state_of(webhook)
    webhook.url = webhook.url if url is None else url
    webhook.events = webhook.events if events is None else sorted(set(events))
    webhook.description = webhook.description if description is None else description
    if works is not None and works != webhook.works:
        webhook.disabled_at = None if works else timezone.now()
        webhook.disabled_because = "" if works else "Switched off by hand."
    webhook.save()
    audit.record(team=team, by=by, verb="webhook.changed", on=webhook, before=before)
    return webhook


@transaction.atomic
def rotate_secret(*, team: Team, by: Actor, webhook: Webhook) -> str:
    """Give the webhook a new secret, returned once; the former signs nothing from now on."""
    secret, before = signing.new_secret(), audit.state_of(webhook)
    webhook.sealed_secret = _sealed(team, secret)
    webhook.save(update_fields=["sealed_secret"])
    audit.record(team=team, by=by, verb="webhook.secret_rotated", on=webhook, before=before)
    return secret


@transaction.atomic
def delete_webhook(*, team: Team, by: Actor, webhook: Webhook) -> None:
    """Delete a webhook with its log."""
    before = audit.state_of(webhook)
    audit.record(team=team, by=by, verb="webhook.deleted", on=webhook, before=before, after="")
    webhook.delete()


@transaction.atomic
def ping(*, team: Team, by: Actor, webhook: Webhook) -> WebhookDelivery:
    """Send a test message."""
    if not webhook.works:
        raise Conflict("This webhook is switched off: switch it on first.", code="webhook_disabled")
    delivery = send(team, webhook.url, WebhookEvent.PING, {"webhook": str(webhook.pk)}, webhook=webhook)
    audit.record(team=team, by=by, verb="webhook.pinged", on=webhook)
    return delivery


@transaction.atomic
def redeliver(*, team: Team, by: Actor, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send a message that has ended once more, as a delivery of its own. Raises `Conflict` while it is under way."""
    if delivery.status in DELIVERY_OPEN:
        raise Conflict("This message is still being delivered.", code="delivery_open")
    url = delivery.webhook.url if delivery.webhook else delivery.url
    again = WebhookDelivery.objects.create(
        team=team, webhook=delivery.webhook, url=url, event=delivery.event, payload=delivery.payload
    )
    enqueue(DELIVER, team.pk, again.pk)
    audit.record(team=team, by=by, verb="webhook.redelivered", on=again, detail={"of": str(delivery.pk)})
    return again


def _check(url: str, events: Collection[str]) -> None:
    outbound.check_field(url, "url")
    unknown = sorted(set(events) - {event.value for event in OFFERED})
    if unknown or not events:
        message = f"must name some of: {', '.join(event.value for event in OFFERED)}."
        raise Invalid(f"events {message}", errors=(FieldError("events", message),))


def _sealed(team: Team, secret: str) -> bytes:
    return sealing.seal(secret.encode(), team_id=team.pk, purpose=SEALED_SECRET)
