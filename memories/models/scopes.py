"""Memory spaces and who may use them."""

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
from memories.enums import ReviewMode, ScopeKind


class Scope(TenantModel):
    """A memory space: one agent's own (`private`) or shared by name."""

    slug = models.SlugField(max_length=80, db_index=False)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, default="")
    kind = models.CharField(max_length=8, choices=ScopeKind)
    agent = TeamForeignKey(Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    review_mode = models.CharField(max_length=20, choices=ReviewMode, default=ReviewMode.SAMPLED)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("scope", agent="accounts_agent"),
            models.UniqueConstraint(fields=["team", "slug"], name="scope_slug"),
            models.UniqueConstraint(fields=["team", "agent"], name="scope_private_once"),
            models.CheckConstraint(
                name="scope_private_has_agent",
                condition=Q(kind=ScopeKind.PRIVATE, agent__isnull=False) | Q(kind=ScopeKind.SHARED, agent__isnull=True),
            ),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.name


class ScopeGrant(TenantModel):
    """Which agent may read or write which scope."""

    scope = TeamForeignKey(Scope, on_delete=models.CASCADE, related_name="grants")
    agent = TeamForeignKey(Agent, on_delete=models.CASCADE, related_name="grants")
    can_read = models.BooleanField(default=True)
    can_write = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("scopegrant", scope="memories_scope", agent="accounts_agent"),
            models.UniqueConstraint(fields=["team", "agent", "scope"], name="scopegrant_once"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.agent} → {self.scope}"
