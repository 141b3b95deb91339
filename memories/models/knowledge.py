"""A memory, what it rests on, what it was before, and how it relates to others."""

from __future__ import annotations

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TenantModel,
    append_only,
    team_never_changes,
    tenant_constraints,
)
from memories.enums import FailureClass, Kind, RelationKind, Status, Tier, Trust
from memories.models.scopes import Scope
from memories.models.sessions import SessionIdField

UNIT = [MinValueValidator(0), MaxValueValidator(1)]


class Memory(TenantModel):
    """A distilled conclusion that can be recalled. Written only by `memories.actions`."""

    scope = TeamForeignKey(Scope, on_delete=models.CASCADE, related_name="memories")
    agent = TeamForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="memories")
    tier = models.CharField(max_length=8, choices=Tier)
    kind = models.CharField(max_length=10, choices=Kind)
    status = models.CharField(max_length=11, choices=Status)

    # What it says
    content = models.TextField()
    snippet = models.TextField(blank=True, default="")  # the summary of a long content, shown to agents
    structure = models.JSONField(default=dict, blank=True)  # by kind, see memories.structures
    tags = ArrayField(models.CharField(max_length=60), default=list, blank=True)
    metadata = models.JSONField(default=dict, blank=True)  # the caller's own; never read by us
    environment = models.JSONField(default=dict, blank=True)
    failure_class = models.CharField(max_length=11, choices=FailureClass, default=FailureClass.NONE)
    fingerprint = models.CharField(max_length=64)  # SHA-256 of the normalised content

    # How far it is to be believed
    confidence = models.FloatField(default=0.5, validators=UNIT)  # mean of Beta(alpha, beta)
    alpha = models.FloatField(default=1.0)
    beta = models.FloatField(default=1.0)
    trust = models.CharField(max_length=8, choices=Trust, default=Trust.AGENT)
    weight = models.FloatField(default=1.0, validators=UNIT)  # multiplies the recall score
    fades = models.JSONField(default=dict, blank=True)  # why weight is below 1, see memories.lifecycle.rules
    importance = models.FloatField(default=0.5, validators=UNIT)  # working memory only
    support_count = models.PositiveIntegerField(default=1)
    needs_review = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False)
    approved_at = models.DateTimeField(null=True, blank=True)

    # How it is used
    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True, blank=True)
    unused_streak = models.PositiveIntegerField(default=0)
    reuse_count = models.PositiveIntegerField(default=0)
    reuse_success_count = models.PositiveIntegerField(default=0)
    judged_reuse_count = models.PositiveIntegerField(default=0)  # both as a person's last verdict found them
    judged_reuse_success_count = models.PositiveIntegerField(default=0)

    # When it holds, and where in a conversation it was said
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    renewed_at = models.DateTimeField(null=True, blank=True)  # said again, or restored: counts as a hit
    restored_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    archived_by = models.CharField(max_length=20, blank=True, default="")  # enums.Rule; empty: not by a rule
    occurred_at = models.DateTimeField(null=True, blank=True)
    actor = models.CharField(max_length=120, blank=True, default="")
    session_id = SessionIdField()
    sequence = models.IntegerField(null=True, blank=True)

    # Where it came from
    source = models.CharField(max_length=20, default="api")  # reflection, consolidation, api, page, import
    distiller = models.CharField(max_length=20, blank=True, default="")  # rules, model
    model = models.CharField(max_length=120, blank=True, default="")
    prompt_version = models.CharField(max_length=40, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name_plural = "memories"
        constraints = [
            *tenant_constraints("memory", scope="memories_scope", agent="accounts_agent"),
            models.CheckConstraint(
                name="memory_unit_numbers",
                condition=Q(confidence__gte=0, confidence__lte=1, weight__gte=0, weight__lte=1),
            ),
            models.CheckConstraint(
                name="memory_forgotten_is_empty",
                condition=~Q(status=Status.FORGOTTEN) | Q(content="", snippet="", structure={}),
            ),
        ]
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="memory_newest"),
            models.Index(fields=["team", "scope", "status", "-created_at"], name="memory_in_scope"),
            models.Index(fields=["team", "scope", "fingerprint"], name="memory_fingerprint"),
            models.Index(fields=["team", "session_id", "sequence"], name="memory_in_session"),
            models.Index(fields=["team", "id"], name="memory_to_review", condition=Q(needs_review=True)),
            models.Index(fields=["team", "archived_at"], name="memory_archived", condition=Q(status=Status.ARCHIVED)),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.content[:80] or f"({self.status})"


class Evidence(TenantModel):
    """What a memory rests on: the exact quote from a trace step.

    `quote == step text[start:end]`. When the trace is deleted the row stays, without step and quote,
    so that a reader sees that there was evidence. `step_id` is checked by the reflection app, which
    owns the steps. Traces that tell the same have the same `trace_digest`: they are one source.
    """

    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="evidence")
    trace_id = models.UUIDField(null=True, blank=True)
    step_id = models.UUIDField(null=True, blank=True)
    step_sequence = models.PositiveIntegerField(default=0)
    role = models.CharField(max_length=10, blank=True, default="")
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField(default=0)
    quote = models.TextField(blank=True, default="")
    trace_digest = models.CharField(max_length=64, blank=True, default="")
    witness_id = models.UUIDField(null=True, blank=True)  # the agent whose own token sent the trace
    created_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [
            *tenant_constraints("evidence", memory="memories_memory"),
            models.UniqueConstraint(fields=["team", "memory", "step_id", "start", "end"], name="evidence_once"),
        ]
        indexes = [
            models.Index(fields=["team", "trace_id"], name="evidence_of_trace"),
            models.Index(fields=["team", "step_id"], name="evidence_of_step"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.quote[:80]


class Revision(TenantModel):
    """One immutable earlier version of a memory: what it said before, who changed it, when and why."""

    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    content = models.TextField()
    structure = models.JSONField(default=dict)
    tags = ArrayField(models.CharField(max_length=60), default=list)
    tier = models.CharField(max_length=8, choices=Tier)
    confidence = models.FloatField()
    valid_from = models.DateTimeField()  # this text was current from … until
    valid_until = models.DateTimeField(default=timezone.now)
    actor_kind = models.CharField(max_length=10)
    actor_label = models.CharField(max_length=254, blank=True, default="")
    reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        constraints = [
            *tenant_constraints("revision", memory="memories_memory"),
            models.UniqueConstraint(fields=["team", "memory", "number"], name="revision_number"),
        ]
        # Erasure deletes revisions; nothing ever edits one.
        triggers = [team_never_changes(), append_only(pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.memory_id} r{self.number}"


class Relation(TenantModel):
    """A directed, weighted edge between two memories."""

    source = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="relations_out")
    target = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="relations_in")
    kind = models.CharField(max_length=16, choices=RelationKind)
    weight = models.FloatField(default=1.0, validators=UNIT)
    note = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True, blank=True)  # a contradiction that was decided

    class Meta:
        constraints = [
            *tenant_constraints("relation", source="memories_memory", target="memories_memory"),
            models.UniqueConstraint(fields=["team", "source", "target", "kind"], name="relation_once"),
            models.CheckConstraint(name="relation_not_to_self", condition=~Q(source=models.F("target"))),
        ]
        indexes = [models.Index(fields=["team", "target", "kind"], name="relation_into")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.source_id} {self.kind} {self.target_id}"
