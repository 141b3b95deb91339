"""Cursor lists: `{results, next, previous}`, newest first, stable while rows are added."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from hindsight_site.refusals import FieldError, Invalid

MAX_LIMIT = 200
WHOLE = re.compile(r"[0-9]{1,6}")
CURSOR = re.compile(r"[A-Za-z0-9+/=_-]{1,500}")


class NewestFirst(CursorPagination):
    """`?limit=` 1..200 (default 50) and `?cursor=` from the previous answer."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = MAX_LIMIT
    ordering = ("-created_at", "-id")

    def get_page_size(self, request: Request) -> int:
        return read_whole(request, "limit", default=self.page_size, low=1, high=MAX_LIMIT)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The form of every list in the OpenAPI document."""
        address = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {
                "results": schema,
                "next": {**address, "description": "Where the next page is; null on the last."},
                "previous": {**address, "description": "Where the page before is; null on the first."},
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """The two parameters that every list takes."""
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": self.page_size}
        cursor = {"type": "string", "maxLength": 500, "pattern": "^[A-Za-z0-9+/=_-]+$"}
        told = "From the `next` or `previous` of an earlier answer."
        return [
            {"name": "limit", "in": "query", "required": False, "schema": limit, "description": "Rows in a page."},
            {"name": "cursor", "in": "query", "required": False, "schema": cursor, "description": told},
        ]

    def decode_cursor(self, request: Request) -> Any:
        given = request.query_params.get(self.cursor_query_param)
        if given is not None and not CURSOR.fullmatch(given):
            raise not_ours()
        try:
            return super().decode_cursor(request)
        except NotFound:
            raise not_ours() from None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        try:
            return super().paginate_queryset(queryset, request, view) or []
        except (ValidationError, ValueError):  # a position that is not of the column's type
            raise not_ours() from None


def read_whole(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    """Return the whole number of the query parameter `name`, or `default`. Raises `Invalid` beyond low..high."""
    given = request.query_params.get(name)
    if given is None:
        return default
    # Long numbers are refused unread: leading zeros would hide their size from a look at a few digits.
    if not WHOLE.fullmatch(given) or not low <= int(given) <= high:
        message = f"must be a whole number from {low} to {high}."
        raise Invalid(f"{name} {message}", errors=(FieldError(name, message),))
    return int(given)


def not_ours() -> Invalid:
    """The refusal of a cursor that we did not give out."""
    message = "is not one that we gave out; start again without it."
    return Invalid(f"cursor {message}", errors=(FieldError("cursor", message),))
