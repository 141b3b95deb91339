"""How fast a team and each of its tokens may call: token buckets in PostgreSQL, one statement per request.

A bucket of `burst` requests that refills at `per_minute` is kept as one number, the time at which it will be
full again (the generic cell rate algorithm, ITU-T I.371). A request moves that time on by what one request
takes to refill, and is refused when the bucket would then take longer to fill than an empty one.

The statement runs on a connection of its own, outside the request's transaction: it must not be rolled back
with a refused request, and must hold its row lock for no longer than itself. docs/adr/0006 has the figures.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings
from django.db import connections
from psycopg import conninfo

from hindsight_site.accounts.models import ApiToken
from hindsight_site.refusals import Refused

logger = logging.getLogger(__name__)

SECOND = 1_000_000  # times are whole microseconds, so that a burst of 200 is 200 and never 199
NEVER_EMPTY = 1 << 60  # microseconds: the depth of a bucket that is switched off
PAUSE_SECONDS = 5.0  # after a failure of our own, before the limiter is asked again
CONNECT_SECONDS = 2

# A token's bucket and its team's. `looked_at` reads without a lock, so that a request which the team's bucket
# refuses takes nothing from the token's. A refused request writes nothing.
TAKE = """
WITH clock AS (
    SELECT (extract(epoch FROM now()) * 1000000)::bigint AS now, (now() AT TIME ZONE 'UTC')::date AS today
), looked_at AS (
    SELECT owner_id, full_at FROM accounts_ratebucket WHERE team_id = %(team)s AND owner_id IN (%(team)s, %(token)s)
), token AS (
    INSERT INTO accounts_ratebucket AS bucket (team_id, owner_id, full_at, day, requests)
    SELECT %(team)s, %(token)s, now + %(token_cost)s, today, 1 FROM clock
    WHERE NOT EXISTS (
        SELECT FROM looked_at WHERE owner_id = %(team)s AND full_at + %(team_cost)s > now + %(team_depth)s
    )
    ON CONFLICT (team_id, owner_id) DO UPDATE SET
        full_at = GREATEST(bucket.full_at + %(token_cost)s, EXCLUDED.full_at),
        requests = CASE WHEN bucket.day = EXCLUDED.day THEN bucket.requests + 1 ELSE 1 END,
        day = EXCLUDED.day
    WHERE bucket.full_at + %(token_cost)s <= EXCLUDED.full_at - %(token_cost)s + %(token_depth)s
    RETURNING full_at
), team AS (
    INSERT INTO accounts_ratebucket AS bucket (team_id, owner_id, full_at, day, requests)
    SELECT %(team)s, %(team)s, now + %(team_cost)s, today, 1 FROM clock WHERE EXISTS (SELECT FROM token)
    ON CONFLICT (team_id, owner_id) DO UPDATE SET
        full_at = GREATEST(bucket.full_at + %(team_cost)s, EXCLUDED.full_at),
        requests = CASE WHEN bucket.day = EXCLUDED.day THEN bucket.requests + 1 ELSE 1 END,
        day = EXCLUDED.day
    WHERE bucket.full_at + %(team_cost)s <= EXCLUDED.full_at - %(team_cost)s + %(team_depth)s
    RETURNING full_at
)
SELECT
    now,
    EXISTS (SELECT FROM team),
    COALESCE((SELECT full_at FROM token), (SELECT full_at FROM looked_at WHERE owner_id = %(token)s), now),
    COALESCE((SELECT full_at FROM team), (SELECT full_at FROM looked_at WHERE owner_id = %(team)s), now)
