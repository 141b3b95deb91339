"""Access tokens: what is signed, and everything that is refused and in which words."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.utils import timezone
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hindsight_site.accounts import access_tokens, actions, signing_keys
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import ApiToken, SigningKey
from hindsight_site.refusals import Forbidden, Invalid
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(agent) -> ApiToken:
    made, _ = actions.create_token(
        team=agent.team, by=SYSTEM, name="t", scopes=["memory:read", "reflect"], allowed=factories.ALL_SCOPES,
        agent=agent,
    )  # fmt: skip
    return ApiToken.objects.of(agent.team).select_related("team", "agent").get(pk=made.pk)


@pytest.fixture
def issued(token: ApiToken) -> str:
    return access_tokens.issue(token, audience=Audience.REST, scopes=token.scopes).jwt


def claims_of(signed: str) -> dict[str, Any]:
    return jwt.decode(signed, options={"verify_signature": False})


def signed_with(signer: signing_keys.Signer, claims: dict[str, Any], **header: str) -> str:
    return jwt.encode(claims, signer.key, "EdDSA", headers={"kid": signer.kid, "typ": "at+jwt", **header})


def refused(presented: str, audience: Audience = Audience.REST) -> BadCredential:
    with pytest.raises(BadCredential) as error:
        access_tokens.read(presented, audience=audience)
    return error.value


def segment(value: dict[str, Any] | bytes) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


# --- What is issued -----------------------------------------------------------------------------------


def test_an_issued_token_says_who_what_and_how_long(token, issued, settings) -> None:
    claims = claims_of(issued)
    assert claims["iss"] == settings.SITE_URL
    assert claims["aud"] == f"{settings.SITE_URL}/api/v1"
    assert claims["sub"] == f"hs_{token.prefix}"
    assert (claims["team"], claims["agent"]) == (str(token.team_id), str(token.agent_id))
    assert claims["token_id"] == str(token.pk)
    assert claims["scope"] == "memory:read reflect"
    assert claims["exp"] - claims["iat"] == 600
    assert claims["nbf"] == claims["iat"]
    header = jwt.get_unverified_header(issued)
    assert header == {"alg": "EdDSA", "typ": "at+jwt", "kid": signing_keys.signer().kid}


def test_it_reads_back(token, issued) -> None:
    verified = access_tokens.read(issued, audience=Audience.REST)
    assert verified.token == token
    assert verified.token.agent == token.agent
    assert verified.scopes == {"memory:read", "reflect"}
    assert abs(verified.expires_at - timezone.now() - timedelta(minutes=10)) < timedelta(seconds=10)
    assert verified.jti == claims_of(issued)["jti"]


def test_every_token_has_an_id_of_its_own(token) -> None:
    made = [access_tokens.issue(token, audience=Audience.MCP, scopes=["reflect"]).jwt for _ in range(5)]
    assert len({claims_of(one)["jti"] for one in made}) == 5


def test_it_never_outlives_its_api_token(token) -> None:
    token.expires_at = timezone.now() + timedelta(seconds=90)
    issued = access_tokens.issue(token, audience=Audience.REST, scopes=token.scopes)
    assert 85 <= issued.expires_in <= 90


def test_a_team_token_has_no_agent(team) -> None:
    made, _ = actions.create_token(team=team, by=SYSTEM, name="t", scopes=["reflect"], allowed=factories.ALL_SCOPES)
    signed = access_tokens.issue(made, audience=Audience.MCP, scopes=made.scopes).jwt
    assert claims_of(signed)["agent"] is None
    assert access_tokens.read(signed, audience=Audience.MCP).token.agent is None


def test_more_scopes_than_the_token_has_are_refused(token) -> None:
    with pytest.raises(Forbidden, match="lacks the scope admin"):
        access_tokens.issue(token, audience=Audience.REST, scopes=["memory:read", "admin"])


@pytest.mark.parametrize("text", ["", " ", "everything", "memory:read root", "MEMORY:READ"])
def test_unknown_scopes_are_refused(text) -> None:
    with pytest.raises(Invalid, match="must be some of"):
        access_tokens.parse_scopes(text)


def test_a_scope_taken_from_the_api_token_is_gone_at_once(token, issued) -> None:
    actions.set_token_scopes(team=token.team, by=SYSTEM, token=token, scopes=["reflect"], allowed=factories.ALL_SCOPES)
    assert access_tokens.read(issued, audience=Audience.REST).scopes == {"reflect"}
    actions.set_token_scopes(
        team=token.team, by=SYSTEM, token=token, scopes=factories.ALL_SCOPES, allowed=factories.ALL_SCOPES
    )
    assert access_tokens.read(issued, audience=Audience.REST).scopes == {"memory:read", "reflect"}


# --- What is refused ----------------------------------------------------------------------------------


def changed(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: {**claims, **changes}


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"exp": -16}, "token_expired", "expired"),
        ({"nbf": 30}, "not_yet_valid", "not valid yet"),
        ({"iat": 30}, "not_yet_valid", "not valid yet"),
        ({"iss": "https://elsewhere.test"}, "wrong_issuer", "another server"),
        ({"aud": "https://elsewhere.test/api/v1"}, "wrong_audience", "not for http"),
        ({"aud": ["http://127.0.0.1:8000/api/v1", "x"]}, "wrong_audience", "not for http"),
        ({"sub": 7}, "malformed_token", "not an access token"),
    ],
)
def test_wrong_claims(issued, changes, code, words) -> None:
    moved = {
        name: value + int(timezone.now().timestamp()) if name in {"exp", "nbf", "iat"} else value
        for name, value in changes.items()
    }
    error = refused(signed_with(signing_keys.signer(), {**claims_of(issued), **moved}))
    assert error.code == code
    assert words in str(error)


@pytest.mark.parametrize("changes", [{"exp": -10}, {"nbf": 10}, {"iat": 10}])
def test_clocks_may_differ_by_fifteen_seconds(issued, changes) -> None:
    moved = {name: value + int(timezone.now().timestamp()) for name, value in changes.items()}
    access_tokens.read(signed_with(signing_keys.signer(), {**claims_of(issued), **moved}), audience=Audience.REST)


@pytest.mark.parametrize("claim", access_tokens.REQUIRED)
def test_a_missing_claim(issued, claim) -> None:
    claims = claims_of(issued)
    del claims[claim]
    error = refused(signed_with(signing_keys.signer(), claims))
    assert (error.code, str(error)) == ("missing_claim", f"This access token lacks the claim {claim}.")


def test_one_audience_does_not_open_the_other(token, issued) -> None:
    assert refused(issued, Audience.MCP).code == "wrong_audience"
    for_mcp = access_tokens.issue(token, audience=Audience.MCP, scopes=token.scopes).jwt
    assert refused(for_mcp).code == "wrong_audience"
    assert access_tokens.read(for_mcp, audience=Audience.MCP).token == token


def test_a_key_of_ones_own(issued) -> None:
    stranger = signing_keys.Signer(signing_keys.signer().kid, Ed25519PrivateKey.generate())
    assert refused(signed_with(stranger, claims_of(issued))).code == "bad_signature"


@pytest.mark.parametrize("kid", ["", "x", "A" * 43, "\x00" * 43, "../../key", "é" * 43])
def test_an_unknown_key(issued, kid) -> None:
    own = signing_keys.Signer(kid, Ed25519PrivateKey.generate())
    assert refused(signed_with(own, claims_of(issued))).code == "unknown_key"


def test_no_key_named(issued) -> None:
    signed = jwt.encode(claims_of(issued), signing_keys.signer().key, "EdDSA", headers={"typ": "at+jwt"})
    assert refused(signed).code == "unknown_key"


def test_a_key_brought_along_in_the_header_counts_for_nothing(issued) -> None:
    own = Ed25519PrivateKey.generate()
    jwk = {
        "kty": "OKP", "crv": "Ed25519",
        "x": segment(own.public_key().public_bytes_raw()),
    }  # fmt: skip
    headers = {"kid": signing_keys.signer().kid, "typ": "at+jwt", "jwk": jwk, "jku": "http://127.0.0.1/keys"}
    assert refused(jwt.encode(claims_of(issued), own, "EdDSA", headers=headers)).code == "bad_signature"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_no_signature(issued, algorithm) -> None:
    header = {"alg": algorithm, "typ": "at+jwt", "kid": signing_keys.signer().kid}
    unsigned = f"{segment(header)}.{segment(claims_of(issued))}."
    assert refused(unsigned).code in {"wrong_algorithm", "malformed_token"}
    with_old_signature = unsigned + issued.rpartition(".")[2]
    assert refused(with_old_signature).code in {"wrong_algorithm", "malformed_token"}


@pytest.mark.parametrize("form", ["pem", "raw", "jwk"])
def test_the_public_key_as_a_shared_secret(issued, form) -> None:
    """The classic confusion: HS256, keyed with what everyone can read in the key set."""
    signer = signing_keys.signer()
    public = signer.key.public_key()
    secret = {
        "pem": public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        "raw": public.public_bytes_raw(),
        "jwk": json.dumps(SigningKey.objects.get(kid=signer.kid).public_jwk).encode(),
    }[form]
    head = f"{segment({'alg': 'HS256', 'typ': 'at+jwt', 'kid': signer.kid})}.{segment(claims_of(issued))}"
    signature = hmac.new(secret, head.encode(), hashlib.sha256).digest()
    assert refused(f"{head}.{segment(signature)}").code == "wrong_algorithm"


@pytest.mark.parametrize("kind", ["JWT", "", "id+jwt"])
def test_another_kind_of_token_from_our_own_keys(issued, kind) -> None:
    assert refused(signed_with(signing_keys.signer(), claims_of(issued), typ=kind)).code == "wrong_type"


def test_a_changed_character_is_noticed(issued) -> None:
    """Anywhere but in a segment's last character, whose low bits base64 does not use."""
    last = {i - 1 for i, letter in enumerate(issued) if letter == "."} | {len(issued) - 1}

    @hypothesis_settings(max_examples=150, deadline=None, database=None)
    @given(st.integers(0, len(issued) - 1), st.sampled_from("ABab01-_.=+ é\x00"))
    def check(position: int, letter: str) -> None:
        if position not in last and issued[position] != letter:
            refused(issued[:position] + letter + issued[position + 1 :])

    check()


