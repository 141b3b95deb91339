"""Who is calling the API. The token alone decides team and agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from hindsight_site.accounts import access_tokens, audit, credentials
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import Agent, ApiToken, Team


@dataclass(frozen=True, slots=True)
class Caller:
    """A token at work: its team, its agent (if bound to one) and what it may."""

    team: Team
    token: ApiToken
    agent: Agent | None
    scopes: frozenset[str]
    is_authenticated: bool = True

    @property
    def actor(self) -> audit.Actor:
        return audit.token_actor(self.token)


def admit(token: ApiToken, scopes: Iterable[str]) -> Caller:
    """Note that `token` was used, and return the caller it stands for. Its team is at work already."""
    credentials.touch(token)
    return Caller(token.team, token, token.agent, frozenset(scopes))


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <ApiToken, or AccessToken for REST>`."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts:
            return None
        if len(parts) != 2 or parts[0].lower() != b"bearer":
            raise AuthenticationFailed("Send the token as 'Authorization: Bearer hs_…'.")
        try:
            # Views that opt out of one transaction for all need one for this.
            with transaction.atomic():
                caller = self.identify(parts[1].decode("ascii", "replace"))
        except BadCredential as error:
            raise AuthenticationFailed(str(error), code=error.code) from None
        return caller, caller.token

    def identify(self, presented: str) -> Caller:
        """Return the caller that the credential stands for. Raises `BadCredential`."""
        if access_tokens.looks_like_one(presented):
            verified = access_tokens.read(presented, audience=Audience.REST)
            return admit(verified.token, verified.scopes)
        token = credentials.find(presented)
        return admit(token, credentials.scopes_now(token))

    def authenticate_header(self, request: Request) -> str:
        metadata = f"{settings.SITE_URL}/.well-known/oauth-protected-resource/api/v1"
        fault = ', error="invalid_token"' if get_authorization_header(request) else ""
        return f'Bearer realm="hindsight", resource_metadata="{metadata}"{fault}'


class ApiTokenAuthentication(TokenAuthentication):
    """The ApiToken only: an access token must not be exchanged for another and so live for ever."""

    def identify(self, presented: str) -> Caller:
        if access_tokens.looks_like_one(presented):
            message = "An access token cannot be exchanged again; send the token it was made from (hs_…)."
            raise BadCredential(message, "not_exchangeable")
        return super().identify(presented)


class HasTokenScope(BasePermission):
    """The view's `token_scopes` names the scope that each method needs."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.user, Caller):
            return False
        method = "GET" if request.method == "HEAD" else request.method
        # A method the view does not have is answered as 405 by the view itself.
        needed = view.token_scopes.get(method)
        if needed is not None and needed not in request.user.scopes:
            raise PermissionDenied(f"This token lacks the scope {needed}.", code="insufficient_scope")
        return True


def caller_of(request: Request) -> Caller:
    """The caller of an authenticated request."""
    caller = request.user
    assert isinstance(caller, Caller)  # noqa: S101 - the permission class has seen to it
    return caller
