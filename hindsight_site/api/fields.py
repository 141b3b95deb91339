"""Serializer fields that REST framework does not bring."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework import serializers


class AwareDateTimeField(serializers.DateTimeField):
    """An ISO 8601 time with its zone. One without is refused: guessing a zone shifts history."""

    default_error_messages = {"naive": "needs a time zone, such as 2026-03-02T09:00:00Z."}

    def enforce_timezone(self, value: datetime) -> datetime:
        if timezone.is_naive(value):
            self.fail("naive")
        return value


class TextField(serializers.CharField):
    """Text that comes back byte-equal: never trimmed, never made of another type."""

    default_error_messages = {"not_text": "must be a string."}

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("not_text")
        return super().to_internal_value(data)


class ObjectField(serializers.JSONField):
    """A JSON object."""

    default_error_messages = {"not_object": "must be a JSON object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_object")
        return data
