"""The exchange as OAuth 2.0 speaks it, so that a standard client logs in by itself.

Errors have the form of RFC 6749, section 5.2, not problem+json: that is what such clients read.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_plus

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hindsight_site.accounts import access_tokens, attempts, credentials, limits
from hindsight_site.accounts.authentication import admit
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.limits import TooManyRequests
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.throttle import client_address
from hindsight_site.refusals import Invalid

# RFC 6749, section 5.1: nothing on the way may keep the answer.
NOT_KEPT = {"Cache-Control": "no-store", "Pragma": "no-cache"}
BASIC = 'Basic realm="hindsight", charset="UTF-8"'
FORM = "application/x-www-form-urlencoded"
GRANTS = ("authorization_code", "refresh_token", "client_credentials")  # the first two are `grants`'


@dataclass(frozen=True, slots=True)
class Client:
    """How a client names itself. `by_header`: in the Authorization header, not in the form."""

    id: str
    secret: str
    by_header: bool


class OAuthError(Exception):
    """A refusal in OAuth's words: an `error` code of RFC 6749 or 8707, and a description in ASCII."""

    def __init__(
        self, error: str, description: str, *, status: int = 400, challenge: bool = False, wait: int = 0
    ) -> None:
        super().__init__(description)
        self.error, self.description, self.status, self.challenge = error, description, status, challenge
        self.wait = wait  # seconds after which to try again; 0: no use

    def response(self) -> JsonResponse:
        body = {"error": self.error, "error_description": self.description}
        headers = {**NOT_KEPT, "WWW-Authenticate": BASIC} if self.challenge else dict(NOT_KEPT)
        if self.wait:
            headers["Retry-After"] = str(self.wait)
        return JsonResponse(body, status=self.status, headers=headers)


@csrf_exempt
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """`POST /oauth/token`: client_credentials, where the client is an ApiToken.

    `client_id` is the token's prefix (or `hs_<prefix>`), `client_secret` the whole token. Optional:
    `scope` (what of it the token has is granted, and said in the answer) and `resource` (RFC 8707).
    """
    try:
        form = read_form(request)
        if form.get("grant_type") != "client_credentials":
            given = "is missing" if "grant_type" not in form else f"must be one of: {' '.join(GRANTS)}"
            code = "invalid_request" if "grant_type" not in form else "unsupported_grant_type"
            raise OAuthError(code, f"grant_type {given}.")
        api_token = _authenticated(_client(request, form))
        _check_rate(api_token)
        audience = _audience(form.getlist("resource"))
        scopes = _granted(api_token, form.get("scope", ""))
    except OAuthError as error:
        return (too_many(request) or error if error.error == "invalid_client" else error).response()
    admit(api_token, scopes)
    issued = access_tokens.issue(api_token, audience=audience, scopes=scopes)
    body = {
        "access_token": issued.jwt,
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "scope": " ".join(sorted(scopes)),
    }
    return JsonResponse(body, headers=NOT_KEPT)


def read_form(request: HttpRequest) -> QueryDict:
    """The parameters, with those without a value left out (RFC 6749, section 3.2)."""
    if request.content_type != FORM:
        raise OAuthError("invalid_request", f"Send the parameters as {FORM}.")
    try:
        form = request.POST.copy()
    except (BadRequest, SuspiciousOperation):
        raise OAuthError("invalid_request", "The body is too large, or not UTF-8.") from None
    for name, values in list(form.lists()):
        form.setlist(name, kept := [value for value in values if value])
        if not kept:
            del form[name]
        elif len(kept) > 1 and name != "resource":
            raise OAuthError("invalid_request", "A parameter was sent more than once.")
    return form


def _client(request: HttpRequest, form: QueryDict) -> Client:
    header = request.headers.get("Authorization", "")
    in_form = "client_secret" in form
    if header and in_form:
        raise OAuthError("invalid_request", "Send the secret in one place: header or form.")
    if in_form:
        return Client(form.get("client_id", ""), form.get("client_secret", ""), by_header=False)
    if not header:
        raise OAuthError("invalid_client", "Send client_id and client_secret.", status=401, challenge=True)
    scheme, _, encoded = header.partition(" ")
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        pair = ""
    name, colon, secret = pair.partition(":")
    if not colon:
        message = "The Authorization header is not of the Basic scheme."
        raise OAuthError("invalid_client", message, status=401, challenge=True)
    # RFC 6749, section 2.3.1: both are form-encoded before they are joined.
    return Client(unquote_plus(name), unquote_plus(secret), by_header=True)


def _authenticated(client: Client) -> ApiToken:
    try:
        found = credentials.find(client.secret)
    except credentials.BadCredential as error:
        message = str(error).replace("…", "...")
        raise OAuthError("invalid_client", message, status=401, challenge=client.by_header) from None
    if client.id.removeprefix("hs_") != found.prefix:
        message = "client_id must be the prefix of the token that is sent as client_secret."
        raise OAuthError("invalid_client", message, status=401, challenge=client.by_header)
    return found


def _check_rate(api_token: ApiToken) -> None:
    """Take one request from the token's buckets, as every call of the API does."""
    try:
        limits.check(api_token)
    except TooManyRequests as error:
        raise slow_down(error) from None


def too_many(request: HttpRequest) -> OAuthError | None:
    """Count a client that was refused, by its address; the answer when there were too many."""
    try:
        attempts.check(client_address(request))
    except TooManyRequests as error:
        return slow_down(error)
    return None


def slow_down(error: TooManyRequests) -> OAuthError:
    """RFC 6749 has no word of its own for 429; this is its word for "try again later"."""
    return OAuthError("temporarily_unavailable", error.message, status=429, wait=error.wait)


def _audience(resources: list[str]) -> Audience:
    """The audience that `resource` names; REST when none is named."""
    known = {access_tokens.resource(audience): audience for audience in Audience}
    addresses = {address.rstrip("/") for address in resources} or {access_tokens.resource(Audience.REST)}
    if len(addresses) != 1 or not addresses <= known.keys():
        raise OAuthError("invalid_target", f"resource must be one of: {' '.join(known)}.")
    return known[addresses.pop()]


def _granted(api_token: ApiToken, scope: str) -> frozenset[str]:
    """The asked-for scopes that the token has; all of its own when none is asked for."""
    if not scope:
        return frozenset(api_token.scopes)
    try:
        wanted = access_tokens.parse_scopes(scope)
    except Invalid as error:
        raise OAuthError("invalid_scope", error.message) from None
    # Clients ask for whatever the metadata list, so asking for more than the token has is no fault.
    granted = wanted & frozenset(api_token.scopes)
    if not granted:
        raise OAuthError("invalid_scope", f"This token has none of: {' '.join(sorted(wanted))}.")
    return granted
