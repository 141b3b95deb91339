"""Keyword search: BM25 over the tokens of a team's memories, in SQL."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.db import connection

from . import bm25
from .bm25 import Statistics
from .frequencies import ScopeSize, document_frequencies, scope_size
from .narrowing import Narrowing
from .tokens import QueryTokens, tsquery_literal, tsvector_literal

SMALL = 2_000  # up to so many memories every match is scored, and counted for the frequencies
RARE_MATCHES = 300  # above: candidates come from the rarest terms, up to about so many matches
OVERFETCH = 2  # candidates before the narrowing, in limits

# Memory, length, matched bits, whether the narrowing allows it, its session when it is a turn of one.
# The memory is text here: hundreds of rows are read, and making UUIDs of all takes longer than the search.
_Row = tuple[str, int, int, bool, str]


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """A memory and its BM25 evidence: the score, its share of the upper bound, the terms matched."""

    memory_id: uuid.UUID
    score: float
    coverage: float
    matched: int


def search(
    *,
    team_id: uuid.UUID,
    scope_ids: Sequence[uuid.UUID],
    query: QueryTokens,
    statuses: Sequence[str],
    limit: int = 50,
    where: Narrowing | None = None,
) -> tuple[list[KeywordHit], Statistics]:
    """Return the best memories, best first, and the statistics they were scored with.

    Up to `SMALL` memories everything that matches is scored and the frequencies are exact. Above, the
    frequencies are kept for minutes, candidates are the matches of the rarest terms, and those are
    scored by all terms.
    """
    if not query.terms or not scope_ids:
        return [], Statistics(query, (0.0,) * len(query.terms), 1.0)
    size = scope_size(team_id, scope_ids)
    table = _Table(team_id, scope_ids, query, statuses, where)
    if size.memories <= SMALL:
        rows = table.all_matches()
        statistics = _exact_statistics(query, rows, size)
    else:
        counts = document_frequencies(team_id, scope_ids, query.lexemes)
        statistics = bm25.statistics(query, counts, size.memories, size.mean_length)
        rows = table.rare_matches(counts, statistics, limit)
    hits = [_hit(memory, length, matched, statistics) for memory, length, matched, *_ in _best(rows, statistics, limit)]
    hits.sort(key=lambda hit: (-hit.score, hit.memory_id))
    return hits[:limit], statistics


def _exact_statistics(query: QueryTokens, rows: Sequence[_Row], size: ScopeSize) -> Statistics:
    """The statistics from all rows that match any term."""
    counts = _bits([row[2] for row in rows], len(query.terms)).sum(axis=0).tolist()
    statistics = bm25.statistics(query, counts, size.memories, size.mean_length)
    return replace(statistics, sessions=bm25.session_shares(query, _covered(rows)))


def _best(rows: Sequence[_Row], statistics: Statistics, limit: int) -> list[_Row]:
    """The rows with the `limit` highest scores, more when some are equal, in any order.

    `Statistics.coverage` for hundreds of rows at once.
    """
    allowed = [row for row in rows if row[3]]
    if len(allowed) <= limit:
        return allowed
    weights = _bits([row[2] for row in allowed], len(statistics.weights)) @ np.array(statistics.weights)
    lengths = np.array([row[1] for row in allowed]) / (statistics.mean_length or 1.0)
    scores = weights / (1 + bm25.K1 * (1 - bm25.B + bm25.B * lengths))
    least = np.partition(scores, -limit)[-limit] - 1e-9
    return [row for row, score in zip(allowed, scores.tolist(), strict=True) if score >= least]


def _bits(matched: Sequence[int], terms: int) -> np.ndarray:
    """Return the matched terms of each row as 0 and 1: [rows, terms]."""
    return np.array(matched, dtype=np.int64).reshape(-1, 1) >> np.arange(terms) & 1


def _covered(rows: Sequence[_Row]) -> dict[str, int]:
    """The terms that each session covers with all its turns, as bits."""
    covered: dict[str, int] = {}
    for _, _, matched, fits, session in rows:
        if fits and session:
            covered[session] = covered.get(session, 0) | matched
    return covered


def matched_sql(query: QueryTokens, alias: str) -> tuple[str, dict[str, str]]:
    """Return SQL for the bits of the terms that a row holds, and its parameters."""
    bits = [f"(({alias}.tokens @@ %(term{i})s::tsquery)::int::bigint << {i})" for i in range(len(query.terms))]
    params = {f"term{i}": tsquery_literal([lexeme]) for i, lexeme in enumerate(query.lexemes)}
    return " | ".join(bits) or "0::bigint", params


def upsert(*, team_id: uuid.UUID, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, Sequence[str]]]) -> None:
    """Write (memory_id, scope_id, status, tokens) rows, replacing earlier ones."""
    delete(team_id=team_id, memory_ids=[row[0] for row in rows])
    insert(team_id=team_id, rows=rows)


def insert(*, team_id: uuid.UUID, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, Sequence[str]]]) -> None:
    """Write rows like `upsert`, of memories that have none yet."""
    columns = "team_id, memory_id, scope_id, status, tokens, length"
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY memories_memoryterms ({columns}) FROM STDIN") as copy,
    ):
        for memory, scope, status, tokens in rows:
            copy.write_row((team_id, memory, scope, str(status), tsvector_literal(tokens), len(tokens)))


def delete(*, team_id: uuid.UUID, memory_ids: Sequence[uuid.UUID]) -> None:
    """Remove the rows of these memories, if there are any."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM memories_memoryterms WHERE team_id = %s AND memory_id = ANY(%s)",
            [team_id, list(memory_ids)],
        )


