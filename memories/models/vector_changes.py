"""The outbox of the vector index: which memories an engine beside PostgreSQL has to be told about again."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from hindsight_site.accounts.tenancy import TenantModel, team_never_changes, tenant_constraints


class VectorChange(TenantModel):
    """A memory whose vectors changed in this transaction, or went.

    Says which, not what: whoever carries it over reads what holds by then (docs/adr/0014). The memory may be
    gone, so this is no foreign key.
    """

    memory_id = models.UUIDField()
    created_at = models.DateTimeField(default=timezone.now)
    claim = models.UUIDField(null=True)  # of whoever carries it over now
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        constraints = tenant_constraints("vectorchange")
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return str(self.memory_id)
