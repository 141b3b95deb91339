"""Nearest memories by an engine beside PostgreSQL: it proposes, PostgreSQL decides.

The engine knows nothing of row-level security, may lag behind, and may hold what was put there by mistake. So
its hits only say where to look: team, scope, status and narrowing are asked of PostgreSQL's own rows again, and
the similarity is computed from its own vector. What the engine has not been told yet is looked at beside them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from pgvector import HalfVector

from memories.search import vectors
from memories.search.deadline import Deadline
from memories.search.narrowing import Narrowing
from memories.search.vectors import OVERFETCH, VectorHit

from . import current
from .base import EngineError
from .calls import in_time

PENDING = 200  # of the newest changes that the engine has not been told of; more are an outage, not a lag


def nearest(
    *,
    team_id: uuid.UUID,
    scope_ids: Sequence[uuid.UUID],
    embedding: np.ndarray,
    model_id: str,
    statuses: Sequence[str],
    limit: int = 50,
    where: Narrowing | None = None,
    deadline: Deadline,
) -> list[VectorHit]:
    """Return the closest rows of `model_id`, best first, among those that `where` allows. Raises `EngineError`.

    When the narrowing leaves too few of the engine's, PostgreSQL's own search goes through all, as it would
    without an engine: the filter comes before the limit.
    """
    asked: dict[str, Any] = {"team_id": team_id, "scope_ids": scope_ids, "embedding": embedding, "model_id": model_id}
    call = partial(current().nearest, **asked, statuses=statuses, limit=OVERFETCH * limit)
    proposed = [hit.memory_id for hit in in_time(call, _seconds(deadline))]
    hits = _checked(proposed, team_id, scope_ids, embedding, model_id, statuses, limit, where)
    if not proposed and not hits and _is_there(team_id, scope_ids, model_id, statuses):
        raise EngineError("The vector index holds nothing of what is searched: run `manage.py reindex`.")
    if len(hits) < limit and len(proposed) == OVERFETCH * limit:
        return vectors.nearest(**asked, statuses=statuses, limit=limit, where=where)
    return hits


def _is_there(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], model_id: str, statuses: Sequence[str]) -> bool:
    """Whether PostgreSQL has a vector that the engine should have proposed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM memories_memoryvector WHERE team_id = %s AND scope_id = ANY(%s)"
            " AND model_id = %s AND status = ANY(%s))",
            [team_id, list(scope_ids), model_id, list(statuses)],
        )
        return bool(cursor.fetchone()[0])


def _seconds(deadline: Deadline) -> float:
    """How long the engine is waited for: half of what is left at most, so that an answer can still be made."""
    most = settings.VECTOR_INDEX_TIMEOUT_MS / 1000
    left = deadline.left()
    return most if left is None else min(most, left / 2)


def _checked(
    proposed: Sequence[uuid.UUID],
    team_id: uuid.UUID,
    scope_ids: Sequence[uuid.UUID],
    embedding: np.ndarray,
    model_id: str,
    statuses: Sequence[str],
    limit: int,
    where: Narrowing | None,
) -> list[VectorHit]:
    """The proposed memories and the pending ones, as far as PostgreSQL's own rows allow them.

    The memory's own row is behind row-level security; the table of vectors is not.
    """
    params: dict[str, Any] = {
        "vector": HalfVector(np.asarray(embedding, dtype=np.float32)).to_text(),
        "proposed": list(proposed),
        "team": team_id,
        "scopes": list(scope_ids),
        "model": model_id,
        "statuses": list(statuses),
    }
    fits = "EXISTS (SELECT 1 FROM memories_memory m WHERE m.team_id = %(team)s AND m.id = v.memory_id)"
    if where is not None:
        fits, narrowing = where.sql("v")
        params |= narrowing
    sql = f"""
        SELECT v.memory_id, 1 - (v.embedding <=> %(vector)s::halfvec) AS cosine FROM memories_memoryvector v
        WHERE v.team_id = %(team)s AND v.model_id = %(model)s
          AND v.memory_id = ANY(ARRAY(SELECT unnest(%(proposed)s::uuid[]) UNION (
              SELECT memory_id FROM memories_vectorchange WHERE team_id = %(team)s ORDER BY id DESC LIMIT {PENDING}
          )))
          AND v.scope_id = ANY(%(scopes)s) AND v.status = ANY(%(statuses)s) AND {fits}
        ORDER BY cosine DESC, v.memory_id LIMIT {limit:d}
    """  # noqa: S608 - made of constants and numbers
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [VectorHit(memory, cosine) for memory, cosine in cursor.fetchall()]
