"""What is usual in a scope: a sample of its vectors, and who speaks there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection

from .caches import TimedCache
from .vectors import decode

SAMPLE = 200  # memories: the mean cosine is then known to about 0.006
KEPT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class ScopeSample:
    """Vectors [n, dimensions] of up to `SAMPLE` memories, and the speakers among them."""

    vectors: np.ndarray
    actors: frozenset[str]


_samples: TimedCache[tuple[uuid.UUID, tuple[uuid.UUID, ...], str], ScopeSample] = TimedCache(
    size=200, seconds=KEPT_SECONDS
)


def sample(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], model_id: str) -> ScopeSample:
    """Return a sample of these scopes, always the same while they do not change.

    Kept in the process for minutes once the scopes are larger than the sample.
    """
    key = (team_id, tuple(sorted(scope_ids)), model_id)
    known = _samples.get(key)
    if known is not None:
        return known
    drawn = _draw(team_id, scope_ids, model_id)
    if len(drawn.vectors) == SAMPLE:
        _samples.put(key, drawn)
    return drawn


def _draw(team_id: uuid.UUID, scope_ids: Sequence[uuid.UUID], model_id: str) -> ScopeSample:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT halfvec_send(v.embedding), coalesce(m.actor, '') FROM (
                SELECT memory_id, embedding FROM memories_memoryvector
                WHERE team_id = %(team)s AND scope_id = ANY(%(scopes)s) AND model_id = %(model)s
                ORDER BY uuid_hash(memory_id) LIMIT %(limit)s
            ) v LEFT JOIN memories_memory m ON m.team_id = %(team)s AND m.id = v.memory_id
            """,
            {"team": team_id, "scopes": list(scope_ids), "model": model_id, "limit": SAMPLE},
        )
        rows = cursor.fetchall()
    return ScopeSample(decode([raw for raw, _ in rows]), frozenset(actor for _, actor in rows if actor))
