"""The default engine: PostgreSQL itself. Its rows are written with the memory's, so there is nothing to carry over."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import numpy as np
from django.db import connection

from memories.search import vectors
from memories.search.vectors import VectorHit

from .base import BATCH, Point

# What makes a copy stale: another scope, status or vector. Over columns of memories_memoryvector as `v`.
STAMP = "md5(v.scope_id::text || v.status || md5(halfvec_send(v.embedding)))"


def upsert(*, team_id: uuid.UUID, model_id: str, points: Sequence[Point]) -> None:
    """Write rows, in place of earlier ones; their stamps follow from them."""
    rows = [(point.memory_id, point.scope_id, point.status, point.vector) for point in points]
    vectors.upsert(team_id=team_id, model_id=model_id, rows=rows)


def delete(*, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> None:
    """Remove the rows of these memories by one model."""
    vectors.delete(team_id=team_id, memory_ids=memory_ids, model_id=model_id)


def nearest(
    *,
    team_id: uuid.UUID,
    scope_ids: Sequence[uuid.UUID],
    embedding: np.ndarray,
    model_id: str,
    statuses: Sequence[str],
    limit: int,
) -> list[VectorHit]:
    """Return the closest rows, best first."""
    return vectors.nearest(
        team_id=team_id, scope_ids=scope_ids, embedding=embedding, model_id=model_id, statuses=statuses, limit=limit
    )


def stamps(*, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Return the stamps of those of these memories that have a row."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT v.memory_id, {STAMP} FROM memories_memoryvector v"  # noqa: S608 - a constant
            " WHERE v.team_id = %s AND v.memory_id = ANY(%s) AND v.model_id = %s",
            [team_id, list(memory_ids), model_id],
        )
        return dict(cursor.fetchall())


def scan(*, team_id: uuid.UUID, model_id: str) -> Iterator[list[uuid.UUID]]:
    """Go through all rows of a team by one model, in the order of the memories' ids."""
    after = uuid.UUID(int=0)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT memory_id FROM memories_memoryvector"
                " WHERE team_id = %s AND model_id = %s AND memory_id > %s ORDER BY memory_id LIMIT %s",
                [team_id, model_id, after, BATCH],
            )
            page = [memory for (memory,) in cursor.fetchall()]
        if not page:
            return
        yield page
        after = page[-1]


def models() -> list[str]:
    """Return the models that have rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT model_id FROM memories_memoryvector ORDER BY 1")
        return [model for (model,) in cursor.fetchall()]


def forget_team(*, team_id: uuid.UUID) -> None:
    """Remove every row of a team."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_memoryvector WHERE team_id = %s", [team_id])


def drop(*, model_id: str) -> None:
    """Remove every row by one model."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_memoryvector WHERE model_id = %s", [model_id])