FROM clock
"""
# A bucket that is full is as good as none.
TIDY = "DELETE FROM accounts_ratebucket WHERE day < (now() AT TIME ZONE 'UTC')::date - 1"
TODAY = """
SELECT owner_id, requests FROM accounts_ratebucket
WHERE team_id = %s AND owner_id <> team_id AND day = (now() AT TIME ZONE 'UTC')::date
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `burst` requests at once, and `per_minute` in the long run. `per_minute` 0: no limit."""

    name: str
    per_minute: int
    burst: int

    @property
    def is_on(self) -> bool:
        return self.per_minute > 0

    @property
    def cost(self) -> int:
        """Microseconds that one request takes to refill."""
        return 60 * SECOND // self.per_minute if self.is_on else 0

    @property
    def depth(self) -> int:
        """Microseconds that an empty bucket takes to fill."""
        return self.cost * max(self.burst, 1) if self.is_on else NEVER_EMPTY


@dataclass(frozen=True, slots=True)
class Standing:
    """How a bucket stands: requests that are left, seconds until the next one, seconds until it is full."""

    policy: Policy
    remaining: int
    wait: float
    full_in: float


@dataclass(frozen=True, slots=True)
class Allowance:
    """Whether a request may go on, and the buckets that are switched on; none when the limiter is off or down."""

    allowed: bool
    standings: tuple[Standing, ...] = ()

    @property
    def tightest(self) -> Standing | None:
        """The bucket that refuses first: the longest wait, then the fewest requests left."""
        return min(self.standings, key=lambda standing: (-standing.wait, standing.remaining), default=None)


OPEN = Allowance(allowed=True)


class TooManyRequests(Refused):
    """A bucket is empty. `wait` is the whole number of seconds after which a request is let through."""

    status = 429
    code = "rate_limited"

    def __init__(self, message: str, *, wait: int) -> None:
        super().__init__(message)
        self.wait = wait


def policies() -> tuple[Policy, Policy]:
    """The limits of a token and of a team, from the settings."""
    return (
        Policy("token", settings.RATE_LIMIT_TOKEN_PER_MINUTE, settings.RATE_LIMIT_TOKEN_BURST),
        Policy("team", settings.RATE_LIMIT_TEAM_PER_MINUTE, settings.RATE_LIMIT_TEAM_BURST),
    )


def standing(policy: Policy, now: int, full_at: int) -> Standing:
    """Read a bucket that will be full at `full_at`; both times are microseconds since 1970."""
    missing = max(0, full_at - now)
    left = policy.depth - missing  # less than nothing after the limit was lowered
    return Standing(
        policy=policy,
        remaining=max(0, left) // policy.cost,
        wait=max(0, policy.cost - left) / SECOND,
        full_in=missing / SECOND,
    )


def take(token: ApiToken) -> Allowance:
    """Take one request from the bucket of `token` and of its team, or from neither.

    Fails open: when the limiter's own query fails, the request goes on, a warning is logged, and the
    limiter is left alone for some seconds so that it costs no request any time.
    """
    of_token, of_team = policies()
    if not (of_token.is_on or of_team.is_on):
        return OPEN
    return open_if_down(lambda connection: ask(connection, token.team_id, token.pk, of_token, of_team))


def open_if_down(work: Callable[[psycopg.Connection], Allowance]) -> Allowance:
    """Run `work` on the limiter's connection; `OPEN` when that fails."""
    try:
        return _line.use(work)
    except Paused:
        return OPEN
    except (psycopg.Error, OSError) as error:
        logger.warning("rate limiter is down: requests go on", extra={"error": type(error).__name__})
        return OPEN


def ask(
    connection: psycopg.Connection, team_id: uuid.UUID, token_id: uuid.UUID, of_token: Policy, of_team: Policy
) -> Allowance:
    """Run the statement on a connection in autocommit."""
    values = {
        "team": team_id,
        "token": token_id,
        "token_cost": of_token.cost,
        "token_depth": of_token.depth,
        "team_cost": of_team.cost,
        "team_depth": of_team.depth,
    }
    row = connection.execute(TAKE, values).fetchone()
    assert row is not None  # noqa: S101 - the statement always has one row
    now, allowed, token_full_at, team_full_at = row
    both = ((of_token, token_full_at), (of_team, team_full_at))
    return Allowance(allowed, tuple(standing(policy, now, at) for policy, at in both if policy.is_on))


def check(token: ApiToken) -> Allowance:
    """Like `take`. Raises `TooManyRequests` when the request must not go on."""
    allowance = take(token)
    if not allowance.allowed:
        raise refusal(allowance)
    return allowance


