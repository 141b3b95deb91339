"""The rate limit of the REST API: REST framework asks here before each view. And who a client is, by address."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
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


UNKNOWN = "unknown"  # a client at a Unix socket, with no proxy that is believed


def client_address(request: HttpRequest | Request) -> str:
    """The address of the client: what our own proxies say, and nothing that the client could say itself.

    With TRUSTED_PROXY_COUNT = n it is the nth from the right of X-Forwarded-For, which the outermost of our
    proxies has written; what stands left of it came with the request. A list that is shorter did not come
    through all of them, so it is not believed, and neither is one when n is 0.
    """
    count = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    hops = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if count > 0 else []
    forwarded = _address(hops[-count]) if len(hops) >= count > 0 else ""
    return forwarded or _address(request.META.get("REMOTE_ADDR", "")) or UNKNOWN


def _address(text: str) -> str:
    """An IP address in its normal form, without a port; "" for anything else."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""
