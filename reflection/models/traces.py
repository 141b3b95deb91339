"""A task as the agent lived it. Raw material, never recalled."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TenantModel,
    team_never_changes,
    tenant_constraints,
)
from memories.models.sessions import SessionIdField
from reflection.enums import Role, StepKind, TraceStatus
from reflection.forms import step_text


class Trace(TenantModel):
    """One task: what was asked, every step, how it ended. Stored masked."""

    agent = TeamForeignKey(Agent, on_delete=models.CASCADE, related_name="traces")
    token = TeamForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    session_id = SessionIdField()
    task = models.TextField()
    task_type = models.CharField(max_length=120, blank=True, default="")
    environment = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=11, choices=TraceStatus, default=TraceStatus.OPEN)
    result = models.TextField(blank=True, default="")
    remember = models.BooleanField(default=False)
    callback_url = models.URLField(max_length=500, blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True)
    extra = models.JSONField(default=dict, blank=True)  # keys we do not know, kept
    digest = models.CharField(max_length=64, blank=True, default="")  # of what it tells; set when it ends
    mask_numbers = models.JSONField(default=dict, blank=True)  # keyed fingerprints → placeholder numbers
    step_count = models.PositiveIntegerField(default=0)
    tool_call_count = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("trace", agent="accounts_agent", token="accounts_apitoken"),  # noqa: S106
        ]
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="trace_newest"),
            models.Index(fields=["team", "agent", "-created_at"], name="trace_by_agent"),
            models.Index(fields=["team", "session_id"], name="trace_in_session"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.task[:80]


class Step(TenantModel):
    """One step of a trace, at its own number."""

    trace = TeamForeignKey(Trace, on_delete=models.CASCADE, related_name="steps")
    sequence = models.PositiveIntegerField()
    at = models.DateTimeField(null=True, blank=True)
    role = models.CharField(max_length=10, choices=Role)
    kind = models.CharField(max_length=12, choices=StepKind)
    tool = models.CharField(max_length=200, blank=True, default="")
    arguments = models.JSONField(null=True, blank=True)
    content = models.TextField(blank=True, default="")
    is_error = models.BooleanField(default=False)
    extra = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("step", trace="reflection_trace"),
            models.UniqueConstraint(fields=["team", "trace", "sequence"], name="step_number"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.sequence} {self.role} {self.kind}"

    @property
    def text(self) -> str:
        """What a reader sees, and what evidence spans are counted in."""
        return step_text(self.content, self.tool, self.arguments)
