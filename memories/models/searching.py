"""The two tables that search: ids, tokens and vectors only, no text.

Filtered by an explicit `team_id =` in `memories.search`, and kept without row-level security, which
would make their GIN index unusable. Their rows live and die with the memory's.
"""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HalfVectorField

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import SameTeam, TeamForeignKey, TeamManager, team_never_changes
from memories.enums import Status
from memories.models.knowledge import Memory
from memories.models.scopes import Scope


class MemoryVector(models.Model):
    """The embedding of a memory by one model.

    The column has no fixed dimension: rows of two models live side by side while one replaces the
    other, and every index and query names its `model_id` (docs/adr/0004).
    """

    pk = models.CompositePrimaryKey("team_id", "memory_id", "model_id")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, db_index=False, related_name="+")
    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="vectors")
    scope = TeamForeignKey(Scope, on_delete=models.CASCADE, related_name="+")
    status = models.CharField(max_length=11, choices=Status)
    model_id = models.CharField(max_length=80)
    embedding = HalfVectorField()

    objects = TeamManager()

    class Meta:
        constraints = [
            SameTeam(field="memory", to="memories_memory", name="memoryvector_memory_same_team"),
            SameTeam(field="scope", to="memories_scope", name="memoryvector_scope_same_team"),
        ]
        indexes = [models.Index(fields=["team", "scope", "model_id"], name="memoryvector_in_scope")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.memory_id} by {self.model_id}"


class MemoryTerms(models.Model):
    """The tokens of a memory, made by `memories.search.tokens`."""

    pk = models.CompositePrimaryKey("team_id", "memory_id")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, db_index=False, related_name="+")
    memory = TeamForeignKey(Memory, on_delete=models.CASCADE, related_name="terms")
    scope = TeamForeignKey(Scope, on_delete=models.CASCADE, related_name="+")
    status = models.CharField(max_length=11, choices=Status)
    tokens = SearchVectorField()
    length = models.PositiveIntegerField()  # tokens in the document, for BM25

    objects = TeamManager()

    class Meta:
        verbose_name_plural = "memory terms"
        constraints = [
            SameTeam(field="memory", to="memories_memory", name="memoryterms_memory_same_team"),
            SameTeam(field="scope", to="memories_scope", name="memoryterms_scope_same_team"),
        ]
        indexes = [
            models.Index(fields=["team", "scope"], name="memoryterms_in_scope"),
            # btree_gin puts the team in front of the tokens.
            GinIndex(fields=["team", "tokens"], name="memoryterms_tokens"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return str(self.memory_id)
