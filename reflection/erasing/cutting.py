"""Taking a text out of rows that stay: history, receipts, notes, labels, and the audit itself."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

import pgtrigger
from django.db import models

from hindsight_site.accounts.models import (
    Agent,
    ApiToken,
    AuditEvent,
    AuditReason,
    IdempotencyKey,
    Invitation,
    JobChunk,
    Team,
    TeamDeletion,
)
from memories.enums import Status
from memories.models import Memory, Merge, Revision, Scope
from reflection.erasing.columns import holding, tenant_tables, text_columns
from reflection.erasing.needles import Needle, compiled, without
from reflection.models import Step, Trace

# Rows that serve nobody without the text, or may not be edited: they go.
DELETED: tuple[type[models.Model], ...] = (IdempotencyKey, Revision, Invitation, Merge, AuditReason)
# Names and labels: the text around the find is kept.
NAMED: tuple[type[models.Model], ...] = (Agent, Scope, ApiToken, AuditEvent)
# Taken away whole by the plan, not cut; the record that a team was deleted is no team's any more.
PLANNED: tuple[type[models.Model], ...] = (Trace, Step, TeamDeletion, JobChunk)


def cut_tables() -> list[type[models.Model]]:
    """The tables that are looked through, one after the other."""
    return [model for model in tenant_tables() if model not in PLANNED and text_columns(model)]


def cut(
    model: type[models.Model], team: Team, needles: Sequence[Needle], limit: int, after: uuid.UUID | None
) -> list[uuid.UUID]:
    """Clear up to `limit` rows of a table behind the id `after`, in the caller's transaction. Returns their ids."""
    rows = holding(model, team, needles)
    if model is Memory:
        rows = rows.filter(status=Status.FORGOTTEN)  # a living one goes by the plan
    if after is not None:
        rows = rows.filter(pk__gt=after)
    found = list(rows.order_by("pk")[:limit])
    ids = [row.pk for row in found]
    # Who did what stays recorded; only what may not be written anywhere any more is taken out of it.
    with pgtrigger.ignore(*_append_only(model)):
        if model in DELETED:
            model._default_manager.filter(team_id=team.pk, pk__in=ids).delete()
        else:
            pattern = compiled(needles)
            for row in found:
                _clear(model, team, row, pattern)
    return ids


def _clear(model: type[models.Model], team: Team, row: Any, pattern: re.Pattern[str]) -> None:
    changed = {}
    for name in text_columns(model):
        if isinstance(model._meta.get_field(name), models.SlugField):
            continue  # an address: others point at it. The proof says that it is still there.
        value = getattr(row, name)
        cleared = without(value, pattern, words_only=model in NAMED)
        if cleared != value:
            changed[name] = _fitting(model, name, cleared)
    if changed:
        model._default_manager.filter(team_id=team.pk, pk=row.pk).update(**changed)


def _fitting(model: type[models.Model], name: str, value: Any) -> Any:
    """A label that was full may be longer with the mark in it."""
    limit = getattr(model._meta.get_field(name), "max_length", None)
    return value[:limit] if isinstance(value, str) and limit else value


def _append_only(model: type[models.Model]) -> list[str]:
    return [f"{model._meta.label}:{t.name}" for t in getattr(model._meta, "triggers", ()) if t.name == "append_only"]
