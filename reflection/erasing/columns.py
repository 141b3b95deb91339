"""Every column of every tenant table that can hold text, and looking for something in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import or_
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Cast

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import TeamQuerySet
from reflection.erasing.needles import Needle, pattern_of, rough_of

# Made by us from random numbers or hashes: a find in one is an accident.
MACHINE_MADE = {
    ("AuditEvent", "before"), ("AuditEvent", "after"), ("AuditEvent", "object_id"), ("AuditEvent", "object_type"),
    ("AuditEvent", "verb"), ("AuditEvent", "request_id"), ("AuditEvent", "actor_id"), ("Memory", "fingerprint"),
    ("ApiToken", "prefix"), ("ReviewBatch", "seed"), ("ReviewBatch", "week"), ("MemoryVector", "model_id"),
    ("AuditReason", "verb"), ("AuditReason", "object_type"), ("AuditReason", "object_id"),
    ("Trace", "mask_numbers"), ("Trace", "digest"), ("Evidence", "trace_digest"),
}  # fmt: skip


@cache
def tenant_tables() -> tuple[type[models.Model], ...]:
    """Every model whose rows belong to a team."""
    return tuple(
        model
        for model in apps.get_models()
        if isinstance(model._default_manager.all(), TeamQuerySet)
        and any(field.name == "team" for field in model._meta.fields)
    )


@cache
def text_columns(model: type[models.Model]) -> tuple[str, ...]:
    """The columns of a table in which a text could stand: text, lists of text, JSON."""
    return tuple(
        field.name
        for field in model._meta.concrete_fields
        if _holds_text(field) and (model.__name__, field.name) not in MACHINE_MADE
    )


def _holds_text(field: Any) -> bool:
    if isinstance(field, ArrayField):
        return _holds_text(field.base_field)
    if isinstance(field, models.JSONField):
        return True
    return isinstance(field, models.CharField | models.TextField) and not field.choices


def holding(model: type[models.Model], team: Team, needles: Sequence[Needle]) -> QuerySet[Any]:
    """The rows of a table that hold any of `needles`, in any of its columns."""
    pattern, rough = pattern_of(needles), rough_of(needles)
    rows = model._default_manager.filter(team_id=team.pk)
    found: list[Q] = []
    for name in text_columns(model):
        field = model._meta.get_field(name)
        if isinstance(field, models.JSONField | ArrayField):
            rows = rows.alias(**{f"{name}_as_text": Cast(name, models.TextField())})
            name = f"{name}_as_text"
        found.append(Q(Q(**{f"{name}__iregex": rough}), Q(**{f"{name}__iregex": pattern})))
    return rows.filter(reduce(or_, found)) if found else rows.none()


def where_found(team: Team, needles: Sequence[Needle]) -> dict[str, int]:
    """How many rows of each table hold it: the proof, when it is empty. Call inside the team's transaction."""
    counts = {str(model._meta.verbose_name_plural): holding(model, team, needles).count() for model in tenant_tables()}
    return {name: count for name, count in counts.items() if count}
