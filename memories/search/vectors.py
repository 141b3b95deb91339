"""Nearest memories by cosine, filtered before the limit.

Exact search reads every vector of the scopes and is always right: 1.3 ms for 1,000 memories, 10 ms for
10,000. A team with an index of its own (see `vector_indexes`) is searched through it, unless the scopes
hold a small part of the team's memories: then most of what the index gives would be thrown away, and exact
search reads little. The plan is chosen here and not by the planner, which knows neither.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from pgvector import HalfVector

from memories.embeddings import get_embedder

from . import vector_indexes
from .caches import TimedCache
from .frequencies import scope_size, team_size
from .narrowing import Narrowing

OVERFETCH = 2  # hits before the narrowing, in limits
LEAST_SHARE = 0.1  # of the team's memories in the scopes, below which an index is left aside
KEPT_SECONDS = 60.0

# With iterative scans the index goes on until the filters have left enough; its order is then nearly right.
_THROUGH_INDEX = (
    "SELECT set_config('hnsw.ef_search', '200', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
    " set_config('enable_sort', 'off', true)"
)
_AS_BEFORE = "SELECT set_config('enable_sort', 'on', true)"

_models: TimedCache[tuple[uuid.UUID, tuple[uuid.UUID, ...]], tuple[str, ...]] = TimedCache(
    size=1_000, seconds=KEPT_SECONDS
)


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A memory and its cosine similarity to the question, -1..1."""

    memory_id: uuid.UUID
    cosine: float


def nearest(
    *,
    team_id: uuid.UUID,
    scope_ids: Sequence[uuid.UUID],
    embedding: np.ndarray,
    model_id: str,
    statuses: Sequence[str],
    limit: int = 50,
    where: Narrowing | None = None,
) -> list[VectorHit]:
    """Return the closest rows of `model_id`, best first, among those that `where` allows.

    The narrowing looks at the memory's own row, which for every vector would cost more than the search.
    So it is first asked of the best few; only when it leaves too few of them, of all.
    """
    params = {
        "vector": HalfVector(np.asarray(embedding, dtype=np.float32)).to_text(),
        "team": team_id,
        "scopes": list(scope_ids),
        "model": model_id,
        "statuses": list(statuses),
    }
    dimensions = len(embedding) if _through_index(team_id, scope_ids, model_id) else None
    if where is None:
        rows = _rows("TRUE", "TRUE", OVERFETCH * limit if dimensions else limit, params, dimensions)
        return [VectorHit(memory, cosine) for memory, cosine, _ in rows][:limit]
    fits, narrowing = where.sql("v")
    params |= narrowing
    rows = _rows("TRUE", fits, OVERFETCH * limit, params, dimensions)
    hits = [VectorHit(memory, cosine) for memory, cosine, allowed in rows if allowed][:limit]
    if len(hits) < limit and len(rows) == OVERFETCH * limit:
        hits = [VectorHit(memory, cosine) for memory, cosine, _ in _rows(fits, "TRUE", limit, params, None)]
    return hits


def models_in(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID]) -> list[str]:
    """Return the models whose vectors these scopes hold, the one that writes now first.

    Kept for a minute, but that one is always among them. Two only while one replaces the other.
    """
    key = (team_id, tuple(sorted(scope_ids)))
    found = _models.get_or_make(key, lambda: tuple(_distinct_models(team_id, scope_ids)))
    current = get_embedder().model_id
    return [current, *(model for model in found if model != current)]


