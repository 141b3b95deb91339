"""How many memories a scope has and in how many of them a word stands: the statistics behind BM25.

Counted per team and scope, never over all teams: what is rare for one team is common for another, and a
count over all would tell one team about another's words. The words of small scopes are counted afresh
each time; the counts of big ones move slowly and are kept in the process for a few minutes.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from .caches import TimedCache
from .tokens import tsquery_literal

KEPT_FROM = 2_000  # memories; below, counting costs less than being wrong
KEPT_SECONDS = 300.0
KEPT_SECONDS_SMALL = 5.0
MOST_COUNTED = 50_000  # a word in more memories than this weighs next to nothing anyway
SAMPLE = 1_000  # memories that the frequencies of common words are taken from
COMMON = 10  # of them hold a word that is common; its frequency is then known to about a third


@dataclass(frozen=True, slots=True)
class ScopeSize:
    """How many memories, and their mean length in tokens."""

    memories: int
    mean_length: float


_ScopeKey = tuple[uuid.UUID, tuple[uuid.UUID, ...]]
_sizes: TimedCache[_ScopeKey, ScopeSize] = TimedCache(size=1_000, seconds=KEPT_SECONDS)
_small_sizes: TimedCache[_ScopeKey, ScopeSize] = TimedCache(size=1_000, seconds=KEPT_SECONDS_SMALL)
_teams: TimedCache[uuid.UUID, int] = TimedCache(size=1_000, seconds=KEPT_SECONDS)
_common: TimedCache[_ScopeKey, dict[str, int]] = TimedCache(size=200, seconds=KEPT_SECONDS)
_counts: TimedCache[tuple[_ScopeKey, str], int] = TimedCache(size=50_000, seconds=KEPT_SECONDS)


def scope_size(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID]) -> ScopeSize:
    """Return the size of these scopes together, of whatever status."""
    key = _key(team_id, scope_ids)
    known = _sizes.get(key) or _small_sizes.get(key)
    if known is not None:
        return known
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(avg(length), 1) FROM memories_memoryterms"
            " WHERE team_id = %s AND scope_id = ANY(%s)",
            [team_id, list(scope_ids)],
        )
        memories, mean_length = cursor.fetchone()
    size = ScopeSize(memories, max(float(mean_length), 1.0))
    if memories:
        (_sizes if memories >= KEPT_FROM else _small_sizes).put(key, size)
    return size


def team_size(team_id: uuid.UUID) -> int:
    """Return how many memories a team has in all its scopes, as far as it is known: kept for minutes."""

    def count() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM memories_memoryterms WHERE team_id = %s", [team_id])
            return int(cursor.fetchone()[0])

    return _teams.get_or_make(team_id, count)


def document_frequencies(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], lexemes: Sequence[str]) -> list[int]:
    """Return for each lexeme how many memories of these scopes hold it, at most `MOST_COUNTED`.

    Those of common words are estimated from a sample: counting a word that a fifth of 100,000 memories hold
    takes longer than the rest of the search, and its weight hardly depends on the last digit.
    """
    key = _key(team_id, scope_ids)
    common = _common.get_or_make(key, lambda: _sampled(team_id, scope_ids))
    known = {lexeme: common.get(lexeme) or _counts.get((key, lexeme)) for lexeme in lexemes}
    missing = [lexeme for lexeme, count in known.items() if count is None]
    for lexeme, count in zip(missing, _count(team_id, scope_ids, missing), strict=True):
        _counts.put((key, lexeme), count)
        known[lexeme] = count
    return [known[lexeme] or 0 for lexeme in lexemes]


def _sampled(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID]) -> dict[str, int]:
    """How many memories hold each common word, from a sample that stays the same while the scopes do."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT t.word, count(*) FROM (
                SELECT tokens FROM memories_memoryterms WHERE team_id = %s AND scope_id = ANY(%s)
                ORDER BY uuid_hash(memory_id) LIMIT %s
            ) drawn CROSS JOIN LATERAL unnest(drawn.tokens) AS t(word, positions, weights)
            GROUP BY t.word HAVING count(*) >= %s
            """,
            [team_id, list(scope_ids), SAMPLE, COMMON],
        )
        held = dict(cursor.fetchall())
    scale = max(1.0, scope_size(team_id, scope_ids).memories / SAMPLE)
    return {word: min(round(count * scale), MOST_COUNTED) for word, count in held.items()}


def _count(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], lexemes: Sequence[str]) -> list[int]:
    if not lexemes:
        return []
    one = (
        "(SELECT count(*) FROM (SELECT 1 FROM memories_memoryterms WHERE team_id = %s AND scope_id = ANY(%s)"
        " AND tokens @@ %s::tsquery LIMIT %s) AS held)"
    )
    params: list[Any] = []
    for lexeme in lexemes:
        params += [team_id, list(scope_ids), tsquery_literal([lexeme]), MOST_COUNTED]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join([one] * len(lexemes)), params)
        return list(cursor.fetchone())


def _key(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID]) -> _ScopeKey:
    return team_id, tuple(sorted(scope_ids))
