"""A webhook of a team, and each message to it or to a trace's `callback_url`."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.enums import DELIVERY_OPEN, DeliveryStatus, WebhookEvent
from hindsight_site.accounts.tenancy import TeamForeignKey, TenantModel, team_never_changes, tenant_constraints


class Webhook(TenantModel):
    """An address that is told of some events."""

    url = models.URLField(max_length=500)
    description = models.CharField(max_length=200, blank=True, default="")
    events = ArrayField(models.CharField(max_length=30, choices=WebhookEvent))
    sealed_secret = models.BinaryField()  # accounts.sealing: it is needed in clear to sign
    created_at = models.DateTimeField(default=timezone.now)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_because = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [*tenant_constraints("webhook")]
        indexes = [models.Index(fields=["team", "-created_at", "-id"], name="webhook_newest")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.url

    @property
    def works(self) -> bool:
        """Whether it is told anything."""
        return self.disabled_at is None


class WebhookDelivery(TenantModel):
    """One message, and what became of it. The row is the truth; the queue only wakes a worker."""

    webhook = TeamForeignKey(Webhook, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries")
    url = models.URLField(max_length=500)  # as it was when the event happened
    event = models.CharField(max_length=30, choices=WebhookEvent)
    payload = models.JSONField()  # ids, states and counts; never what a memory says

    status = models.CharField(max_length=9, choices=DeliveryStatus, default=DeliveryStatus.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    run_after = models.DateTimeField(default=timezone.now)
    response_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=200, blank=True, default="")

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [*tenant_constraints("webhookdelivery", webhook="accounts_webhook")]
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="delivery_newest"),
            models.Index(fields=["team", "webhook", "-created_at"], name="delivery_of_webhook"),
            models.Index(
                fields=["team", "run_after"],
                name="delivery_due",
                condition=Q(status__in=[status.value for status in DELIVERY_OPEN]),
            ),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.event} ({self.status})"
