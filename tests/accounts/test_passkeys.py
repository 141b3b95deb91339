"""Passkeys: one that fits opens every door, and no answer of a wrong form is more than a wrong passkey."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.test import Client
from django.urls import reverse
from fido2.cose import ES256
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hindsight_site.accounts import passkeys
from hindsight_site.accounts.models import User
from tests import factories

pytestmark = pytest.mark.django_db
CREDENTIAL_ID = b"a credential's id"
DOORS = ("mfa_login_webauthn", "mfa_authenticate", "mfa_add_webauthn", "mfa_reauthenticate_webauthn")
NOTHING_LIKE_IT = (
    "", "null", "not json", "[]", "{}", "1", '"text"', "true", "[[]]", '{"response": null}', '{"response": []}',
    '{"id": 1, "rawId": 1, "type": 1, "response": 1}', "[" * 60_000, '{"a":' * 20_000, "9" * 10_000, "NaN",
    '{"id":"","rawId":"","type":"","response":{"clientDataJSON":"","attestationObject":"","authenticatorData":"",'
    '"signature":"","userHandle":""}}', "x" * 70_000,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_log_in_limits(settings) -> None:
    """The fuzzing tries more often than anybody may."""
    settings.ACCOUNT_RATE_LIMITS = settings.MFA_RATE_LIMITS = False


def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Passkey:
    """A passkey in software, as a browser and a key would answer together."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())

    def _client_data(self, kind: str, challenge: str) -> bytes:
        given = {"type": f"webauthn.{kind}", "challenge": challenge, "origin": "https://testserver"}
        return json.dumps(given).encode()

    def _data(self, flags: int, credential: bytes = b"") -> AuthenticatorData:
        host = hashlib.sha256(b"testserver").digest()
        return AuthenticatorData(host + bytes([flags]) + (1).to_bytes(4, "big") + credential)

    def register(self, challenge: str) -> dict[str, Any]:
        public = ES256.from_cryptography_key(self.key.public_key())
        credential = AttestedCredentialData.create(b"\0" * 16, CREDENTIAL_ID, public)
        attestation = AttestationObject.create("none", self._data(0x45, bytes(credential)), {})
        response = {
            "clientDataJSON": text_of(self._client_data("create", challenge)),
            "attestationObject": text_of(bytes(attestation)),
        }
        return self._answer(response, {"credProps": {"rk": True}})

    def sign(self, challenge: str, user: User) -> dict[str, Any]:
        client_data, data = self._client_data("get", challenge), bytes(self._data(0x05))
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": text_of(client_data),
            "authenticatorData": text_of(data),
            "signature": text_of(signature),
            "userHandle": text_of(user_pk_to_url_str(user).encode()),
        }
        return self._answer(response, {})

    def _answer(self, response: dict[str, str], extensions: dict[str, Any]) -> dict[str, Any]:
        ident = text_of(CREDENTIAL_ID)
        return {
            "id": ident, "rawId": ident, "type": "public-key", "response": response,
            "clientExtensionResults": extensions,
        }  # fmt: skip


class Door:
    """A page that takes a passkey, with whoever stands before it."""

    def __init__(self, name: str, user: User, passkey: Passkey) -> None:
        self.name, self.user, self.passkey = name, user, passkey
        self.client = Client(raise_request_exception=False)
        if name in {"mfa_add_webauthn", "mfa_reauthenticate_webauthn"}:
            self.client.force_login(user)
            self.client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD}, secure=True)
        if name == "mfa_authenticate":
            form = {"username": user.email, "password": factories.PASSWORD}
            self.client.post(reverse("login"), form, secure=True)

    def challenge(self) -> str:
        headers = {"Accept": "application/json"} if self.name == "mfa_login_webauthn" else {}
        page = self.client.get(reverse(self.name), headers=headers, secure=True)
        assert page.status_code == 200, page
        return self.client.session["mfa.webauthn.state"]["challenge"]

    def right_answer(self) -> dict[str, Any]:
        challenge = self.challenge()
        if self.name == "mfa_add_webauthn":
            return Passkey().register(challenge)
        return self.passkey.sign(challenge, self.user)

    def answer(self, credential: str, **more: str) -> Any:
        return self.client.post(reverse(self.name), {"credential": credential, **more}, secure=True)


@pytest.fixture
def door(alice) -> Callable[[str], Door]:
    """`door(name)`: alice, who has a passkey, before the page of that name."""
    passkey = Passkey()
    adding = Door("mfa_add_webauthn", alice, passkey)
    made = adding.answer(json.dumps(passkey.register(adding.challenge())), name="mine", passwordless="on")
    assert made.status_code == 302, made.content
    return lambda name: Door(name, alice, passkey)


