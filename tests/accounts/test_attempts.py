"""Exchanging tokens: failures limited by address, successes by token, and nobody gets round it by a header."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.test import Client, RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import attempts, limits
from hindsight_site.accounts.throttle import UNKNOWN, client_address
from tests import factories

pytestmark = pytest.mark.django_db
DEAD = "hs_aaaaaaaa_" + "A" * 43
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(autouse=True)
def _fresh_line() -> Iterator[None]:
    """The limiter's connection ends with the test, or the test database could not be dropped."""
    limits.close()
    yield
    limits.close()


@pytest.fixture
def address() -> str:
    """An address that no other test has: the buckets outlive a test's transaction."""
    return str(IPv6Address((0xFD << 120) | (uuid.uuid4().int >> 8)))


@pytest.fixture(autouse=True)
def _limit(settings) -> None:
    settings.RATE_LIMIT_FAILED_PER_MINUTE, settings.RATE_LIMIT_FAILED_BURST = 2, 3


def by_oauth(secret: str, address: str, **headers: str) -> Any:
    form = f"grant_type=client_credentials&client_id={secret[:11]}&client_secret={secret}"
    return Client().post("/oauth/token", form, content_type=FORM, headers=headers, REMOTE_ADDR=address)


def by_api(secret: str, address: str, **headers: str) -> Any:
    given = {"Authorization": f"Bearer {secret}", **headers}
    return Client().post("/api/v1/auth/token", {}, "application/json", headers=given, REMOTE_ADDR=address)


DOORS = [by_oauth, by_api]
each_door = pytest.mark.parametrize("exchange", DOORS)


@pytest.fixture
def secret(agent) -> str:
    return factories.token(agent.team, agent, ["memory:read"])


@each_door
def test_failures_of_an_address_are_limited(exchange, address) -> None:
    answers = [exchange(DEAD, address) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    over = answers[-1]
    assert 1 <= int(over["Retry-After"]) <= 30
    body = over.json()
    if exchange is by_oauth:
        assert set(body) == {"error", "error_description"}
        assert body["error"] == "temporarily_unavailable"
        assert body["error_description"].isascii()
        assert over["Cache-Control"] == "no-store"
    else:
        assert over["Content-Type"] == "application/problem+json"
        assert (body["status"], body["code"]) == (429, "rate_limited")


def test_both_doors_count_together(address) -> None:
    answers = [exchange(DEAD, address).status_code for exchange in DOORS * 2]
    assert answers == [401, 401, 401, 429]


@each_door
def test_a_neighbour_with_a_token_that_works_notices_nothing(exchange, address, secret) -> None:
    for _ in range(6):
        exchange(DEAD, address)
    assert [exchange(secret, address).status_code for _ in range(5)] == [200] * 5


@each_door
def test_another_address_has_its_own(exchange, address) -> None:
    for _ in range(6):
        exchange(DEAD, address)
    other = str(IPv6Address(int(IPv6Address(address)) ^ (1 << 64)))
    assert exchange(DEAD, other).status_code == 401


@each_door
def test_headers_that_anybody_can_send_do_not_get_round_it(exchange, address) -> None:
    made_up = [
        {"X-Forwarded-For": f"198.51.100.{n}", "X-Real-IP": f"198.51.100.{n}", "Forwarded": f"for=198.51.100.{n}"}
        for n in range(5)
    ]
    assert [exchange(DEAD, address, **headers).status_code for headers in made_up][-1] == 429


@each_door
def test_behind_our_proxy_the_client_counts(exchange, address, settings) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    for n in range(4):  # what the client wrote stands left of what our proxy did
        last = exchange(DEAD, "10.0.0.1", **{"X-Forwarded-For": f"198.51.100.{n}, {address}"})
    assert last.status_code == 429


@each_door
def test_successes_are_limited_by_token(exchange, address, secret, settings) -> None:
    settings.RATE_LIMIT_TOKEN_PER_MINUTE, settings.RATE_LIMIT_TOKEN_BURST = 2, 2
    answers = [exchange(secret, address) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[-1]["Retry-After"]) <= 30
    if exchange is by_oauth:
        assert answers[-1].json()["error"] == "temporarily_unavailable"
    else:
        assert answers[-1].json()["code"] == "rate_limited"
    # One each ten minutes finds the bucket full again.
    with psycopg.connect(**connections["default"].get_connection_params(), autocommit=True) as line:
        line.execute("UPDATE accounts_ratebucket SET full_at = full_at - %s", [600 * limits.SECOND])
    assert exchange(secret, address).status_code == 200


@each_door
def test_it_can_be_switched_off(exchange, address, settings) -> None:
    settings.RATE_LIMIT_FAILED_PER_MINUTE = 0
    assert {exchange(DEAD, address).status_code for _ in range(8)} == {401}


def test_a_network_of_ipv6_is_one_client_and_a_mapped_address_is_ipv4() -> None:
    assert attempts.bucket_of("2001:db8::1") == attempts.bucket_of("2001:db8::ffff:1")
    assert attempts.bucket_of("2001:db8::1") != attempts.bucket_of("2001:db8:0:1::1")
    assert attempts.bucket_of("::ffff:192.0.2.1") == attempts.bucket_of("192.0.2.1")
    assert attempts.bucket_of("::ffff:192.0.2.1") != attempts.bucket_of("::ffff:192.0.2.2")


@pytest.mark.parametrize(
    ("count", "forwarded", "remote", "expected"),
    [
        (0, "198.51.100.1", "192.0.2.1", "192.0.2.1"),
        (1, "198.51.100.1", "10.0.0.1", "198.51.100.1"),
        (1, "127.0.0.1, 198.51.100.1", "10.0.0.1", "198.51.100.1"),
        (2, "198.51.100.1, 10.0.0.2", "10.0.0.1", "198.51.100.1"),
        (2, "198.51.100.1", "10.0.0.1", "10.0.0.1"),  # not through both of our proxies
        (1, "", "10.0.0.1", "10.0.0.1"),
        (1, "nonsense", "10.0.0.1", "10.0.0.1"),
        (1, "198.51.100.1:4711", "10.0.0.1", "198.51.100.1"),
        (1, "[2001:db8::1]:4711", "10.0.0.1", "2001:db8::1"),
        (1, "2001:db8::1", "10.0.0.1", "2001:db8::1"),
        (0, "", "", UNKNOWN),
    ],
)
def test_whose_address_it_is(settings, count, forwarded, remote, expected) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = count
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert client_address(RequestFactory().get("/", headers=headers, REMOTE_ADDR=remote)) == expected


@given(text=st.text(max_size=60))
def test_any_address_has_a_bucket(text: str) -> None:
    assert attempts.bucket_of(text) == attempts.bucket_of(text)


@pytest.mark.parametrize("count", [1, 3])
def test_a_log_in_with_too_few_proxies_is_no_crash(alice, settings, count) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = count
    form = {"username": alice.email, "password": "wrong"}
    assert Client().post("/login/", form, headers={"X-Forwarded-For": "x"}).status_code == 200
