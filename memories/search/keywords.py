"""BM25 over the tokens of a scope, in SQL."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from memories.search.narrowing import Narrowing
from memories.search.tokens import QueryTokens, tsvector_literal


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """A memory and its BM25 evidence: the raw score, and its share of the query's upper bound."""

    memory_id: uuid.UUID
    score: float
    coverage: float


def upsert(*, team_id: uuid.UUID, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, Sequence[str]]]) -> None:
    """Write (memory_id, scope_id, status, tokens) rows, replacing earlier ones."""
    sql = """
        INSERT INTO memories_memoryterms (team_id, memory_id, scope_id, status, tokens, length)
        VALUES (%s, %s, %s, %s, %s::tsvector, %s)
        ON CONFLICT (team_id, memory_id) DO UPDATE
        SET scope_id = EXCLUDED.scope_id, status = EXCLUDED.status, tokens = EXCLUDED.tokens, length = EXCLUDED.length
    """
    with connection.cursor() as cursor:
        cursor.executemany(
            sql,
            [
                (team_id, memory, scope, status, tsvector_literal(tokens), len(tokens))
                for memory, scope, status, tokens in rows
            ],
        )


def search(
    *, team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], query: QueryTokens, statuses: Sequence[str], limit: int = 50,
    where: Narrowing | None = None,
) -> list[KeywordHit]:
    """Return the best rows by BM25 (k1 0.9, b 0.4), best first."""
    if not query.terms:
        return []
    condition, params = where.sql("k") if where else ("TRUE", {})
    sql = f"""
        WITH rows AS (
            SELECT k.memory_id, k.tokens, k.length FROM memories_memoryterms k
            WHERE k.team_id = %(team)s AND k.scope_id = ANY(%(scopes)s) AND k.status = ANY(%(statuses)s)
              AND {condition}
        ), stats AS (SELECT count(*)::float AS n, greatest(avg(length), 1) AS mean FROM rows),
        hits AS (
            SELECT r.memory_id, r.length, t.lexeme, cardinality(t.positions) AS tf
            FROM rows r, LATERAL unnest(r.tokens) t WHERE t.lexeme = ANY(%(lexemes)s)
        ), idf AS (
            SELECT lexeme, ln(1 + ((SELECT n FROM stats) - count(*) + 0.5) / (count(*) + 0.5)) AS idf
            FROM hits GROUP BY lexeme
        ), bound AS (SELECT sum(idf) * 1.9 AS top FROM idf)
        SELECT h.memory_id,
               sum(i.idf * h.tf * 1.9 / (h.tf + 0.9 * (0.6 + 0.4 * h.length / s.mean))) AS score,
               max(b.top)
        FROM hits h JOIN idf i USING (lexeme) CROSS JOIN stats s CROSS JOIN bound b
        GROUP BY h.memory_id ORDER BY score DESC LIMIT %(limit)s
    """  # noqa: S608 - the condition is made of constants
    params |= {
        "team": team_id, "scopes": list(scope_ids), "statuses": list(statuses), "lexemes": list(query.lexemes),
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [KeywordHit(memory, score, score / top) for memory, score, top in cursor.fetchall()]
