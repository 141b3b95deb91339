"""Sending one message: claimed, signed, sent outside any transaction, tried again with growing pauses for a day."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from hindsight_site import outbound
from hindsight_site.accounts import audit, leases, sealing
from hindsight_site.accounts.enums import DeliveryStatus
from hindsight_site.accounts.leases import Claim, LeaseLost
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks import signing
from hindsight_site.accounts.webhooks.emitting import DELIVER
from hindsight_site.accounts.webhooks.models import Webhook, WebhookDelivery
from hindsight_site.queue import enqueue

# Between attempts; together they make a day.
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (0.2, 1, 5, 15, 60, 180, 360, 480, 340))
MOST_ATTEMPTS = len(PAUSES) + 1
WAKE_UP_LOST_AFTER = timedelta(seconds=30)
SEALED_SECRET = "webhook secret"  # noqa: S105 - a purpose
SYSTEM = audit.system("webhooks")
GONE = 410  # the receiver says that it wants no more


def deliver(team: Team, delivery_id: uuid.UUID) -> str:
    """Make one attempt and return the state after it, or "" when it is not ours to make."""
    lease = timedelta(seconds=settings.WEBHOOK_TIMEOUT_SECONDS + 20)
    claim = leases.claim(WebhookDelivery, team, delivery_id, lease=lease, max_attempts=MOST_ATTEMPTS)
    if claim is None:
        return ""
    with team_transaction(team):
        delivery = WebhookDelivery.objects.of(team).select_related("webhook").get(pk=delivery_id)
        if delivery.webhook is not None and not delivery.webhook.works:
            return _end(claim, DeliveryStatus.FAILED, error="The webhook was switched off.")
        secret = secret_of(delivery.webhook) if delivery.webhook else callback_secret(team)
    return _note(claim, *_attempt(delivery, secret))


def secret_of(webhook: Webhook) -> str:
    """The webhook's signing secret. Raises `sealing.Unreadable` when it was sealed with another SECRET_KEY."""
    return sealing.unseal(bytes(webhook.sealed_secret), team_id=webhook.team_id, purpose=SEALED_SECRET).decode()


def callback_secret(team: Team) -> str:
    """The secret that signs messages to a `callback_url`: the team's, the same for all of them."""
    return signing.secret_of(bytes.fromhex(sealing.sign(team.pk.bytes, purpose="webhook callbacks")))


def _attempt(delivery: WebhookDelivery, secret: str) -> tuple[int | None, str, bool]:
    """Send the message once: the answer's status, what went wrong ("" for nothing), and whether to try again."""
    body = json.dumps({"id": str(delivery.pk), **delivery.payload}, ensure_ascii=False).encode()
    headers = signing.headers(secret, message_id=str(delivery.pk), at=timezone.now(), body=body)
    try:
        answer = outbound.send(
            delivery.url, body=body, headers=headers, timeout_seconds=settings.WEBHOOK_TIMEOUT_SECONDS, max_bytes=1024
        )
    except outbound.NotAllowed as error:
        return None, str(error), False
    except outbound.Unreachable as error:
        return None, str(error), True
    if 200 <= answer.status < 300:
        return answer.status, "", False
    moved = 300 <= answer.status < 400
    return answer.status, f"It answered {answer.status}{'; redirects are not followed' if moved else ''}.", True


def _note(claim: Claim, status: int | None, error: str, again: bool) -> str:
    if not error:
        return _end(claim, DeliveryStatus.DELIVERED, status=status)
    with team_transaction(claim.team):
        try:
            delivery = leases.held(claim)
        except LeaseLost:
            return ""
        if again and status != GONE and delivery.attempts < MOST_ATTEMPTS:
            pause = PAUSES[delivery.attempts - 1]
            claim.rows.update(
                status=DeliveryStatus.QUEUED,
                run_after=timezone.now() + pause,
                lease_until=None,
                response_status=status,
                error=error[:200],
            )
            return DeliveryStatus.QUEUED
        _switch_off(delivery, "It answered 410 Gone." if status == GONE else "It failed for a day.", again)
    return _end(claim, DeliveryStatus.FAILED, status=status, error=error)


def _switch_off(delivery: WebhookDelivery, because: str, again: bool) -> None:
    """A webhook that says it is gone, or that failed a whole day, is told nothing more until a person looks."""
    webhook = delivery.webhook
    if webhook is None or not webhook.works or not again:
        return
    before = audit.state_of(webhook)
    webhook.disabled_at, webhook.disabled_because = timezone.now(), because
    webhook.save(update_fields=["disabled_at", "disabled_because"])
    audit.record(team=delivery.team, by=SYSTEM, verb="webhook.disabled", on=webhook, before=before)


def _end(claim: Claim, state: DeliveryStatus, *, status: int | None = None, error: str = "") -> str:
    with team_transaction(claim.team):
        ended = claim.rows.update(
            status=state, response_status=status, error=error[:200], finished_at=timezone.now(), lease_until=None
        )
    return state if ended else ""


def sweep(team: Team, oldest: datetime | None = None) -> int:
    """Wake workers for what is due or was lost, bury what died at every attempt, purge the log. Returns the woken.

    `oldest`: since when the oldest task waits in the queue (`leases.lost`).
    """
    with team_transaction(team):
        rows = WebhookDelivery.objects.of(team)
        leases.dead(rows, MOST_ATTEMPTS).update(
            status=DeliveryStatus.FAILED, finished_at=timezone.now(), error="Its worker died at every attempt."
        )
        old = timezone.now() - timedelta(days=settings.WEBHOOK_KEEP_DAYS)
        rows.filter(finished_at__lt=old).delete()
        due = list(leases.lost(rows, WAKE_UP_LOST_AFTER, oldest)[:200])
        for delivery in due:
            enqueue(DELIVER, team.pk, delivery.pk)
    return len(due)
