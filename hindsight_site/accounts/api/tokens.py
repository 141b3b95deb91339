"""Exchanging an ApiToken for an access token, and managing a team's tokens."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts import access_tokens, actions, attempts
from hindsight_site.accounts.api import forms
from hindsight_site.accounts.authentication import ApiTokenAuthentication, Caller
from hindsight_site.accounts.enums import Audience, TokenScope
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.throttle import client_address
from hindsight_site.api.callers import acting_agent
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.refusals import NotFound

ADMIN = TokenScope.ADMIN
NOT_KEPT = {"Cache-Control": "no-store"}


class ExchangeView(TokenView):
    authentication_classes = [ApiTokenAuthentication]  # noqa: RUF012 - REST framework's protocol
    token_scopes = {"POST": None}

    def perform_authentication(self, request: Request) -> None:
        """Find out who calls. Refused tokens are counted by address, and too many of them answered with 429."""
        try:
            super().perform_authentication(request)
        except AuthenticationFailed:
            attempts.check(client_address(request))
            raise

    @extend_schema(operation_id="auth_token", request=forms.ExchangeIn, responses=forms.ExchangeOut)
    def post(self, request: Request) -> Response:
        """Exchange the ApiToken for an access token of ten minutes, with its scopes or fewer."""
        caller = self.caller(request)
        wanted = read_input(forms.ExchangeIn, request.data)
        scopes = access_tokens.parse_scopes(wanted["scope"]) if "scope" in wanted else caller.scopes
        issued = access_tokens.issue(caller.token, audience=Audience(wanted["audience"]), scopes=scopes)
        body = {
            "access_token": issued.jwt,
            "token_type": "Bearer",
            "expires_in": issued.expires_in,
            "scope": " ".join(sorted(scopes)),
        }
        return Response(body, headers=NOT_KEPT)


class TokensView(TokenView):
    token_scopes = {"GET": ADMIN, "POST": ADMIN}
    secret: str | None = None

    @extend_schema(operation_id="tokens_list", responses=forms.TokenOut(many=True))
    def get(self, request: Request) -> Response:
        """The team's tokens, newest first; for a token bound to an agent, those of that agent."""
        rows = manageable(self.caller(request))
        return page(request, rows, lambda found: forms.TokenOut(found, many=True).data)

    @extend_schema(operation_id="tokens_create", request=forms.TokenIn, responses={201: forms.TokenMade})
    def post(self, request: Request) -> Response:
        """Create a token with scopes that the calling one has. The secret is in this answer only."""
        return with_secret(self, self.create(request))

    @idempotent
    def create(self, request: Request) -> Response:
        caller = self.caller(request)
        wanted = read_input(forms.TokenIn, request.data)
        agent = acting_agent(caller, wanted["agent"])
        token, self.secret = actions.create_token(
            team=caller.team, by=caller.actor, name=wanted["name"], scopes=wanted["scopes"],
            allowed=caller.scopes, agent=agent, expires_at=wanted["expires_at"],
            # What a person's own token makes stands for that person too, and ends with their membership.
            created_by=caller.token.on_behalf_of, on_behalf_of=caller.token.on_behalf_of,
        )  # fmt: skip
        return Response(forms.TokenOut(token).data, status=201)


class ManagedTokenView(TokenView):
    token_scopes = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(operation_id="tokens_read", responses=forms.TokenOut)
    def get(self, request: Request, prefix: str) -> Response:
        """One token, without its secret."""
        return Response(forms.TokenOut(find_token(self.caller(request), prefix)).data)

    @extend_schema(operation_id="tokens_change", request=forms.TokenChange, responses=forms.TokenOut)
    def patch(self, request: Request, prefix: str) -> Response:
        """Rename a token, change what it may, or when it expires (null: never)."""
        caller = self.caller(request)
        token = find_token(caller, prefix)
        wanted = read_input(forms.TokenChange, request.data)
        if "name" in wanted:
            actions.rename_token(team=caller.team, by=caller.actor, token=token, name=wanted["name"])
        if "scopes" in wanted:
            actions.set_token_scopes(
                team=caller.team, by=caller.actor, token=token, scopes=wanted["scopes"],
                allowed=caller.scopes,
            )  # fmt: skip
        if "expires_at" in wanted:
            actions.set_token_expiry(team=caller.team, by=caller.actor, token=token, expires_at=wanted["expires_at"])
        return Response(forms.TokenOut(token).data)

    @extend_schema(operation_id="tokens_revoke", responses={204: None})
    def delete(self, request: Request, prefix: str) -> Response:
        """Revoke a token for good, with the access tokens made from it."""
        caller = self.caller(request)
        actions.revoke_token(team=caller.team, by=caller.actor, token=find_token(caller, prefix))
        return Response(status=204)


class RotateView(TokenView):
    token_scopes = {"POST": ADMIN}
    secret: str | None = None

    @extend_schema(operation_id="tokens_rotate", request=forms.RotateIn, responses={201: forms.TokenMade})
    def post(self, request: Request, prefix: str) -> Response:
        """Replace a token by a new one of the same kind. The secret is in this answer only."""
        return with_secret(self, self.rotate(request, prefix))

    @idempotent
    def rotate(self, request: Request, prefix: str) -> Response:
        caller = self.caller(request)
        wanted = read_input(forms.RotateIn, request.data)
        token, self.secret = actions.rotate_token(
            team=caller.team, by=caller.actor, token=find_token(caller, prefix), allowed=caller.scopes,
            grace=timedelta(seconds=wanted["grace_seconds"]),
        )  # fmt: skip
        return Response(forms.TokenOut(token).data, status=201)


def with_secret(view: TokensView | RotateView, answer: Response) -> Response:
    """Put the secret into an answer whose stored copy (see `idempotent`) must not hold it."""
    answer.data = {**answer.data, "secret": view.secret}
    answer["Cache-Control"] = "no-store"
    return answer


def manageable(caller: Caller) -> QuerySet[ApiToken]:
    """The tokens that `caller` may see and change: the team's, or its own agent's."""
    rows = ApiToken.objects.of(caller.team).select_related("team", "agent")
    return rows if caller.agent is None else rows.filter(agent=caller.agent)


def find_token(caller: Caller, prefix: str) -> ApiToken:
    """Return the token `prefix` (with or without `hs_`), or raise `NotFound`."""
    token = manageable(caller).filter(prefix=prefix.removeprefix("hs_")).first()
    if token is None:
        raise NotFound(f"There is no token {prefix}.", code="token_not_found")
    return token
