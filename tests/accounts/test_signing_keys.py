"""The keys that sign access tokens: made once, published, rotated, retired."""

from __future__ import annotations

import base64
import json
import threading
from datetime import timedelta
from io import StringIO

import jwt
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from hindsight_site.accounts import access_tokens, actions, signing_keys
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience, KeyState
from hindsight_site.accounts.models import ApiToken, SigningKey
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(agent) -> ApiToken:
    made, _ = actions.create_token(
        team=agent.team, by=SYSTEM, name="t", scopes=["reflect"], allowed=factories.ALL_SCOPES, agent=agent
    )
    return made


@pytest.fixture
def issued(token: ApiToken) -> str:
    return issue(token)


def issue(token: ApiToken) -> str:
    return access_tokens.issue(token, audience=Audience.REST, scopes=token.scopes).jwt


def accepted(signed: str) -> bool:
    try:
        access_tokens.read(signed, audience=Audience.REST)
    except BadCredential as error:
        assert error.code == "unknown_key"  # noqa: PT017 - any other refusal is a fault
        return False
    return True


def next_was_published_long_ago() -> None:
    SigningKey.objects.filter(state=KeyState.NEXT).update(created_at=timezone.now() - timedelta(minutes=11))


def rotated() -> signing_keys.Rotation:
    next_was_published_long_ago()
    return signing_keys.rotate()


def test_the_first_need_makes_an_active_and_a_next_key() -> None:
    assert SigningKey.objects.count() == 0
    signer = signing_keys.signer()
    assert signing_keys.signer().kid == signer.kid
    assert sorted(SigningKey.objects.values_list("state", flat=True)) == ["active", "next"]


@pytest.mark.django_db(transaction=True)
def test_two_starters_at_once_make_one_key() -> None:
    gate = threading.Barrier(6)
    kids: list[str] = []

    def start() -> None:
        gate.wait()
        kids.append(signing_keys.signer().kid)
        connection.close()

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kids) == 6
    assert len(set(kids)) == 1
    assert SigningKey.objects.count() == 2


def test_the_database_allows_one_active_key() -> None:
    signing_keys.signer()
    with pytest.raises(IntegrityError), transaction.atomic():
        SigningKey.objects.filter(state=KeyState.NEXT).update(state=KeyState.ACTIVE)


def test_the_name_of_a_key_is_its_thumbprint() -> None:
    """The example of RFC 8037, appendices A.2 and A.3."""
    x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    thumbprint = signing_keys.thumbprint({"kty": "OKP", "crv": "Ed25519", "x": x})
    assert thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_private_keys_are_not_stored_in_clear() -> None:
    signer = signing_keys.signer()
    raw = signer.key.private_bytes_raw()
    for stored in SigningKey.objects.values_list("private_pem", "public_jwk"):
        assert "PRIVATE" not in str(stored)
        assert base64.urlsafe_b64encode(raw).rstrip(b"=").decode() not in str(stored)
        assert '"d"' not in json.dumps(stored[1])


def test_a_rotation_lets_the_next_key_sign_and_keeps_old_tokens_valid(token, issued) -> None:
    before = {row.state: row.kid for row in SigningKey.objects.all()}
    done = rotated()
    assert done.active == before["next"]
    assert signing_keys.signer().kid == before["next"]
    assert (done.retiring, done.wait_until) == (1, None)
    retiring = SigningKey.objects.get(kid=before["active"])
    assert (retiring.state, retiring.private_pem) == ("retiring", "")
    assert accepted(issued)
    fresh = issue(token)
    assert jwt.get_unverified_header(fresh)["kid"] == before["next"]
    assert accepted(fresh)


def test_rotating_twice_changes_nothing_more(token, issued) -> None:
    first = rotated()
    again = signing_keys.rotate()
    assert (again.active, again.next, again.retiring) == (first.active, first.next, 1)
    assert again.wait_until is not None
    assert accepted(issued)


def test_two_full_rotations_within_a_tokens_life(issued) -> None:
    rotated()
    rotated()
    assert SigningKey.objects.filter(state=KeyState.RETIRING).count() == 2
    assert accepted(issued)


def test_a_retired_key_is_not_accepted_even_where_it_is_in_memory(issued) -> None:
    assert accepted(issued)
    rotated()
    SigningKey.objects.filter(state=KeyState.RETIRING).update(accepted_until=timezone.now())
    assert not accepted(issued)  # though nobody has run the command again yet
    assert signing_keys.rotate().retired == 1


def test_a_leaked_key_ends_every_access_token(token, issued) -> None:
    signing_keys.rotate(leaked=True)
    assert not accepted(issued)
    assert not SigningKey.objects.filter(state=KeyState.RETIRED).exclude(private_pem="").exists()
    fresh = issue(token)
    assert accepted(fresh)


def test_another_secret_key(token, issued, settings) -> None:
    former = settings.SECRET_KEY
    settings.SECRET_KEY = "another-key-that-an-operator-has-set-since"
    with pytest.raises(ImproperlyConfigured, match="rotate_keys"):
        signing_keys.signer()
    assert accepted(issued)  # reading needs the public half only
    settings.SECRET_KEY_FALLBACKS = [former]
    kid = signing_keys.signer().kid
    settings.SECRET_KEY_FALLBACKS = []
    assert signing_keys.rotate().active != kid  # at once: neither key of before can sign
    fresh = issue(token)
    assert accepted(fresh)
    assert accepted(issued)


def test_the_command_says_in_one_line_what_it_did() -> None:
    said = StringIO()
    for arguments in ([], [], ["--leaked"]):
        call_command("rotate_keys", *arguments, stdout=said)
    lines = said.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.startswith("Signing keys: ") for line in lines)
    assert "0 retiring, 0 retired." in lines[0]
    assert "Not rotated" in lines[1]
    assert "2 retired." in lines[2]
