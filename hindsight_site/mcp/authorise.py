"""Who is calling, and from where: checked before a byte of the body is looked at."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from hindsight_site.accounts import access_tokens, limits
from hindsight_site.accounts.authentication import Caller, admit
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience
from hindsight_site.mcp.errors import FORBIDDEN, TOO_MANY_REQUESTS, UNAUTHORIZED, Fault

METADATA = "/.well-known/oauth-protected-resource/mcp"
MISSING = "Send an access token: Authorization: Bearer <token>. It is made from a token (hs_…)"
HOW = 'by POST /api/v1/auth/token with {"audience": "mcp"}, or by the OAuth client_credentials grant.'


def check_origin(request: HttpRequest) -> None:
    """Refuse a browser that is on somebody else's page. Programs send no Origin.

    The host has been checked against ALLOWED_HOSTS already, so "the address that was called" cannot be a
    name that an attacker pointed at this machine. Raises `Fault`.
    """
    origin = request.headers.get("Origin")
    if origin is None or origin in {_origin_of(settings.SITE_URL), f"{request.scheme}://{request.get_host()}"}:
        return
    raise Fault(FORBIDDEN, "Requests from other web pages are refused here.", status=403)


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def caller_of(request: HttpRequest) -> Caller:
    """Return the caller of a request. Raises `Fault` that says what is wrong with the token."""
    presented = _bearer(request)
    if presented.startswith("hs_"):
        raise _unauthorized(f"This token (hs_…) opens nothing here: exchange it {HOW}", "token not exchanged")
    try:
        with transaction.atomic():
            verified = access_tokens.read(presented, audience=Audience.MCP)
            return admit(verified.token, verified.scopes)
    except BadCredential as error:
        raise _unauthorized(str(error), error.code.replace("_", " ")) from None


def _bearer(request: HttpRequest) -> str:
    header = request.headers.get("Authorization", "")
    if not header.strip():
        raise _unauthorized(f"{MISSING} {HOW}", "")
    scheme, _, presented = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not presented.strip() or " " in presented.strip():
        message = f"The Authorization header is not of the Bearer scheme. {MISSING} {HOW}"
        raise _unauthorized(message, "malformed header")
    return presented.strip()


def _unauthorized(message: str, description: str) -> Fault:
    """401 as RFC 6750 and RFC 9728 want it. No error is named to a client that sent nothing."""
    said = f', error="invalid_token", error_description="{description}"' if description else ""
    challenge = f'Bearer resource_metadata="{settings.SITE_URL}{METADATA}"{said}'
    data = {"error": "invalid_token", "description": description} if description else {"error": "missing_token"}
    return Fault(UNAUTHORIZED, message, data=data, status=401, headers={"WWW-Authenticate": challenge})


def check_scope(caller: Caller, scope: str | None) -> None:
    """Raise `Fault` when the token lacks `scope`. The answer names it, so that a client can ask for it."""
    if scope is None or scope in caller.scopes:
        return
    challenge = (
        f'Bearer resource_metadata="{settings.SITE_URL}{METADATA}", error="insufficient_scope", '
        f'scope="{scope}", error_description="this needs the scope {scope}"'
    )
    raise Fault(
        FORBIDDEN,
        f"This token lacks the scope {scope}. Ask whoever gave it to you for one that has it.",
        data={"error": "insufficient_scope", "scope": scope},
        status=403,
        headers={"WWW-Authenticate": challenge},
    )


def count(caller: Caller) -> dict[str, str]:
    """Take one request from the caller's limits; return the headers that say how they stand. Raises `Fault`."""
    allowance = limits.take(caller.token)
    headers = limits.headers(allowance)
    if allowance.allowed:
        return headers
    refusal = limits.refusal(allowance)
    headers["Retry-After"] = str(refusal.wait)
    raise Fault(TOO_MANY_REQUESTS, refusal.message, data={"retry_after": refusal.wait}, status=429, headers=headers)