@hypothesis_settings(max_examples=150, deadline=None, database=None)
@given(st.lists(st.text(max_size=30) | st.binary(max_size=30).map(segment), min_size=1, max_size=5))
def test_anything_else_is_refused_in_words(parts) -> None:
    error = refused(".".join(parts))
    assert error.code in {"malformed_token", "unknown_key", "wrong_algorithm"}


@pytest.mark.parametrize("header", [b"[" * 5000, b'{"kid": ' + b"[" * 5000, b"null", b"{}", b'"x"'])
def test_a_header_that_is_no_header(issued, header) -> None:
    refused(f"{segment(header)}.{issued.partition('.')[2]}")


def test_revoked_disabled_suspended_expired_deleted(token, issued) -> None:
    team, agent = token.team, token.agent
    actions.change_agent(team=team, by=SYSTEM, agent=agent, disabled=True)
    assert refused(issued).code == "agent_disabled"
    actions.change_agent(team=team, by=SYSTEM, agent=agent, disabled=False)
    team.suspended_at = timezone.now()
    team.save()
    assert refused(issued).code == "team_suspended"
    team.suspended_at = None
    team.save()
    rows = ApiToken.objects.of(team).filter(pk=token.pk)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(issued).code == "token_expired"
    rows.update(expires_at=None)
    access_tokens.read(issued, audience=Audience.REST)
    actions.revoke_token(team=team, by=SYSTEM, token=token)
    assert refused(issued).code == "token_revoked"
    rows.delete()
    assert refused(issued).code == "token_unknown"


def test_reading_takes_one_query_once_the_team_is_at_work(issued, django_assert_num_queries) -> None:
    access_tokens.read(issued, audience=Audience.REST)  # the key is in memory from now on
    with django_assert_num_queries(2):
        access_tokens.read(issued, audience=Audience.REST)


def test_every_refusal_fits_into_a_header(token, issued) -> None:
    signer = signing_keys.signer()
    wrong = [
        issued + "x", "a.b.c", signed_with(signer, changed(exp=1)(claims_of(issued))),
        signed_with(signer, changed(aud="x")(claims_of(issued))), signed_with(signer, {}),
    ]  # fmt: skip
    for presented in wrong:
        message = str(refused(presented))
        assert message.isascii()
        assert '"' not in message
