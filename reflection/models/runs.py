"""One run of looking back. The row is the truth; the queue only wakes a worker."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TenantModel,
    team_never_changes,
    tenant_constraints,
)
from memories.models import Memory, Scope
from reflection.enums import REFLECTION_OPEN, ReflectionStatus
from reflection.models.traces import Trace


class Reflection(TenantModel):
    """What was looked back at, who did it, what came out, what was refused, what it cost."""

    trace = TeamForeignKey(Trace, on_delete=models.CASCADE, null=True, blank=True, related_name="reflections")
    # None: a look across a shared scope, which is nobody's own.
    agent = TeamForeignKey(Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="reflections")
    scope = TeamForeignKey(Scope, on_delete=models.CASCADE, related_name="+")  # where its memories go
    token = TeamForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    episodes = ArrayField(models.UUIDField(), default=list, blank=True)  # memories to distil together
    instruction = models.TextField(blank=True, default="")

    status = models.CharField(max_length=11, choices=ReflectionStatus, default=ReflectionStatus.QUEUED)
    reason = models.CharField(max_length=300, blank=True, default="")  # why it ran, or was skipped
    attempts = models.PositiveSmallIntegerField(default=0)  # counted at the claim, so a death counts
    fence = models.PositiveIntegerField(default=0)  # grows at each claim; a stale worker's write is refused
    lease_until = models.DateTimeField(null=True, blank=True)
    run_after = models.DateTimeField(default=timezone.now)
    error = models.CharField(max_length=500, blank=True, default="")

    distiller = models.CharField(max_length=20, blank=True, default="")
    model = models.CharField(max_length=120, blank=True, default="")
    prompt_version = models.CharField(max_length=40, blank=True, default="")
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(null=True, blank=True)
    rejected = models.JSONField(default=list, blank=True)  # [{content, reason, detail}]

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints(
                "reflection",
                trace="reflection_trace",
                agent="accounts_agent",
                scope="memories_scope",
                token="accounts_apitoken",  # noqa: S106 - a table name
            ),
            # Two calls at once start one run: a trace has at most one that is not finished.
            models.UniqueConstraint(
                fields=["team", "trace"],
                name="reflection_one_open_per_trace",
                condition=Q(status__in=[status.value for status in REFLECTION_OPEN]),
            ),
        ]
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="reflection_newest"),
            models.Index(fields=["team", "trace"], name="reflection_of_trace"),
            models.Index(
                fields=["team", "run_after"],
                name="reflection_due",
                condition=Q(status__in=[status.value for status in REFLECTION_OPEN]),
            ),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"


class ReflectionResult(TenantModel):
    """One memory that a reflection wrote, or one it confirmed."""

    class Effect(models.TextChoices):
        CREATED = "created", "Written"
        CONFIRMED = "confirmed", "Confirmed"  # known already: its support was raised
        REFINED = "refined", "Refined"  # known already: said more exactly now
        QUARANTINED = "quarantined", "Quarantined"

    reflection = TeamForeignKey(Reflection, on_delete=models.CASCADE, related_name="results")
    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="results")
    effect = models.CharField(max_length=11, choices=Effect)

    class Meta:
        constraints = [
            *tenant_constraints("reflectionresult", reflection="reflection_reflection", memory="memories_memory"),
            models.UniqueConstraint(fields=["team", "reflection", "memory"], name="reflectionresult_once"),
        ]
        indexes = [models.Index(fields=["team", "memory"], name="reflectionresult_of_memory")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.effect} {self.memory_id}"