def is_refused(door: Door, answer: Any, told: str) -> None:
    """Shown again with words, and nothing opened."""
    assert answer.status_code in {200, 302}, f"{door.name} answered {answer.status_code} to {told}"
    page = answer.content.decode() or door.client.get(answer["Location"], secure=True).content.decode()
    assert "was not accepted" in page, f"{door.name} says nothing of {told}"
    assert "Traceback" not in page
    assert Authenticator.objects.filter(type="webauthn").count() == 1
    if door.name in {"mfa_login_webauthn", "mfa_authenticate"}:
        assert door.client.get(reverse("overview"), secure=True).status_code == 302, f"{door.name}: {told}"


@pytest.mark.parametrize("name", DOORS)
def test_the_right_answer_opens(door, name) -> None:
    at = door(name)
    answer = at.answer(json.dumps(at.right_answer()), name="another")
    assert answer.status_code == 302
    assert at.client.get(reverse("overview"), secure=True).status_code == 200
    assert Authenticator.objects.filter(type="webauthn").count() == (2 if name == "mfa_add_webauthn" else 1)


@pytest.mark.parametrize("name", DOORS)
def test_what_is_nothing_like_an_answer(door, name) -> None:
    at = door(name)
    at.challenge()
    for credential in NOTHING_LIKE_IT:
        is_refused(at, at.answer(credential), credential[:60])


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of everything in an answer, the answer itself left out."""
    found = [path] if path else []
    if isinstance(value, dict):
        found += [deeper for key in value for deeper in places(value[key], (*path, key))]
    return found


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20), st.just("\ud800"),
    st.lists(st.text(max_size=3), max_size=2), st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
    st.binary(max_size=80).map(text_of),
)  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
def test_a_right_answer_with_something_wrong_in_it(door, name) -> None:
    at = door(name)
    needed = [path for path in places(at.right_answer()) if path not in {("clientExtensionResults",), ("id",)}]
    needed = [path for path in needed if path[0] != "clientExtensionResults"]

    @hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(path=st.sampled_from(needed), junk=JUNK, cut=st.booleans())
    def tried(path: tuple[str, ...], junk: Any, cut: bool) -> None:
        credential = at.right_answer()
        if path == ("response", "userHandle") and at.name != "mfa_login_webauthn":
            return  # says who it is where nobody is known yet
        if path[-1] in {"type", "rawId"}:
            junk = 1  # of these the form alone is looked at
        holder = credential
        for key in path[:-1]:
            holder = holder[key]
        before = copy.deepcopy(holder[path[-1]])
        if cut:
            del holder[path[-1]]
        else:
            holder[path[-1]] = junk
        if not cut and junk == before:
            return
        is_refused(at, at.answer(json.dumps(credential)), f"{path} = {junk!r}")

    tried()


@pytest.mark.parametrize("name", DOORS)
def test_a_right_answer_with_bytes_wrong_in_it(door, name) -> None:
    """Past the JSON, the parsers of CBOR, keys and signatures."""
    at = door(name)
    texts = [key for key, value in at.right_answer()["response"].items() if value and key != "userHandle"]

    @hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(key=st.sampled_from(texts), where=st.floats(0, 0.999), flip=st.integers(0, 255))
    def tried(key: str, where: float, flip: int) -> None:
        credential = at.right_answer()
        good = base64.urlsafe_b64decode(credential["response"][key] + "==")
        place = int(where * len(good))
        bad = good[:place] + bytes([good[place] ^ flip]) + good[place + 1 :] if flip else good[:place]
        credential["response"][key] = text_of(bad)
        answer = at.answer(json.dumps(credential))
        # A key that attests nothing may say anything of itself: then another passkey is added, no crash.
        Authenticator.objects.filter(type="webauthn").exclude(data__name="mine").delete()
        assert answer.status_code in {200, 302}, f"{answer.status_code}: {key} {bad!r}"

    tried()


@pytest.mark.parametrize("extra", ["\0", "\ud800", "a\0b"])
def test_what_the_database_cannot_keep(door, extra) -> None:
    at = door("mfa_add_webauthn")
    credential = {**at.right_answer(), "more": extra}
    is_refused(at, at.answer(json.dumps(credential), name="another"), repr(extra))


@pytest.mark.parametrize("extensions", [[], "", {"credProps": 1}, {"credProps": "rk"}, {"credProps": []}])
def test_extensions_that_the_list_of_passkeys_could_not_show(door, extensions) -> None:
    at = door("mfa_add_webauthn")
    credential = {**at.right_answer(), "clientExtensionResults": extensions}
    is_refused(at, at.answer(json.dumps(credential), name="another"), repr(extensions))
    assert at.client.get(reverse("mfa_list_webauthn"), secure=True).status_code == 200


@given(answer=st.recursive(JUNK, lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=4)))
def test_the_form_of_any_json_can_be_told(answer: Any) -> None:
    assert passkeys.has_form(answer, passkeys.ASSERTED) is False
    assert passkeys.can_be_kept(answer) in {True, False}