@dataclass(frozen=True, slots=True)
class _Table:
    """The table as one question sees it."""

    team_id: uuid.UUID
    scope_ids: Sequence[uuid.UUID]
    query: QueryTokens
    statuses: Sequence[str]
    where: Narrowing | None

    def all_matches(self) -> list[_Row]:
        """Every row with any of the terms, narrowed or not, so that the frequencies are right."""
        return self._rows(self.query.lexemes, order="", limit=SMALL)

    def rare_matches(self, counts: Sequence[int], statistics: Statistics, limit: int) -> list[_Row]:
        """The best rows with any of the rarest terms.

        The narrowing looks at the memory's own row, which costs more than the match: it is first asked
        of the best few, and only when it leaves too few of them, of all.
        """
        rare = _rarest(self.query.lexemes, counts)
        # Floats: as exact numbers, which such literals are otherwise, they take as long as the matching.
        weights = " + ".join(f"float8 '{w:.4f}' * (matched >> {i} & 1)" for i, w in enumerate(statistics.weights))
        dampening = f"1 + float8 '{bm25.K1}' * ({1 - bm25.B} + float8 '{bm25.B / statistics.mean_length!r}' * length)"
        order = f"ORDER BY ({weights}) / ({dampening}) DESC"
        rows = self._rows(rare, order=order, limit=OVERFETCH * limit)
        if len(rows) == OVERFETCH * limit and sum(row[3] for row in rows) < limit:
            rows = self._rows(rare, order=order, limit=limit, narrow_first=True)
        return rows

    def _rows(self, lexemes: Sequence[str], *, order: str, limit: int, narrow_first: bool = False) -> list[_Row]:
        bits, params = matched_sql(self.query, "unpacked")
        fits, narrowing = self.where.on_memory() if self.where else ("TRUE", {})
        early = self.where.sql("k")[0] if self.where and narrow_first else "TRUE"
        # Joined with nothing, the tokens are unpacked once for a row and not once for each term.
        sql = f"""
            SELECT k.memory_id::text, k.length, k.matched, m.fits, m.session FROM (
                SELECT memory_id, length, matched FROM (
                    SELECT memory_id, length, {bits} AS matched FROM (
                        SELECT k.memory_id, k.length, k.tokens || ''::tsvector AS tokens
                        FROM memories_memoryterms k
                        WHERE k.team_id = %(team)s AND k.scope_id = ANY(%(scopes)s)
                          AND k.status = ANY(%(statuses)s) AND k.tokens @@ %(any)s::tsquery AND {early}
                        OFFSET 0
                    ) unpacked
                ) scored {order} LIMIT {limit}
            ) k CROSS JOIN LATERAL (
                SELECT {fits} AS fits, CASE WHEN m.sequence IS NULL THEN '' ELSE m.session_id END AS session
                FROM memories_memory m WHERE m.team_id = %(team)s AND m.id = k.memory_id OFFSET 0
            ) m
        """  # noqa: S608 - made of constants and of numbers
        params |= narrowing | {
            "team": self.team_id,
            "scopes": list(self.scope_ids),
            "statuses": list(self.statuses),
            "any": tsquery_literal(lexemes),
        }
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.fetchall()


def _rarest(lexemes: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The rarest terms that match about `RARE_MATCHES` memories together, and at least one that matches."""
    chosen: list[str] = []
    total = 0
    for count, lexeme in sorted(zip(counts, lexemes, strict=True)):
        if total and total + count > RARE_MATCHES:
            break
        chosen.append(lexeme)
        total += count
    return chosen


def _hit(memory_id: str, length: int, matched: int, statistics: Statistics) -> KeywordHit:
    score, coverage = statistics.score(matched, length), statistics.coverage(matched, length)
    return KeywordHit(uuid.UUID(memory_id), score, coverage, matched)