def refusal(allowance: Allowance) -> TooManyRequests:
    """Say which limit was reached, and when to come back."""
    tightest = allowance.tightest
    assert tightest is not None  # noqa: S101 - only a bucket refuses
    policy, wait = tightest.policy, max(1, math.ceil(tightest.wait))
    return TooManyRequests(
        f"This {policy.name} may make {policy.per_minute:,} requests a minute, {policy.burst:,} at once. "
        f"Try again in {wait} s.",
        wait=wait,
    )


def headers(allowance: Allowance) -> dict[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers, and the three of its version 06 that clients know.

    A window is the time in which an empty bucket fills: `q` requests per `w` seconds are the limit.
    """
    tightest = allowance.tightest
    if tightest is None:
        return {}
    quotas = [(s.policy.name, max(s.policy.burst, 1), math.ceil(s.policy.depth / SECOND)) for s in allowance.standings]
    return {
        "RateLimit-Policy": ", ".join(f'"{name}";q={burst};w={window}' for name, burst, window in quotas),
        "RateLimit": ", ".join(
            f'"{s.policy.name}";r={s.remaining};t={math.ceil(s.full_in)}' for s in allowance.standings
        ),
        "RateLimit-Limit": str(max(tightest.policy.burst, 1)),
        "RateLimit-Remaining": str(tightest.remaining),
        "RateLimit-Reset": str(math.ceil(tightest.full_in)),
    }


def requests_today(team_id: uuid.UUID) -> dict[uuid.UUID, int] | None:
    """Requests let through since midnight UTC, by token. None: not counted, the limiter is off or down.

    The table is not logged, so a crash of the database sets the counts to zero.
    """
    if not any(policy.is_on for policy in policies()):
        return None
    try:
        return dict(_line.use(lambda connection: connection.execute(TODAY, [team_id]).fetchall()))
    except Paused:
        return None
    except (psycopg.Error, OSError) as error:
        logger.warning("rate limiter is down: nothing is counted", extra={"error": type(error).__name__})
        return None


def tidy() -> int:
    """Remove the buckets that nobody has drawn on for a day, and say how many."""
    with connections["default"].cursor() as cursor:
        cursor.execute(TIDY)
        return cursor.rowcount


def forget(team_id: uuid.UUID) -> None:
    """Remove a team's buckets, in the transaction of whoever deletes the team."""
    with connections["default"].cursor() as cursor:
        cursor.execute("DELETE FROM accounts_ratebucket WHERE team_id = %s", [team_id])


def close() -> None:
    """Close this process's connection; the next request opens another."""
    _line.close()


class Paused(Exception):
    """The limiter failed a moment ago and is left alone."""


class _Line:
    """The one connection of this process, in autocommit. Threads take turns, for a fraction of a millisecond each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: psycopg.Connection | None = None
        self._owner = 0
        self._paused_until = 0.0

    def use(self, work: Callable[[psycopg.Connection], Any]) -> Any:
        """Run `work` on the connection. Raises what it raises, and `Paused` for some seconds after that."""
        with self._lock:  # so that of the threads that wait for a dead database only the first one tries
            if time.monotonic() < self._paused_until:
                raise Paused
            try:
                return self._work(work)
            except (psycopg.Error, OSError):
                self._paused_until = time.monotonic() + PAUSE_SECONDS
                raise

    def _work(self, work: Callable[[psycopg.Connection], Any]) -> Any:
        connection = self._opened()
        try:
            return work(connection)
        except psycopg.Error:
            if not connection.broken:  # the statement failed, not the line
                raise
        return work(self._opened())  # the database was restarted meanwhile

    def close(self) -> None:
        with self._lock:
            # A forked child leaves its parent's connection alone.
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection, self._paused_until = None, 0.0

    def _opened(self) -> psycopg.Connection:
        usable = self._connection is not None and not self._connection.closed and self._owner == os.getpid()
        if not usable:
            # Past a pooler: a request that holds one of its sessions must not wait here for a second one.
            past = conninfo.conninfo_to_dict(settings.DATABASE_DIRECT_URL) if settings.IS_POOLED else {}
            given = {**connections["default"].get_connection_params(), **past, "connect_timeout": CONNECT_SECONDS}
            self._connection, self._owner = psycopg.connect(**given, autocommit=True), os.getpid()
            self._connection.execute(TIDY)
        assert self._connection is not None  # noqa: S101 - opened above
        return self._connection


_line = _Line()
