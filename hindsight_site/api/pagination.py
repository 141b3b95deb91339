"""Cursor lists: `{results, next, previous}`, newest first, stable while rows are added."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from hindsight_site.refusals import FieldError, Invalid

MAX_LIMIT = 200
CURSOR = re.compile(r"[A-Za-z0-9+/=_-]{1,500}")


class NewestFirst(CursorPagination):
    """`?limit=` 1..200 (default 50) and `?cursor=` from the previous answer."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = MAX_LIMIT
    ordering = ("-created_at", "-id")

    def get_page_size(self, request: Request) -> int:
        given = request.query_params.get("limit")
        if given is None:
            return self.page_size
        if not given.isascii() or not given.isdigit() or not 1 <= int(given[:6]) <= MAX_LIMIT:
            message = f"must be a whole number from 1 to {MAX_LIMIT}."
            raise Invalid(f"limit {message}", errors=(FieldError("limit", message),))
        return int(given)

    def decode_cursor(self, request: Request) -> Any:
        given = request.query_params.get(self.cursor_query_param)
        if given is not None and not CURSOR.fullmatch(given):
            raise not_ours()
        try:
            return super().decode_cursor(request)
        except NotFound:
            raise not_ours() from None

    def paginate_queryset(self, queryset: QuerySet, request: Request, view: Any = None) -> list[Any]:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError):  # a position that is not of the column's type
            raise not_ours() from None


def not_ours() -> Invalid:
    """The refusal of a cursor that we did not give out."""
    message = "is not one that we gave out; start again without it."
    return Invalid(f"cursor {message}", errors=(FieldError("cursor", message),))
