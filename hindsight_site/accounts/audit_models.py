"""Why somebody did what the audit records, in their own words.

The audit is append-only and holds no text beyond a fingerprint; what a person or an agent writes as a reason may
quote what was changed, and has to go with it. Imported by `models`; written by `audit` only.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from hindsight_site.accounts.tenancy import TenantModel, team_never_changes, tenant_constraints


class AuditReason(TenantModel):
    """The reason given for one event. The event has its fingerprint; without this row it says no more."""

    event_id = models.UUIDField()  # no foreign key: the audit outlives it
    verb = models.CharField(max_length=60)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    words = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("auditreason"),
            models.UniqueConstraint(fields=["team", "event_id"], name="auditreason_event"),
        ]
        indexes = [models.Index(fields=["team", "object_type", "object_id"], name="auditreason_object")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.verb} {self.object_type} {self.object_id}"
