"""OAuth for people's MCP clients, as programs speak it: tokens for codes, renewal, revocation, registration.

The person's part, the consent page, is `authorize`. Clients are public: they name themselves by `client_id` and
prove with PKCE and with the secrets they were given that they are who was allowed.
"""

from __future__ import annotations

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hindsight_site.accounts import access_tokens, attempts, audit, connected_clients, limits, oauth_clients
from hindsight_site.accounts.api import oauth
from hindsight_site.accounts.api.oauth import NOT_KEPT, OAuthError
from hindsight_site.accounts.connected_clients import CODE, REFRESH, BadGrant, Grant
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience, TokenScope
from hindsight_site.accounts.limits import TooManyRequests
from hindsight_site.accounts.models import ConnectedClient, Team
from hindsight_site.accounts.oauth_clients import BadClient
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.accounts.throttle import client_address
from hindsight_site.refusals import Invalid

MAX_REGISTRATION = 16 * 1024  # bytes


@csrf_exempt
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """`POST /oauth/token`, for all grants. What is not a person's client is `oauth.token`'s."""
    try:
        form = oauth.read_form(request)
        grants = {"authorization_code": _redeem, "refresh_token": _renew}
        grant = grants.get(form.get("grant_type", ""))
        if grant is None:
            return oauth.token(request)
        return _answer(grant(form))
    except OAuthError as error:
        refusal = oauth.too_many(request) if error.error == "invalid_grant" else None
        return (refusal or error).response()


def _redeem(form: QueryDict) -> Grant:
    """Authorization code with PKCE: RFC 6749, section 4.1.3, and RFC 7636, section 4.5."""
    code, client_id = _required(form, "code"), _client_id(form)
    redirect_uri, verifier = _required(form, "redirect_uri"), _required(form, "code_verifier")
    _check_resource(form)
    try:
        team = _enter(code, CODE)
        return connected_clients.redeem(
            team=team, code=code, client_id=client_id, redirect_uri=redirect_uri, verifier=verifier
        )
    except BadGrant as error:
        raise OAuthError("invalid_grant", str(error)) from None


def _renew(form: QueryDict) -> Grant:
    """Refresh token: RFC 6749, section 6, with rotation."""
    refresh, client_id = _required(form, "refresh_token"), _client_id(form)
    _check_resource(form)
    try:
        team = _enter(refresh, REFRESH)
        scope = form.get("scope", "")
        scopes = access_tokens.parse_scopes(scope) if scope else None
        _check_rate(team, refresh)
        return connected_clients.renew(team=team, refresh=refresh, client_id=client_id, scopes=scopes)
    except BadGrant as error:
        raise OAuthError("invalid_grant", str(error)) from None
    except Invalid as error:
        raise OAuthError("invalid_scope", error.message) from None


def _answer(grant: Grant) -> HttpResponse:
    return JsonResponse(
        {
            "access_token": grant.access.jwt,
            "token_type": "Bearer",
            "expires_in": grant.access.expires_in,
            "scope": " ".join(sorted(grant.scopes)),
            "refresh_token": grant.refresh,
        },
        headers=NOT_KEPT,
    )


def _required(form: QueryDict, name: str) -> str:
    value = form.get(name, "")
    if not value:
        raise OAuthError("invalid_request", f"{name} is missing.")
    return value


def _client_id(form: QueryDict) -> str:
    if "client_secret" in form:
        raise OAuthError("invalid_client", "Clients of people have no secret.", status=401)
    return _required(form, "client_id")


def _check_resource(form: QueryDict) -> None:
    """RFC 8707: tokens of this kind are for the MCP endpoint and nothing else."""
    ours = access_tokens.resource(Audience.MCP)
    if {address.rstrip("/") for address in form.getlist("resource")} - {ours}:
        raise OAuthError("invalid_target", f"resource must be {ours}.")


def _enter(secret: str, kind: str) -> Team:
    """Put the team at work that a secret names; whether it is that team's is seen by its hash."""
    team = connected_clients.team_of(secret, kind)
    enter_team(team)
    return team


def _check_rate(team: Team, refresh: str) -> None:
    connected = connected_clients.of_refresh_token(team, refresh)
    if connected is None:
        return
    try:
        limits.check(connected.token)
    except TooManyRequests as error:
        raise oauth.slow_down(error) from None


@csrf_exempt
@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """`POST /oauth/revoke` (RFC 7009): disconnects the client that a refresh or access token is of.

    The answer is the same for tokens that are unknown, spent or another client's (section 2.2).
    """
    try:
        form = oauth.read_form(request)
        secret, client_id = _required(form, "token"), _client_id(form)
    except OAuthError as error:
        return error.response()
    connected = _connected_by(secret)
    if connected is not None and connected.client_id == client_id:
        person = connected.token.on_behalf_of
        by = audit.person(person) if person else audit.system("client")
        connected_clients.disconnect(team=connected.token.team, by=by, connected=connected)
    return HttpResponse(headers=NOT_KEPT)


def _connected_by(secret: str) -> ConnectedClient | None:
    try:
        if access_tokens.looks_like_one(secret):
            with transaction.atomic():
                found = access_tokens.read(secret, audience=Audience.MCP).token
                rows = ConnectedClient.objects.of(found.team).filter(token=found)
                return rows.select_related("token__team", "token__on_behalf_of").first()
        return connected_clients.of_refresh_token(_enter(secret, REFRESH), secret)
    except (BadGrant, BadCredential):
        return None


@csrf_exempt
@require_POST
def register(request: HttpRequest) -> HttpResponse:
    """`POST /oauth/register` (RFC 7591): an id for a client that has no metadata document. Stores nothing."""
    try:
        attempts.check(client_address(request))
        if int(request.headers.get("Content-Length") or 0) > MAX_REGISTRATION:
            raise BadClient(f"Client metadata are at most {MAX_REGISTRATION} bytes.")
        client = oauth_clients.register(json.loads(request.body))
    except TooManyRequests as error:
        message = f"Too many requests from this address; try again in {error.wait} s."
        return OAuthError("temporarily_unavailable", message, status=429, wait=error.wait).response()
    except BadClient as error:
        return OAuthError(error.code, str(error)).response()
    except (ValueError, RecursionError):
        return OAuthError("invalid_client_metadata", "The body is not JSON.").response()
    body = {
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": " ".join(TokenScope.values),
    }
    return JsonResponse(body, status=201, headers=NOT_KEPT)
