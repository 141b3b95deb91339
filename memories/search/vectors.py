"""Nearest memories by cosine: exact, always right, filtered before the limit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from pgvector import HalfVector

from memories.search.narrowing import Narrowing


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A memory and its cosine similarity to the question."""

    memory_id: uuid.UUID
    cosine: float


def nearest(
    *, team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], embedding: np.ndarray, model_id: str,
    statuses: Sequence[str], limit: int, where: Narrowing | None = None,
) -> list[VectorHit]:
    """Return the closest rows, best first. `where` narrows before the limit."""
    condition, params = where.sql("v") if where else ("TRUE", {})
    sql = f"""
        SELECT v.memory_id, 1 - (v.embedding <=> %(vector)s::halfvec) AS cosine
        FROM memories_memoryvector v
        WHERE v.team_id = %(team)s AND v.scope_id = ANY(%(scopes)s) AND v.model_id = %(model)s
          AND v.status = ANY(%(statuses)s) AND {condition}
        ORDER BY (v.embedding <=> %(vector)s::halfvec) + 0 LIMIT %(limit)s
    """  # noqa: S608 - the condition is made of constants
    params |= {
        "vector": HalfVector(embedding).to_text(), "team": team_id, "scopes": list(scope_ids), "model": model_id,
        "statuses": list(statuses), "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [VectorHit(memory_id, cosine) for memory_id, cosine in cursor.fetchall()]


def upsert(
    *, team_id: uuid.UUID, model_id: str, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, np.ndarray]]
) -> None:
    """Write (memory_id, scope_id, status, embedding) rows, replacing earlier ones of the same model."""
    sql = """
        INSERT INTO memories_memoryvector (team_id, memory_id, scope_id, status, model_id, embedding)
        VALUES (%s, %s, %s, %s, %s, %s::halfvec)
        ON CONFLICT (team_id, memory_id, model_id) DO UPDATE
        SET scope_id = EXCLUDED.scope_id, status = EXCLUDED.status, embedding = EXCLUDED.embedding
    """
    with connection.cursor() as cursor:
        cursor.executemany(
            sql,
            [(team_id, memory, scope, status, model_id, HalfVector(vector).to_text()) for memory, scope, status, vector in rows],
        )
