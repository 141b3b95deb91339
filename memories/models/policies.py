"""A team's policy as it was set over time, and the sweeps that applied it."""

from __future__ import annotations

from datetime import timedelta

import pgtrigger
from django.db import models
from django.utils import timezone

from hindsight_site.accounts.tenancy import TenantModel, append_only, team_never_changes, tenant_constraints

SILENT = timedelta(minutes=10)  # a sweep that said nothing for so long was interrupted


class PolicyVersion(TenantModel):
    """The policy from one change to the next. The highest number is in force; none means the defaults."""

    number = models.PositiveIntegerField()
    values = models.JSONField(default=dict)  # the numbers that differ from the default, memories.policy_table
    preset = models.CharField(max_length=20, blank=True, default="")
    note = models.CharField(max_length=300, blank=True, default="")
    actor_kind = models.CharField(max_length=10)
    actor_label = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("policyversion"),
            models.UniqueConstraint(fields=["team", "number"], name="policyversion_number"),
        ]
        triggers = [team_never_changes(), append_only(pgtrigger.Update)]

    def __str__(self) -> str:
        return f"policy {self.number}"


class SweepRun(TenantModel):
    """One run of the rules of life over a team: how far it came and what it changed."""

    created_at = models.DateTimeField(default=timezone.now)  # when it started
    progress_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    actor_label = models.CharField(max_length=254, blank=True, default="")
    policy_version = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)  # how many there were to examine when it started
    examined = models.PositiveIntegerField(default=0)
    changed = models.JSONField(default=dict)  # {enums.Rule: how many}
    spared = models.PositiveIntegerField(default=0)  # would have left, were they not exempt
    cursor = models.UUIDField(null=True, blank=True)  # the last memory looked at: an interrupted run goes on there
    paused = models.BooleanField(default=False)  # it stopped between two batches, to be gone on with

    class Meta:
        constraints = [*tenant_constraints("sweeprun")]
        indexes = [models.Index(fields=["team", "-created_at", "-id"], name="sweeprun_newest")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"sweep of {self.created_at:%Y-%m-%d %H:%M}"

    @property
    def state(self) -> str:
        """finished, running, paused or interrupted: the next sweep does what the last two left."""
        if self.finished_at is not None:
            return "finished"
        if self.paused:
            return "paused"
        return "running" if timezone.now() - self.progress_at < SILENT else "interrupted"

    @property
    def changes(self) -> int:
        """How many memories it changed."""
        return sum(self.changed.values())
