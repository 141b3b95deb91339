"""AccessTokens: the short-lived JWTs that an ApiToken is exchanged for, signed and read here only.

A JWT says which ApiToken it stands for; that token, its agent and its team are looked up at each
use, so that switching one of them off works at once and not when the JWT expires.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import jwt
from django.conf import settings
from django.db.models import Exists
from django.utils import timezone

from hindsight_site.accounts import credentials, signing_keys
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience, TokenScope
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import ApiToken, Team
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.refusals import FieldError, Forbidden, Invalid

LIFETIME = timedelta(minutes=10)
LEEWAY = timedelta(seconds=15)  # clocks of two hosts differ
TYPE = "at+jwt"  # RFC 9068: nothing else that our keys sign is taken for an access token
REQUIRED = ("exp", "iat", "nbf", "iss", "aud", "sub", "jti", "token_id", "scope")
PATHS = {Audience.REST: "/api/v1", Audience.MCP: "/mcp"}

# From PyJWT's errors to our words; the first class that fits counts.
_FAULTS: tuple[tuple[type[jwt.InvalidTokenError], str, str], ...] = (
    (jwt.ExpiredSignatureError, "This access token has expired; exchange the token again.", "token_expired"),
    (jwt.ImmatureSignatureError, "This access token is not valid yet; compare the clocks.", "not_yet_valid"),
    (jwt.InvalidIssuerError, "This access token is another server's.", "wrong_issuer"),
    (jwt.InvalidAlgorithmError, "This access token is not signed the way we sign.", "wrong_algorithm"),
    (jwt.InvalidSignatureError, "The signature of this access token is wrong.", "bad_signature"),
)


class Issued(NamedTuple):
    """A signed access token and how many seconds it lives."""

    jwt: str
    expires_in: int


@dataclass(frozen=True, slots=True)
class Verified:
    """An access token that holds: the ApiToken behind it (with team and agent) and what it may."""

    token: ApiToken
    scopes: frozenset[str]
    expires_at: datetime
    jti: str


def issuer() -> str:
    """Who signs: the address of this site."""
    return settings.SITE_URL


def resource(audience: Audience) -> str:
    """The address that tokens of `audience` are for, as in RFC 8707; it is their `aud` claim."""
    return settings.SITE_URL + PATHS[audience]


def looks_like_one(presented: str) -> bool:
    """Whether a bearer credential has the form of a JWT, and not that of an ApiToken."""
    return presented.count(".") == 2 and not presented.startswith("hs_")


def parse_scopes(text: str) -> frozenset[str]:
    """Return the scopes in a space-separated list. Raises `Invalid` that names the unknown ones."""
    wanted = frozenset(text.split())
    unknown = sorted(wanted - set(TokenScope.values))
    if unknown or not wanted:
        message = f"must be some of: {' '.join(TokenScope.values)}."
        raise Invalid(f"scope {message}", code="unknown_scope", errors=(FieldError("scope", message),))
    return wanted


def issue(token: ApiToken, *, audience: Audience, scopes: Iterable[str]) -> Issued:
    """Sign an access token for one audience.

    It lives ten minutes, or as long as the ApiToken when that is shorter. Raises `Forbidden` when
    `scopes` holds one that the ApiToken has not.
    """
    wanted = frozenset(scopes)
    if beyond := sorted(wanted - set(token.scopes)):
        raise Forbidden(f"This token lacks the scope {' '.join(beyond)}.", code="insufficient_scope")
    now = timezone.now()
    ends = min(now + LIFETIME, token.expires_at or now + LIFETIME)
    issued_at, expires_at = int(now.timestamp()), int(ends.timestamp())
    claims = {
        "iss": issuer(),
        "aud": resource(audience),
        "sub": f"hs_{token.prefix}",
        "team": str(token.team_id),
        "agent": str(token.agent_id) if token.agent_id else None,
        "scope": " ".join(sorted(wanted)),
        "iat": issued_at,
        "nbf": issued_at,
        "exp": expires_at,
        "jti": new_id().hex,
        "token_id": str(token.pk),
    }
    signer = signing_keys.signer()
    headers = {"kid": signer.kid, "typ": TYPE}
    signed = jwt.encode(claims, signer.key, algorithm=signing_keys.ALGORITHM, headers=headers)
    return Issued(signed, expires_at - issued_at)


def read(presented: str, *, audience: Audience) -> Verified:
    """Check an access token whole and return what it stands for.

    Raises `BadCredential` that says what is wrong: form, key, signature, times, issuer, audience, or
    that the ApiToken behind it, its agent or its team is switched off.
    """
    claims, kid = _checked_claims(presented, audience)
    token, scopes_now = _token_behind(claims, kid)
    return Verified(
        token=token,
        # A scope that was taken from the ApiToken since, or from its person's role, is gone here too.
        scopes=frozenset(claims["scope"].split()) & scopes_now,
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        jti=claims["jti"],
    )


def _checked_claims(presented: str, audience: Audience) -> tuple[dict[str, Any], str]:
    try:
        kid = jwt.get_unverified_header(presented).get("kid", "")
        decoded = jwt.decode_complete(
            presented,
            signing_keys.public_key(kid),
            algorithms=[signing_keys.ALGORITHM],
            issuer=issuer(),
            audience=resource(audience),
            leeway=LEEWAY,
            options={"require": list(REQUIRED), "strict_aud": True},
        )
    except LookupError:
        raise _unknown_key() from None
    except jwt.InvalidTokenError as error:
        raise _in_our_words(error, audience) from None
    if decoded["header"].get("typ") != TYPE:
        raise BadCredential("This is a signed token, but not an access token.", "wrong_type")
    return decoded["payload"], kid


def _token_behind(claims: dict[str, Any], kid: str) -> tuple[ApiToken, frozenset[str]]:
    """The ApiToken of the claims, live, and what it may now; one query, which also asks whether the key is
    still accepted, and one more for a connected client's person."""
    enter_team(Team(pk=claims["team"]))  # the signature vouches for it
    rows = ApiToken.objects.select_related("team", "agent").filter(pk=claims["token_id"])
    token = rows.annotate(key_accepted=Exists(signing_keys.accepted().filter(kid=kid))).first()
    if token is None:
        raise BadCredential("This token is unknown.", "token_unknown")
    if not token.key_accepted:  # annotated above
        raise _unknown_key()
    return token, credentials.check_live(token)


def _unknown_key() -> BadCredential:
    return BadCredential("This access token is signed with a key that is not ours (any more).", "unknown_key")


def _in_our_words(error: jwt.InvalidTokenError, audience: Audience) -> BadCredential:
    if isinstance(error, jwt.InvalidAudienceError):
        message = f"This access token is not for {resource(audience)}; ask for one with audience '{audience}'."
        return BadCredential(message, "wrong_audience")
    if isinstance(error, jwt.MissingRequiredClaimError):
        return BadCredential(f"This access token lacks the claim {error.claim}.", "missing_claim")
    for kind, message, code in _FAULTS:
        if isinstance(error, kind):
            return BadCredential(message, code)
    return BadCredential("This is not an access token of ours.", "malformed_token")
