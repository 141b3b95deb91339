"""Token buckets: exact under parallel calls, nothing taken by a refusal, open when the limiter is down."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import deletion, limits, tasks
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.limits import Policy
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories

pytestmark = pytest.mark.django_db

OFF = Policy("team", 0, 0)


@pytest.fixture(autouse=True)
def _fresh_line() -> Iterator[None]:
    """The limiter's connection ends with the test, or the test database could not be dropped."""
    limits.close()
    yield
    limits.close()


@pytest.fixture
def limit(settings):
    """`limit(token=(per_minute, burst), team=(per_minute, burst))` switches limits on."""

    def switch_on(token: tuple[int, int] = (0, 0), team: tuple[int, int] = (0, 0)) -> None:
        settings.RATE_LIMIT_TOKEN_PER_MINUTE, settings.RATE_LIMIT_TOKEN_BURST = token
        settings.RATE_LIMIT_TEAM_PER_MINUTE, settings.RATE_LIMIT_TEAM_BURST = team

    return switch_on


def a_token(team_id: uuid.UUID | None = None) -> Any:
    """As much of an ApiToken as the limiter looks at."""
    return SimpleNamespace(pk=uuid.uuid4(), team_id=team_id or uuid.uuid4())


def another_line() -> psycopg.Connection:
    return psycopg.connect(**connections["default"].get_connection_params(), autocommit=True)


def rows_of(team_id: uuid.UUID) -> list[tuple]:
    with another_line() as line:
        return line.execute(
            "SELECT owner_id, full_at, requests FROM accounts_ratebucket WHERE team_id = %s ORDER BY owner_id",
            [team_id],
        ).fetchall()


# --- The arithmetic ---------------------------------------------------------------------------------


@given(per_minute=st.integers(1, 1_000_000), burst=st.integers(0, 10_000), missing=st.integers(-(10**9), 10**12))
def test_a_standing_is_consistent(per_minute: int, burst: int, missing: int) -> None:
    policy = Policy("token", per_minute, burst)
    now = 1_790_000_000 * limits.SECOND
    found = limits.standing(policy, now, now + missing)
    assert 0 <= found.remaining <= max(burst, 1)
    assert (found.wait > 0) == (found.remaining == 0)
    if found.remaining == 0:
        # Waiting that long, and no less, makes room for one.
        later = now + round(found.wait * limits.SECOND)
        assert limits.standing(policy, later, now + missing).remaining == 1
        assert limits.standing(policy, later - 1, now + missing).remaining == 0


def test_a_full_bucket_holds_its_burst() -> None:
    now = 1_790_000_000 * limits.SECOND
    assert limits.standing(Policy("token", 1_200, 200), now, now).remaining == 200


# --- The statement ----------------------------------------------------------------------------------


