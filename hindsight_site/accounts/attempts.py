"""Failed tries at exchanging a token, limited by the client's address: a bucket like those of `limits`.

Only failures are counted, and only a failure is refused: whoever has a token that works is never kept waiting
by a neighbour behind the same address. Tokens cannot be guessed (256 bits); this keeps those who try, and
programs that go round in circles with a dead token, from keeping the database busy and the log full.
"""

from __future__ import annotations

import ipaddress
import math
import uuid

import psycopg
from django.conf import settings

from hindsight_site.accounts.limits import OPEN, Allowance, Policy, TooManyRequests, open_if_down, standing

# Buckets are known by UUIDs; an address gets one that is no team's and does not show it at a glance.
_NAMESPACE = uuid.UUID("7a0e2b0c-6c55-4d0f-9d57-0b5a3f6f4c11")
IPV6_PREFIX = 64  # bits: what one customer has, and can change the rest of at will

TAKE = """
WITH clock AS (
    SELECT (extract(epoch FROM now()) * 1000000)::bigint AS now, (now() AT TIME ZONE 'UTC')::date AS today
), taken AS (
    INSERT INTO accounts_ratebucket AS bucket (team_id, owner_id, full_at, day, requests)
    SELECT %(owner)s, %(owner)s, now + %(cost)s, today, 1 FROM clock
    ON CONFLICT (team_id, owner_id) DO UPDATE SET
        full_at = GREATEST(bucket.full_at + %(cost)s, EXCLUDED.full_at),
        requests = CASE WHEN bucket.day = EXCLUDED.day THEN bucket.requests + 1 ELSE 1 END,
        day = EXCLUDED.day
    WHERE bucket.full_at + %(cost)s <= EXCLUDED.full_at - %(cost)s + %(depth)s
    RETURNING full_at
)
SELECT now, EXISTS (SELECT FROM taken), COALESCE(
    (SELECT full_at FROM taken),
    (SELECT full_at FROM accounts_ratebucket WHERE team_id = %(owner)s AND owner_id = %(owner)s)
) FROM clock
"""


def policy() -> Policy:
    """The limit, from the settings."""
    return Policy("address", settings.RATE_LIMIT_FAILED_PER_MINUTE, settings.RATE_LIMIT_FAILED_BURST)


def bucket_of(address: str) -> uuid.UUID:
    """The bucket of a client's address; one for all addresses that a client with IPv6 can choose from."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return uuid.uuid5(_NAMESPACE, address)
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        network = ipaddress.ip_network((found, IPV6_PREFIX), strict=False)
        return uuid.uuid5(_NAMESPACE, str(mapped or network))
    return uuid.uuid5(_NAMESPACE, str(found))


def take(address: str) -> Allowance:
    """Count a failed try. Not allowed: there were too many. Fails open, as `limits.take` does."""
    limit = policy()
    if not limit.is_on:
        return OPEN
    return open_if_down(lambda connection: _ask(connection, bucket_of(address), limit))


def check(address: str) -> None:
    """Count a failed try. Raises `TooManyRequests` when there were too many."""
    allowance = take(address)
    if not allowance.allowed:
        raise refusal(allowance)


def refusal(allowance: Allowance) -> TooManyRequests:
    """Say what the limit is, and when to come back."""
    tightest = allowance.tightest
    assert tightest is not None  # noqa: S101 - only a bucket refuses
    wait = max(1, math.ceil(tightest.wait))
    message = (
        f"Too many tokens from this address were refused: {tightest.policy.per_minute:,} a minute are answered. "
        f"See to the token, and try again in {wait} s."
    )
    return TooManyRequests(message, wait=wait)


def _ask(connection: psycopg.Connection, owner: uuid.UUID, limit: Policy) -> Allowance:
    values = {"owner": owner, "cost": limit.cost, "depth": limit.depth}
    row = connection.execute(TAKE, values).fetchone()
    assert row is not None  # noqa: S101 - the statement always has one row
    now, allowed, full_at = row
    return Allowance(allowed, (standing(limit, now, now if full_at is None else full_at),))
