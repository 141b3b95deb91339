"""Serializer fields that REST framework does not bring."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


class AwareDateTimeField(serializers.DateTimeField):
    """An ISO 8601 time with its zone. One without is refused: guessing a zone shifts history."""

    default_error_messages = {
        "naive": "needs a time zone, such as 2026-03-02T09:00:00Z.",
        "beyond": "lies outside the years 1 to 9999 in UTC.",
    }

    def enforce_timezone(self, value: datetime) -> datetime:
        if timezone.is_naive(value):
            self.fail("naive")
        try:
            return value.astimezone(UTC)
        except OverflowError:  # the first or last day of the calendar, in a zone where it lies beyond
            self.fail("beyond")


class TextField(serializers.CharField):
    """Text that comes back byte-equal: never trimmed, never made of another type."""

    default_error_messages = {"not_text": "must be a string."}

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("not_text")
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ObjectField(serializers.JSONField):
    """A JSON object."""

    default_error_messages = {"not_object": "must be a JSON object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_object")
        return data


class FieldErrorOut(serializers.Serializer):
    """One thing wrong with one field."""

    field = serializers.CharField(help_text="A dotted path, such as steps.3.role.")
    code = serializers.CharField()
    message = serializers.CharField()


class ProblemOut(serializers.Serializer):
    """An error, RFC 9457. `code` is for programs and stable; `detail` is for people."""

    type = serializers.CharField(help_text="urn:hindsight:problem:<code>")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    errors = FieldErrorOut(many=True)  # type: ignore[assignment] # a field, and no attribute of the class
    request_id = serializers.CharField()
    revision = serializers.IntegerField(required=False, help_text="With 412: the current revision.")
