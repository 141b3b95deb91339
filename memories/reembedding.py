"""From one embedding model to another, while everything goes on: both are read until the last row is there.

A row carries its model's id, and a recall embeds the question with every model that the searched scopes hold.
So there is nothing to switch: rows of the new model appear beside the old ones, and when a team has them all
the old ones go. Stopped at any point it goes on where it was: what is missing is asked of the database.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from django.db import connection

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import indexing, vector_outbox
from memories.embeddings import Embedder, get_embedder
from memories.models import Memory
from memories.search import vectors

BATCH = 100  # memories embedded at once: a time of seconds, that an interruption loses at most

Progress = Callable[[int], None]  # how many more are done
Embedded = list[tuple[Memory, np.ndarray]]


def missing(team: Team, model_id: str) -> int:
    """Return how many searchable memories of a team have no vector of this model."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) {_WITHOUT}", {"team": team.pk, "model": model_id})
        return int(cursor.fetchone()[0])


def reembed(team: Team, embedder: Embedder, progress: Progress) -> int:
    """Embed what the model has no vector of, batch by batch, and return how many that were.

    Embeds outside of a transaction. What was edited meanwhile is done again with the next batch; one that
    is written with the new model meanwhile is not missing any more. Raises `EmbeddingError`.
    """
    done = 0
    while embedded := next_batch(team, embedder):
        with team_transaction(team):
            stored = store(team, embedder.model_id, embedded)
        done += stored
        progress(stored)
    return done


def next_batch(team: Team, embedder: Embedder) -> Embedded:
    """Embed some memories that the model has no vector of; empty when none is left. Call outside a transaction."""
    with team_transaction(team):
        batch = _next(team, embedder.model_id)
        memories = list(Memory.objects.of(team).filter(pk__in=batch).select_related("team"))
        texts = indexing.texts_to_embed(memories)
    return list(zip(memories, embedder.embed(texts, kind="passage"), strict=True)) if memories else []


def store(team: Team, model_id: str, embedded: Embedded) -> int:
    """Store the vectors of what was not edited meanwhile, in the caller's transaction; returns how many."""
    ids = [memory.pk for memory, _ in embedded]
    rows = Memory.objects.of(team).filter(pk__in=ids).order_by("pk").select_for_update(no_key=True)
    now = {memory.pk: memory for memory in rows}
    same = [
        (now[memory.pk], embedding)
        for memory, embedding in embedded
        if memory.pk in now and now[memory.pk].fingerprint == memory.fingerprint
    ]
    vectors.upsert(
        team_id=team.pk,
        model_id=model_id,
        rows=[(memory.pk, memory.scope_id, memory.status, embedding) for memory, embedding in same],
    )
    vector_outbox.note(team.pk, [memory.pk for memory, _ in same])
    return len(same)


def retire(team: Team, model_id: str) -> int:
    """Delete the vectors of all other models, when none of this one is missing; returns how many.

    Only the model that writes now may push the others out: rows of another would be missed at once.
    """
    if model_id != get_embedder().model_id or missing(team, model_id):
        return 0
    with team_transaction(team), connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM memories_memoryvector WHERE team_id = %s AND model_id <> %s RETURNING memory_id",
            [team.pk, model_id],
        )
        retired = [memory for (memory,) in cursor.fetchall()]
        vector_outbox.note(team.pk, retired)
        return len(retired)


# What has tokens is searchable. Forgotten and rejected memories have neither.
_WITHOUT = """
FROM memories_memoryterms t WHERE t.team_id = %(team)s AND NOT EXISTS (
    SELECT 1 FROM memories_memoryvector v
    WHERE v.team_id = %(team)s AND v.memory_id = t.memory_id AND v.model_id = %(model)s
)
"""


def _next(team: Team, model_id: str) -> list:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT t.memory_id {_WITHOUT} ORDER BY t.memory_id LIMIT {BATCH}",
            {"team": team.pk, "model": model_id},
        )
        return [memory for (memory,) in cursor.fetchall()]