def test_fifty_parallel_callers_get_the_burst_and_what_refills() -> None:
    policy, token = Policy("token", 600, 100), a_token()
    passed: list[bool] = []
    lines = [another_line() for _ in range(10)]

    def call(line: psycopg.Connection) -> None:
        passed.extend(limits.ask(line, token.team_id, token.pk, policy, OFF).allowed for _ in range(8))

    threads = [threading.Thread(target=call, args=[lines[i % len(lines)]]) for i in range(50)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    for line in lines:
        line.close()
    assert len(passed) == 400
    assert 100 <= sum(passed) <= 100 + took * 10 + 1


def pass_time(token: Any, seconds: int) -> None:
    """Let the buckets of a token and of its team refill for so long."""
    with another_line() as line:
        line.execute(
            "UPDATE accounts_ratebucket SET full_at = full_at - %s WHERE team_id = %s",
            [seconds * limits.SECOND, token.team_id],
        )


def test_a_refused_request_takes_nothing(limit) -> None:
    limit(token=(1, 1))
    token = a_token()
    assert limits.take(token).allowed
    before = rows_of(token.team_id)
    refused = [limits.take(token) for _ in range(5)]
    assert not any(allowance.allowed for allowance in refused)
    assert rows_of(token.team_id) == before
    assert 0 < refused[-1].tightest.wait <= 60
    pass_time(token, 60)
    assert limits.take(token).allowed, "the five refusals must not have put it off"


def test_a_bucket_refills_up_to_its_burst_and_no_further(limit) -> None:
    limit(token=(1, 3))
    token = a_token()
    assert [limits.take(token).allowed for _ in range(4)] == [True, True, True, False]
    pass_time(token, 3_600)
    assert [limits.take(token).allowed for _ in range(4)] == [True, True, True, False]


def test_two_tokens_share_their_teams_bucket_and_another_team_has_its_own(limit) -> None:
    limit(token=(1, 10), team=(1, 3))
    one = a_token()
    two, stranger = a_token(one.team_id), a_token()
    assert [limits.take(token).allowed for token in (one, two, one)] == [True, True, True]
    refused = limits.take(two)
    assert (refused.allowed, refused.tightest.policy.name) == (False, "team")
    assert limits.take(stranger).allowed


def test_what_the_team_refuses_is_not_taken_from_the_token(limit) -> None:
    limit(token=(1, 10), team=(1, 1))
    one = a_token()
    two = a_token(one.team_id)
    assert limits.take(one).allowed
    for _ in range(5):
        refused = limits.take(two)
        assert not refused.allowed
        left = {standing.policy.name: standing.remaining for standing in refused.standings}
        assert left == {"token": 10, "team": 0}


def test_a_limit_that_is_off_does_not_count_even_after_it_was_on(limit) -> None:
    token = a_token()
    limit(token=(1, 1))
    assert [limits.take(token).allowed for _ in range(2)] == [True, False]
    limit(team=(1, 5))
    answers = [limits.take(token) for _ in range(6)]
    assert [answer.allowed for answer in answers] == [True] * 5 + [False]
    assert [standing.policy.name for standing in answers[0].standings] == ["team"]


def test_off_asks_nothing() -> None:
    token = a_token()
    assert limits.take(token) == limits.OPEN
    assert rows_of(token.team_id) == []
    assert limits.requests_today(token.team_id) is None


def test_requests_are_counted_by_token_and_day(limit) -> None:
    limit(token=(1, 2))
    one = a_token()
    two = a_token(one.team_id)
    for token in (one, one, one, two):  # the third is refused
        limits.take(token)
    assert limits.requests_today(one.team_id) == {one.pk: 2, two.pk: 1}
    with another_line() as line:
        line.execute("UPDATE accounts_ratebucket SET day = day - 1, full_at = 0 WHERE team_id = %s", [one.team_id])
    assert limits.requests_today(one.team_id) == {}
    limits.take(one)
    assert limits.requests_today(one.team_id) == {one.pk: 1}


def test_full_buckets_are_tidied_away(limit) -> None:
    limit(token=(1, 2))
    old, new = a_token(), a_token()
    limits.take(old), limits.take(new)
    with another_line() as line:
        line.execute("UPDATE accounts_ratebucket SET day = day - 2 WHERE team_id = %s", [old.team_id])
    limits.close()
    limits.take(new)
    assert (len(rows_of(old.team_id)), len(rows_of(new.team_id))) == (0, 2)


# --- Beside the request's transaction ---------------------------------------------------------------


def test_the_table_is_not_logged_and_points_nowhere() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'accounts_ratebucket'")
        assert cursor.fetchone() == ("u",)
        cursor.execute(
            "SELECT count(*) FROM pg_constraint WHERE conrelid = 'accounts_ratebucket'::regclass AND contype = 'f'"
        )
        assert cursor.fetchone() == (0,)


def test_neither_rolled_back_nor_locked_with_the_transaction_around_it(limit) -> None:
    limit(token=(1, 5))
    token = a_token()
    with transaction.atomic():
        limits.take(token)
        with another_line() as line:
            line.execute("SET lock_timeout = '200ms'")
            assert limits.ask(line, token.team_id, token.pk, *limits.policies()).allowed
        transaction.set_rollback(True)
    assert limits.take(token).tightest.remaining == 2


def test_a_lost_connection_is_replaced_at_once(limit) -> None:
    limit(token=(1, 5))
    token = a_token()
    limits.take(token)
    with another_line() as line:
        line.execute(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE '%%accounts_ratebucket%%' AND pid <> pg_backend_pid()"
        )
    assert limits.take(token).tightest.remaining == 3


def test_a_limiter_that_is_down_lets_everything_through_and_says_so_once(limit, monkeypatch, caplog) -> None:
    limit(token=(1, 1))
    token = a_token()
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setitem(connections["default"].settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connections["default"].settings_dict, "PORT", "1")
        assert [limits.take(token) for _ in range(5)] == [limits.OPEN] * 5
        assert limits.requests_today(token.team_id) is None
    assert [record.message for record in caplog.records] == ["rate limiter is down: requests go on"]
    limits.close()  # what the pause would end by itself
    assert [limits.take(token).allowed for _ in range(2)] == [True, False]


def test_a_failing_statement_lets_everything_through_too(limit, caplog) -> None:
    limit(token=(1, 1))
    token = SimpleNamespace(pk="not a uuid", team_id=uuid.uuid4())
    with caplog.at_level(logging.WARNING):
        assert limits.take(token) == limits.OPEN
    assert "rate limiter is down" in caplog.text


# --- Over REST --------------------------------------------------------------------------------------


def test_the_api_answers_429_with_what_a_client_needs(api, limit) -> None:
    limit(token=(6, 2), team=(6_000, 1_000))
    first = api.get("/api/v1/me")
    assert first.status_code == 200
    assert first["RateLimit-Policy"] == '"token";q=2;w=20, "team";q=1000;w=10'
    assert first["RateLimit"] == '"token";r=1;t=10, "team";r=999;t=1'
    assert (first["RateLimit-Limit"], first["RateLimit-Remaining"], first["RateLimit-Reset"]) == ("2", "1", "10")
    assert "Retry-After" not in first
    # A refused request takes one too: its transaction is rolled back, its bucket is not.
    assert api.post("/api/v1/memories", {"kind": "fact"})["RateLimit-Remaining"] == "0"
    over = api.get("/api/v1/me")
    assert over.status_code == 429
    assert over["Content-Type"] == "application/problem+json"
    assert 1 <= int(over["Retry-After"]) <= 10
    assert over["RateLimit-Remaining"] == "0"
    body = over.json()
    assert (body["code"], body["status"], body["title"]) == ("rate_limited", 429, "Too Many Requests")
    assert body["detail"].startswith("This token may make 6 requests a minute, 2 at once. Try again in ")


def test_each_token_has_its_own_bucket_over_the_api(api, team_api, limit) -> None:
    limit(token=(1, 1))
    assert [client.get("/api/v1/me").status_code for client in (api, team_api, api)] == [200, 200, 429]


def test_an_access_token_draws_on_the_bucket_of_its_api_token(api, limit) -> None:
    limit(token=(1, 2))
    jwt = api.post("/api/v1/auth/token", {}).json()["access_token"]
    client = factories.ApiClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {jwt}")
    assert [client.get("/api/v1/me").status_code for _ in range(2)] == [200, 429]


def test_what_needs_no_token_is_not_limited(client, limit) -> None:
    limit(token=(1, 1), team=(1, 1))
    assert [client.get("/api/v1/schema").status_code for _ in range(2)] == [200, 200]
    assert [client.get("/api/v1/me").status_code for _ in range(2)] == [401, 401]


def test_the_api_goes_on_while_the_limiter_is_down(api, limit) -> None:
    limit(token=(1, 1))
    with another_line() as line, line.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_ratebucket RENAME TO accounts_ratebucket_away")
        try:
            answers = [api.get("/api/v1/me") for _ in range(3)]
        finally:
            cursor.execute("ALTER TABLE accounts_ratebucket_away RENAME TO accounts_ratebucket")
    assert [answer.status_code for answer in answers] == [200] * 3
    assert "RateLimit" not in answers[0]


def test_a_plain_function_for_faces_without_rest_framework(limit) -> None:
    limit(token=(1, 1))
    token = a_token()
    assert limits.check(token).allowed
    with pytest.raises(limits.TooManyRequests) as refused:
        limits.check(token)
    assert refused.value.status == 429
    assert 1 <= refused.value.wait <= 60


def test_a_deleted_team_leaves_no_buckets(limit, team, api, team_api, other_api, alice) -> None:
    limit(token=(60, 10), team=(60, 10))
    for client in (api, team_api, other_api):
        assert client.get("/api/v1/me").status_code == 200
    assert len(rows_of(team.pk)) == 3
    with team_transaction(team):
        job = deletion.request_deletion(team=team, by=SYSTEM, requested_by=alice, confirmation=team.slug)
    # The buckets are written on a connection of their own, the deletion in the test's transaction.
    assert deletion.run(team, job.pk) == "done"
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM accounts_ratebucket WHERE team_id = %s", [team.pk])
        assert cursor.fetchone() == (0,)
    assert len(rows_of(other_api.team.pk)) == 2


def test_buckets_that_nobody_draws_on_are_tidied_away() -> None:
    old, new = uuid.uuid4(), uuid.uuid4()
    with connection.cursor() as cursor:
        for owner, day in ((old, "2020-01-01"), (new, "2100-01-01")):
            cursor.execute("INSERT INTO accounts_ratebucket VALUES (%s, %s, 0, %s, 1)", [owner, owner, day])
        assert "removed" in tasks.tidy_buckets()
        cursor.execute("SELECT owner_id FROM accounts_ratebucket WHERE owner_id = ANY(%s)", [[old, new]])
        assert cursor.fetchall() == [(new,)]
