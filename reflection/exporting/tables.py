"""Which tables an export holds, in an order in which they can be read back, and which it does not, and why."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from hindsight_site.accounts.models import ApiToken, Team, User
from reflection.enums import BatchStatus, ItemState, Stratum

FORMAT = "hindsight-team"
VERSION = 1

# What is pointed at comes before what points.
EXPORTED = (
    "accounts.Agent",
    "memories.Scope",
    "memories.ScopeGrant",
    "reflection.Trace",
    "reflection.Step",
    "memories.Memory",
    "memories.Evidence",
    "memories.Revision",
    "memories.Relation",
    "memories.Merge",
    "memories.Settlement",
    "memories.QuarantineCase",
    "memories.PolicyVersion",
    "reflection.Reflection",
    "reflection.ReflectionResult",
    "memories.Recall",
    "memories.RecallHit",
    "memories.Feedback",
    "reflection.ReviewBatch",
    "reflection.ReviewItem",
    "reflection.Verdict",
    "accounts.AuditEvent",
    "accounts.AuditReason",
)
NOT_EXPORTED = {
    "accounts.Membership": "people are invited, not copied",
    "accounts.Invitation": "people are invited, not copied",
    "accounts.ApiToken": "a secret",
    "accounts.ConnectedClient": "people connect their programs themselves",
    "accounts.AuthorizationCode": "a secret",
    "accounts.RefreshToken": "a secret",
    "accounts.Webhook": "its secret and its address are of this site",
    "accounts.WebhookDelivery": "of this site",
    "reflection.TeamModel": "a secret, and what it names may be reached from here only",
    "accounts.IdempotencyKey": "answers kept for a while to calls of this site",
    "accounts.TeamDeletion": "of this site",
    "accounts.TeamUsage": "of this site",
    "accounts.Job": "of this site",
    "accounts.JobChunk": "of this site",
    "reflection.ReviewMail": "whom this site has mailed",
    "memories.SweepRun": "how far the rules of life got on this site",
    "memories.MemoryVector": "made anew from the memories",
    "memories.VectorChange": "what the vector index of this site is still to be told",
    "memories.MemoryTerms": "made anew from the memories",
}
# What nobody may see before they have judged: a file that holds it would end the blind for whoever reads it.
BLIND = {
    "reflection.Verdict": Q(item__state=ItemState.PENDING, item__batch__status=BatchStatus.OPEN),
    "reflection.ReviewItem": Q(stratum=Stratum.CANARY, state=ItemState.PENDING, batch__status=BatchStatus.OPEN),
}
# Only from a file that is vouched for: what happened here cannot be told by anybody else.
HISTORY = frozenset(
    {
        "memories.ScopeGrant", "memories.Merge", "memories.Settlement", "memories.QuarantineCase",
        "memories.PolicyVersion", "reflection.Reflection", "reflection.ReflectionResult", "memories.Recall",
        "memories.RecallHit", "memories.Feedback", "reflection.ReviewBatch", "reflection.ReviewItem",
        "reflection.Verdict", "accounts.AuditEvent", "accounts.AuditReason",
    }
)  # fmt: skip


@cache
def exported_models() -> tuple[type[models.Model], ...]:
    """The models of `EXPORTED`."""
    return tuple(apps.get_model(label) for label in EXPORTED)


@cache
def model_of_type(name: str) -> type[models.Model] | None:
    """The model that a line's `type` names, or None."""
    return next((model for model in exported_models() if model._meta.model_name == name), None)


@cache
def exported_fields(model: type[models.Model]) -> tuple[Any, ...]:
    """The columns that travel: all but the team, tokens, and bytes."""
    return tuple(
        field
        for field in model._meta.concrete_fields
        if field.related_model not in (Team, ApiToken) and not isinstance(field, models.BinaryField)
    )


@cache
def person_fields(model: type[models.Model]) -> frozenset[str]:
    """The columns that name a person: written as an e-mail address."""
    return frozenset(field.name for field in exported_fields(model) if field.related_model is User)


@cache
def id_fields(model: type[models.Model]) -> frozenset[str]:
    """The columns that hold ids of rows, or lists of them: mapped when a row is read into another team."""
    return frozenset(field.attname for field in exported_fields(model) if _holds_ids(field))


def _holds_ids(field: Any) -> bool:
    if field.is_relation:
        return field.related_model is not User
    inner = field.base_field if isinstance(field, ArrayField) else field
    return isinstance(inner, models.UUIDField)
