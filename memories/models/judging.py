"""What was decided about memories: what one took in, how a contradiction was settled, why one was held back."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TenantModel,
    team_never_changes,
    tenant_constraints,
)
from memories.enums import QuarantineDecision, QuarantineRule, Resolution
from memories.models.knowledge import Memory, Relation


class Merge(TenantModel):
    """What a memory took in because it said the same: enough to bring that back as a memory of its own."""

    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="merges")
    agent = TeamForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    origin_id = models.UUIDField(null=True, blank=True)  # the private memory it was promoted from
    trace_id = models.UUIDField(null=True, blank=True)  # the trace it rests on, where it does
    fingerprint = models.CharField(max_length=64)
    said = models.JSONField(default=dict)  # the fields of the draft, see memories.actions.merging
    quotes = models.JSONField(default=list)  # [step id, start, end] of each piece of evidence it brought
    counted = models.BooleanField(default=False)  # it raised support by one
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [*tenant_constraints("merge", memory="memories_memory", agent="accounts_agent")]
        indexes = [
            models.Index(fields=["team", "memory", "-created_at"], name="merge_of_memory"),
            models.Index(fields=["team", "trace_id"], name="merge_of_trace", condition=Q(trace_id__isnull=False)),
            models.Index(fields=["team", "origin_id"], name="merge_of_origin", condition=Q(origin_id__isnull=False)),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.memory_id} took in {self.fingerprint[:8]}"


class Settlement(TenantModel):
    """One decision about a conflict, and what it needs to be undone. A conflict is a `contradicts` edge."""

    conflict = TeamForeignKey(Relation, on_delete=models.CASCADE, related_name="settlements")
    decision = models.CharField(max_length=10, choices=Resolution)
    condition = models.CharField(max_length=300, blank=True, default="")  # when each of both holds
    note = models.CharField(max_length=1000, blank=True, default="")
    before = models.JSONField(default=dict)  # {left, right}: the governed fields before it
    after = models.JSONField(default=dict)  # the same after it, with `updated_at`
    actor_kind = models.CharField(max_length=10)
    actor_label = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("settlement", conflict="memories_relation"),
            models.UniqueConstraint(
                fields=["team", "conflict"], name="settlement_one_standing", condition=Q(undone_at=None)
            ),
        ]
        indexes = [models.Index(fields=["team", "-created_at", "-id"], name="settlement_newest")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.conflict_id} {self.decision}"


class QuarantineCase(TenantModel):
    """Why a memory was held back, by which rule, and what a person decided."""

    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="quarantine_cases")
    rule = models.CharField(max_length=15, choices=QuarantineRule)
    reason = models.CharField(max_length=500, blank=True, default="")  # in words, without memory text
    channel = models.CharField(max_length=12, blank=True, default="")  # of screening, where it was that
    findings = models.JSONField(default=list)  # [{name, start, end}]: places in the memory's content
    actor_kind = models.CharField(max_length=10)
    actor_label = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    decision = models.CharField(max_length=9, choices=QuarantineDecision, blank=True, default="")
    note = models.CharField(max_length=300, blank=True, default="")
    decided_by = models.CharField(max_length=254, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    before = models.JSONField(default=dict)  # the governed fields before the decision
    after = models.JSONField(default=dict)  # the same after it, with `updated_at`

    class Meta:
        constraints = [
            *tenant_constraints("quarantinecase", memory="memories_memory"),
            models.UniqueConstraint(
                fields=["team", "memory"], name="quarantinecase_one_open", condition=Q(decision="")
            ),
        ]
        indexes = [models.Index(fields=["team", "memory", "-created_at"], name="quarantinecase_of_memory")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.memory_id} {self.rule}"
