"""The week's sample, one memory in it, one person's judgement."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import User
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TenantModel,
    team_never_changes,
    tenant_constraints,
)
from memories.models import Memory
from reflection.enums import BatchStatus, Decision, DemoteReason, ItemState, Stratum


class ReviewBatch(TenantModel):
    """A team's sample of one ISO week. `seed` and the stored strata make the draw reproducible."""

    week = models.CharField(max_length=8)  # "2026-W49", in the team's time zone
    status = models.CharField(max_length=6, choices=BatchStatus, default=BatchStatus.OPEN)
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()
    seed = models.CharField(max_length=64)
    population = models.JSONField(default=dict)  # {stratum: {eligible, drawn}}
    created_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "review batches"
        constraints = [
            *tenant_constraints("reviewbatch"),
            models.UniqueConstraint(fields=["team", "week"], name="reviewbatch_week"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.week


class ReviewItem(TenantModel):
    """One sampled memory. `version` guards against two people deciding at once."""

    batch = TeamForeignKey(ReviewBatch, on_delete=models.CASCADE, related_name="items")
    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="review_items")
    memory_revision = models.PositiveIntegerField()  # what was drawn
    stratum = models.CharField(max_length=16, choices=Stratum)
    inclusion_probability = models.FloatField()
    position = models.PositiveSmallIntegerField()
    quorum = models.PositiveSmallIntegerField(default=1)  # 2: drawn for two opinions, each blind to the other
    state = models.CharField(max_length=10, choices=ItemState, default=ItemState.PENDING)
    outcome = models.CharField(max_length=11, choices=Decision, blank=True, default="")  # once it is done
    expected = models.CharField(max_length=11, choices=Decision, blank=True, default="")  # of a known answer
    version = models.PositiveIntegerField(default=1)
    claimed_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("reviewitem", batch="reflection_reviewbatch", memory="memories_memory"),
            models.UniqueConstraint(fields=["team", "batch", "memory"], name="reviewitem_once"),
            models.UniqueConstraint(fields=["team", "batch", "position"], name="reviewitem_position"),
        ]
        indexes = [models.Index(fields=["team", "memory"], name="reviewitem_of_memory")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.batch_id} #{self.position}"


class Verdict(TenantModel):
    """One person's judgement. Undone ones stay, marked; nothing is deleted."""

    item = TeamForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="verdicts")
    reviewer = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False)
    decision = models.CharField(max_length=11, choices=Decision)
    reason = models.CharField(max_length=12, choices=DemoteReason, blank=True, default="")
    note = models.TextField(blank=True, default="")
    memory_revision = models.PositiveIntegerField()
    content = models.TextField(blank=True, default="")  # an edit that waits for a second opinion
    settles = models.BooleanField(default=False)  # it ends a disagreement, and is no opinion itself
    is_blind = models.BooleanField(default=True)  # given without knowing what the other thought
    before = models.JSONField(default=dict)  # the memory's governed fields, for undo
    created_at = models.DateTimeField(default=timezone.now)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("verdict", item="reflection_reviewitem"),
            models.UniqueConstraint(
                fields=["team", "item", "reviewer", "settles"],
                name="verdict_one_standing",
                condition=Q(undone_at__isnull=True),
            ),
        ]
        indexes = [models.Index(fields=["team", "item", "-created_at"], name="verdict_of_item")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.decision} by {self.reviewer_id}"
