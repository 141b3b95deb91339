"""From a line of our own format to an unsaved row, checked against its table."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from hindsight_site.accounts.models import AuditEvent, AuditReason, Membership, Team, User
from memories.models import Merge
from reflection.exporting.tables import exported_fields, id_fields, person_fields
from reflection.importing.ids import Mapped
from reflection.importing.taming import Refused

EMPTY: tuple[Any, ...] = ("", [], {})


def row_of(model: type[models.Model], told: dict[str, Any], team: Team, ids: Mapped, people: dict[str, User]) -> Any:
    """Build the row that a line tells of. Raises `Refused` with the reason when it does not fit the table."""
    row = model(team=team)
    try:
        for field in exported_fields(model):
            name = field.name if field.name in person_fields(model) else field.attname
            if name in told:
                setattr(row, field.attname, _value(model, field, told[name], ids, people))
        if isinstance(row, AuditEvent | AuditReason):
            row.object_id = _object_id(row.object_id, ids)
        if isinstance(row, Merge):  # [step id, start, end] of each quote
            row.quotes = [[_object_id(step, ids), *place] for step, *place in row.quotes]
        row.clean_fields(exclude=_unchecked(row))
    except ValidationError as error:
        raise Refused(f"{', '.join(sorted(error.message_dict))} does not fit") from None
    except (ValueError, TypeError, AttributeError, ArithmeticError):
        raise Refused("it is not of the form of such a row") from None
    for field in exported_fields(model):
        _check(field, getattr(row, field.attname))
    return row


def people_of(team: Team) -> dict[str, User]:
    """The members of a team by address: only they can have judged something in it."""
    members = Membership.objects.of(team).select_related("user")
    return {member.user.email: member.user for member in members}


def existing(model: type[models.Model], team: Team, ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these ids are rows of the team."""
    found = model._default_manager.filter(team_id=team.pk, pk__in=list(ids))
    return set(found.values_list("pk", flat=True))


def _value(model: type[models.Model], field: Any, value: Any, ids: Mapped, people: dict[str, User]) -> Any:
    if value is None:
        return None
    if field.name in person_fields(model):
        person = people.get(value)
        return person.pk if person else None
    if field.attname in id_fields(model):
        return [ids.of(item) for item in value] if isinstance(field, ArrayField) else ids.of(value)
    if isinstance(field, models.DateTimeField):
        return datetime.fromisoformat(value)
    return value


def _object_id(ident: str, ids: Mapped) -> str:
    try:
        return str(ids.of(ident))
    except ValueError:  # a number, a short name
        return ident


def _unchecked(row: Any) -> set[str]:
    """References are looked up in bulk; what is empty is so in the table too (tombstones)."""
    fields = row._meta.concrete_fields
    return {field.name for field in fields if field.is_relation or _is_empty(field, getattr(row, field.attname))}


def _is_empty(field: Any, value: Any) -> bool:
    if isinstance(field, models.CharField | models.TextField):
        return value == "" and not field.choices
    return isinstance(field, models.JSONField | ArrayField) and value in EMPTY


def _check(field: Any, value: Any) -> None:
    """What cleaning lets through, but the table does not take or nobody could read back. Raises `Refused`."""
    if value is None:
        if not field.null:
            raise Refused(f"{field.name} is missing")
    elif isinstance(field, models.DateTimeField):
        _check_time(field.name, value)
    elif not _is_kept(field, value):
        raise Refused(f"{field.name} does not fit")


def _is_kept(field: Any, value: Any) -> bool:
    if isinstance(field, ArrayField):
        return isinstance(value, list) and all(_is_kept(field.base_field, item) for item in value)
    if isinstance(field, models.CharField | models.TextField):
        return isinstance(value, str)
    if isinstance(field, models.JSONField):
        return field.default not in (dict, list) or type(value) is field.default
    if isinstance(field, models.FloatField):
        return isinstance(value, float) and math.isfinite(value)
    return value not in EMPTY  # what may be blank is not cleaned when it is


def _check_time(name: str, value: datetime) -> None:
    if timezone.is_naive(value):
        raise Refused(f"{name} needs a time zone")
    try:
        value.astimezone(UTC)
    except OverflowError:  # the table keeps it, and nobody can read it back
        raise Refused(f"{name} lies outside the years 1 to 9999 in UTC") from None
