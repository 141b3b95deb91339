"""The rate limit of the REST API: REST framework asks here before each view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from hindsight_site.accounts import limits
from hindsight_site.accounts.authentication import Caller

if TYPE_CHECKING:
    from rest_framework.views import APIView  # reads the name of the class below from the settings


class TokenThrottle(BaseThrottle):
    """Take one request from the caller's buckets, and say on the answer how they stand.

    Nothing to do for what needs no token: the OpenAPI document and its reference.
    """

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Return True, or raise `TooManyRequests`, which says more than REST framework would."""
        if not isinstance(request.user, Caller):
            return True
        allowance = limits.take(request.user.token)
        view.headers.update(limits.headers(allowance))
        if not allowance.allowed:
            raise limits.refusal(allowance)
        return True