def _distinct_models(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID]) -> list[str]:
    # From one model to the next through the index: a DISTINCT would read every row.
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT DISTINCT found.model_id FROM unnest(%(scopes)s::uuid[]) AS s(id) CROSS JOIN LATERAL (
                WITH RECURSIVE models AS (
                    SELECT min(model_id) AS model_id FROM memories_memoryvector
                    WHERE team_id = %(team)s AND scope_id = s.id
                    UNION ALL
                    SELECT (SELECT min(model_id) FROM memories_memoryvector
                            WHERE team_id = %(team)s AND scope_id = s.id AND model_id > models.model_id)
                    FROM models WHERE models.model_id IS NOT NULL
                ) SELECT model_id FROM models WHERE model_id IS NOT NULL
            ) found ORDER BY 1
            """,
            {"team": team_id, "scopes": list(scope_ids)},
        )
        return [model for (model,) in cursor.fetchall()]


def _through_index(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], model_id: str) -> bool:
    if not vector_indexes.is_ready(team_id, model_id):
        return False
    searched = scope_size(team_id, scope_ids).memories
    return searched >= LEAST_SHARE * team_size(team_id)


def _rows(
    early: str, late: str, limit: int, params: dict, dimensions: int | None
) -> list[tuple[uuid.UUID, float, bool]]:
    """The closest rows: `early` is a condition before the limit, `late` one that is only reported.

    With `dimensions` through the team's index, whose expression and literals these have to be; without
    exactly: the `+ 0` keeps every index out of it.
    """
    column = f"v.embedding::halfvec({dimensions})" if dimensions else "v.embedding"
    order = f"{column} <=> %(vector)s::halfvec" if dimensions else f"({column} <=> %(vector)s::halfvec) + 0"
    sql = f"""
        SELECT v.memory_id, 1 - v.distance, {late} FROM (
            SELECT v.memory_id, {column} <=> %(vector)s::halfvec AS distance
            FROM memories_memoryvector v
            WHERE v.team_id = %(team)s AND v.scope_id = ANY(%(scopes)s) AND v.model_id = %(model)s
              AND v.status = ANY(%(statuses)s) AND {early}
            ORDER BY {order} LIMIT {limit}
        ) v ORDER BY v.distance, v.memory_id
    """  # noqa: S608 - made of constants and numbers
    with connection.cursor() as cursor:
        if dimensions:
            cursor.execute(_THROUGH_INDEX)
        cursor.execute(sql, params)
        found = cursor.fetchall()
        if dimensions:
            cursor.execute(_AS_BEFORE)
        return found


def all_of(
    team_id: uuid.UUID, scope_id: uuid.UUID, model_id: str, statuses: Sequence[str], most: int
) -> tuple[list[uuid.UUID], np.ndarray] | None:
    """Return the memories of a scope and their vectors [n, dimensions], or None when they are more than `most`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory_id, halfvec_send(embedding) FROM memories_memoryvector"
            " WHERE team_id = %s AND scope_id = %s AND model_id = %s AND status = ANY(%s) LIMIT %s",
            [team_id, scope_id, model_id, list(statuses), most + 1],
        )
        rows = cursor.fetchall()
    return None if len(rows) > most else ([memory for memory, _ in rows], decode([raw for _, raw in rows]))


def upsert(*, team_id: uuid.UUID, model_id: str, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, np.ndarray]]) -> None:
    """Write (memory_id, scope_id, status, embedding) rows, replacing earlier ones of the same model."""
    delete(team_id=team_id, memory_ids=[row[0] for row in rows], model_id=model_id)
    insert(team_id=team_id, model_id=model_id, rows=rows)


def insert(*, team_id: uuid.UUID, model_id: str, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, np.ndarray]]) -> None:
    """Write rows like `upsert`, of memories that have none yet.

    By binary COPY: writing a vector as text costs more than storing it.
    """
    columns = "team_id, memory_id, scope_id, status, model_id, embedding"
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY memories_memoryvector ({columns}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        for part in _binary(team_id, model_id, rows):
            copy.write(part)


def delete(*, team_id: uuid.UUID, memory_ids: Sequence[uuid.UUID], model_id: str | None = None) -> None:
    """Remove the rows of these memories, of one model or of all."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM memories_memoryvector WHERE team_id = %s AND memory_id = ANY(%s)"
            " AND (%s::varchar IS NULL OR model_id = %s)",
            [team_id, list(memory_ids), model_id, model_id],
        )


def decode(raws: Sequence[bytes | memoryview]) -> np.ndarray:
    """Return what `halfvec_send` wrote as float32 [n, dimensions]; vectors of one model only."""
    if not raws:
        return np.zeros((0, 0), dtype=np.float32)
    flat = np.frombuffer(b"".join(raws), dtype=">f2").reshape(len(raws), -1)
    return flat[:, 2:].astype(np.float32)  # before the numbers stand two more of their size: n and 0


def _binary(
    team_id: uuid.UUID, model_id: str, rows: Sequence[tuple[uuid.UUID, uuid.UUID, str, np.ndarray]]
) -> Iterator[bytes]:
    """PostgreSQL's binary COPY format: a signature, then each row as counted, length-prefixed fields."""
    yield b"PGCOPY\n\xff\r\n\x00" + struct.pack("!II", 0, 0)
    for memory, scope, status, embedding in rows:
        fields = (
            team_id.bytes,
            memory.bytes,
            scope.bytes,
            str(status).encode(),
            model_id.encode(),
            HalfVector(np.asarray(embedding, dtype=np.float32)).to_binary(),
        )
        yield struct.pack("!h", len(fields)) + b"".join(struct.pack("!i", len(f)) + f for f in fields)
    yield struct.pack("!h", -1)
