"""Receipts: what was asked, what reached whom, and what became of it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TenantModel,
    team_never_changes,
    tenant_constraints,
)
from memories.enums import RecallStatus
from memories.models.knowledge import Memory
from memories.models.sessions import SessionIdField


class Recall(TenantModel):
    """One retrieval and its receipt. The query is stored masked."""

    agent = TeamForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="recalls")
    token = TeamForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    session_id = SessionIdField()
    query = models.TextField(blank=True, default="")
    options = models.JSONField(default=dict, blank=True)  # kinds, tiers, top_k … as asked
    searched_scopes = ArrayField(models.CharField(max_length=80), default=list)
    status = models.CharField(max_length=8, choices=RecallStatus)
    best_relevance = models.FloatField(default=0.0)
    degraded = models.BooleanField(default=False)
    # SHA-256 of the context handed out: tells whether one put together again is the same text.
    context_digest = models.CharField(max_length=64, blank=True, default="")
    took_ms = models.FloatField(default=0.0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("recall", agent="accounts_agent", token="accounts_apitoken"),  # noqa: S106
        ]
        indexes = [
            models.Index(fields=["team", "-created_at"], name="recall_newest"),
            models.Index(fields=["team", "agent", "-created_at"], name="recall_by_agent"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.query[:80]


class RecallHit(TenantModel):
    """One memory, at one revision, handed out by one recall."""

    recall = TeamForeignKey(Recall, on_delete=models.CASCADE, related_name="hits")
    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="hits")
    revision = models.PositiveIntegerField()
    rank = models.PositiveSmallIntegerField()
    score = models.FloatField()
    relevance = models.FloatField()
    parts = models.JSONField(default=dict)
    contested = models.BooleanField(default=False)  # and the agent was told so

    class Meta:
        constraints = [
            *tenant_constraints("recallhit", recall="memories_recall", memory="memories_memory"),
            models.UniqueConstraint(fields=["team", "recall", "memory"], name="recallhit_once"),
        ]
        indexes = [models.Index(fields=["team", "memory", "-id"], name="recallhit_of_memory")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.rank}. {self.memory_id}"


class Feedback(TenantModel):
    """What became of a recalled memory: adopted or not, and whether the task succeeded."""

    recall = TeamForeignKey(Recall, on_delete=models.CASCADE, related_name="feedback")
    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="feedback")
    adopted = models.BooleanField()
    success = models.BooleanField(null=True, blank=True)
    note = models.CharField(max_length=1000, blank=True, default="")
    # What the belief took of it: on alpha after a success, on beta after a failure; null is nothing.
    credit = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "feedback"
        constraints = [
            *tenant_constraints("feedback", recall="memories_recall", memory="memories_memory"),
            models.UniqueConstraint(fields=["team", "recall", "memory"], name="feedback_once"),
        ]
        indexes = [models.Index(fields=["team", "memory"], name="feedback_of_memory")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.memory_id} adopted={self.adopted} success={self.success}"
