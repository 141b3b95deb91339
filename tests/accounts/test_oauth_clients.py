"""Who a client is and where it may be answered: descriptions, registrations, redirect addresses."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import connected_clients, limits, oauth_clients
from hindsight_site.accounts.oauth_clients import BadClient, check_document_address, check_redirect_uri, describe

LONG = [f"https://a.test/{hashlib.shake_256(bytes([n])).hexdigest(190)}" for n in range(9)]  # hard to compress
LOOPBACK_URI = "http://127.0.0.1:4711/back"
things = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.test/back",
        "https://app.test:8443/back?x=1",
        "https://[2001:db8::1]:8443/back",
        "http://127.0.0.1/back",
        "http://localhost:1/",
        "http://[::1]:5/back",
        "com.example.app:/back",
        "vscode://publisher.extension/back",
    ],
)
def test_redirect_addresses_that_will_do(uri) -> None:
    check_redirect_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://app.test/back",
        "http://127.0.0.1.app.test/",
        "http://127.0.0.1@app.test/",
        "https://user@app.test/",
        "https:///back",
        "https://app.test;script-src/",
        "https://*.test/",
        "https://app.test,other.test/",
        "https://app.test/#x",
        "https://app.test/#",
        "https://app.test/ back",
        "https://app.test/\nback",
        "https://bücher.test/",
        "https://app.test\\back",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "unknown://x",
        "/back",
        "//app.test/back",
        "http://[::1/back",
        "https://app.test:port/",
        "https://app.test/" + "x" * 400,
        "",
        None,
        7,
    ],
)
def test_redirect_addresses_that_will_not(uri) -> None:
    with pytest.raises(BadClient):
        check_redirect_uri(uri)


@given(things)
def test_any_description_is_taken_or_refused(thing) -> None:
    wanted = thing if isinstance(thing, dict) else {"redirect_uris": thing}
    for metadata in (thing, wanted, {"redirect_uris": [LOOPBACK_URI], "client_name": thing, "grant_types": thing}):
        try:
            name, uris = describe(metadata)
        except BadClient as refused:
            told = str(refused)
        else:
            told = ""
            assert name.isprintable()
            assert 0 < len(name) <= oauth_clients.MAX_NAME
            assert uris
        assert told.isascii()


@given(st.text())
def test_only_registered_addresses_are_answered(uri) -> None:
    client = oauth_clients.register({"redirect_uris": [LOOPBACK_URI, "https://app.test/back"]})
    same = uri in client.redirect_uris
    on_loopback = uri.startswith("http://127.0.0.1") and uri.endswith("/back")
    assert not client.may_be_answered_at(uri) or same or on_loopback


@given(st.integers(0, 65535))
def test_any_port_on_loopback(port) -> None:
    client = oauth_clients.register({"redirect_uris": [LOOPBACK_URI]})
    assert client.may_be_answered_at(f"http://127.0.0.1:{port}/back")
    assert not client.may_be_answered_at(f"http://127.0.0.1:{port}/back/")
    assert not client.may_be_answered_at(f"http://localhost:{port}/back")


@given(st.text(max_size=40))
def test_a_registration_comes_back_and_no_other_does(name) -> None:
    client = oauth_clients.register({"redirect_uris": [LOOPBACK_URI], "client_name": name})
    assert oauth_clients.find(client.id) == client
    with pytest.raises(BadClient):
        oauth_clients.find(client.id[:-1] + ("A" if client.id[-1] != "A" else "B"))


@given(st.text())
def test_made_up_ids(ident) -> None:
    with pytest.raises(BadClient):
        oauth_clients.find("hsc." + ident)


@pytest.mark.parametrize(
    "address",
    [
        "https://app.test",
        "https://app.test/",
        "https://app.test/../x",
        "https://app.test/a/./b",
        "https://app.test/%2e%2E/x",
        "https://app.test/x#y",
        "https://me@app.test/x",
        "https://app.test:port/x",
        "https://app.test/" + "x" * 500,
    ],
)
def test_addresses_that_name_no_document(address) -> None:
    with pytest.raises(BadClient):
        check_document_address(address)


def test_pkce_is_that_of_the_standard() -> None:
    # RFC 7636, appendix B.
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert connected_clients.challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def register(body: Any, address: str = "127.0.0.1") -> Any:
    sent = body if isinstance(body, str | bytes) else json.dumps(body)
    client = Client(enforce_csrf_checks=True, REMOTE_ADDR=address)
    return client.post("/oauth/register", sent, content_type="application/json")


@pytest.mark.django_db
def test_registering() -> None:
    wanted = {
        "redirect_uris": [LOOPBACK_URI],
        "client_name": "Desk",
        "token_endpoint_auth_method": "client_secret_post",
    }
    answer = register(wanted)
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    body = answer.json()
    assert body["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in body
    assert oauth_clients.find(body["client_id"]).redirect_uris == (LOOPBACK_URI,)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{", "invalid_client_metadata"),
        (b"\xff", "invalid_client_metadata"),
        ("[" * 10_000, "invalid_client_metadata"),
        ([], "invalid_client_metadata"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://evil.test/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [LOOPBACK_URI] * 11}, "invalid_redirect_uri"),
        ({"redirect_uris": [LOOPBACK_URI], "grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"redirect_uris": [LOOPBACK_URI], "client_name": 7}, "invalid_client_metadata"),
        ({"redirect_uris": [LOOPBACK_URI], "x": "y" * 20_000}, "invalid_client_metadata"),
        ({"redirect_uris": LONG}, "invalid_client_metadata"),
    ],
)
def test_registrations_that_will_not_do(body, error) -> None:
    answer = register(body)
    assert answer.status_code == 400
    assert answer.json()["error"] == error


@pytest.mark.django_db(transaction=True)
def test_registering_too_often(settings) -> None:
    settings.RATE_LIMIT_FAILED_PER_MINUTE, settings.RATE_LIMIT_FAILED_BURST = 1, 2
    address = f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1"  # nobody has called from there
    answers = [register({"redirect_uris": [LOOPBACK_URI]}, address) for _ in range(4)]
    limits.close()
    assert [answer.status_code for answer in answers] == [201, 201, 429, 429]
    assert int(answers[-1]["Retry-After"]) > 0
