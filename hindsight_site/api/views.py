"""What the API's views share: the caller, validated input, a page of a list."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from hindsight_site.accounts.authentication import Caller, caller_of
from hindsight_site.api.pagination import NewestFirst
from hindsight_site.refusals import FieldError, Invalid


class TokenView(APIView):
    """A view for a token. `token_scopes` maps each method to the scope it needs (None: any token)."""

    token_scopes: ClassVar[dict[str, str | None]] = {}
    may_be_missing: ClassVar[bool] = False  # 404 although no id stands in the address: the team may have none
    pagination_class = NewestFirst  # of its lists; `page` is what applies it

    def caller(self, request: Request) -> Caller:
        return caller_of(request)


def read_input(serializer: type[Serializer], data: Any) -> dict[str, Any]:
    """Return the validated input. Raises REST framework's ValidationError (answered as 422)."""
    if not isinstance(data, dict):
        raise Invalid("The body must be a JSON object.", code="malformed")
    checked = serializer(data=data)
    checked.is_valid(raise_exception=True)
    return checked.validated_data


def page(
    request: Request,
    rows: QuerySet,
    serialize: Callable[[list[Any]], Any],
    ordering: tuple[str, str] = ("-created_at", "-id"),
) -> Response:
    """Return one page of `rows` as `{results, next, previous}`."""
    paginator = NewestFirst()
    paginator.ordering = ordering
    found = paginator.paginate_queryset(rows, request)
    return paginator.get_paginated_response(serialize(found or []))


def expected_revision(request: Request, body: dict[str, Any]) -> int | None:
    """The revision the caller edited, from `If-Match: "3"` or `revision` in the body."""
    header = request.headers.get("If-Match", "")
    if not header or header == "*":
        return body.get("revision")
    match = re.fullmatch(r'(?:W/)?"?(\d{1,9})"?', header.strip())
    if match is None:
        message = 'must be a revision such as "3".'
        raise Invalid(f"If-Match {message}", errors=(FieldError("If-Match", message),))
    return int(match[1])
