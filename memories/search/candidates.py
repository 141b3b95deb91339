"""Both searches on one question: candidates with exact evidence of either kind, fused."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection

from hindsight_site.accounts.models import Team
from memories.embeddings import EmbeddingError, get_embedder

from . import background, fusion, keywords, vectors
from .bm25 import Statistics
from .calibration import calibration_of
from .fusion import Evidence, Fused, Place
from .narrowing import Narrowing
from .passages import without_names
from .tokens import query_tokens

LIMIT = 30  # candidates of each kind; 50 changes recall@10 by less than 0.005


@dataclass(frozen=True, slots=True)
class Found:
    """Fused candidates, best first, and their vectors (for telling near-duplicates)."""

    fused: list[Fused]
    vectors: dict[uuid.UUID, np.ndarray]


@dataclass(frozen=True, slots=True)
class _Searched:
    """Where is searched, as every query of this module needs it."""

    team_id: uuid.UUID
    scope_ids: Sequence[uuid.UUID]
    statuses: Sequence[str]
    where: Narrowing
    model_id: str


def find(
    *,
    team: Team,
    scope_ids: Sequence[uuid.UUID],
    text: str,
    embedding: np.ndarray | None,
    statuses: Sequence[str],
    only: dict[str, Any],
) -> Found:
    """Return the candidates of a question; without an embedding by keywords alone."""
    if not scope_ids:
        return Found([], {})
    embedder = get_embedder()
    searched = _Searched(team.pk, scope_ids, statuses, Narrowing(**only), embedder.model_id)
    usual = background.sample(team.pk, scope_ids, embedder.model_id)
    named = without_names(text, usual.actors)
    if embedding is not None and named.text != text:
        embedding = _embed(named.text, embedding)
    hits, statistics = keywords.search(
        team_id=team.pk,
        scope_ids=scope_ids,
        query=query_tokens(text),
        statuses=statuses,
        limit=LIMIT,
        where=searched.where,
    )
    ids = {hit.memory_id for hit in hits}
    if embedding is not None:
        near = vectors.nearest(
            team_id=team.pk,
            scope_ids=scope_ids,
            embedding=embedding,
            model_id=embedder.model_id,
            statuses=statuses,
            limit=LIMIT,
            where=searched.where,
        )
        ids |= {hit.memory_id for hit in near}
    evidence, held = scores_for(ids, searched, statistics, embedding)
    calibration = calibration_of(embedder.model_id)
    cosines = usual.vectors @ embedding if embedding is not None and len(usual.vectors) else ()
    fused = fusion.fuse(
        evidence,
        calibration=calibration,
        background=fusion.background_of([float(c) for c in cosines], calibration),
        share=statistics.share,
        named=named.names,
    )
    return Found(fused, held)


def floor(degraded: bool) -> float:
    """The relevance below which nothing is handed out by default."""
    calibration = calibration_of(get_embedder().model_id)
    return calibration.keyword_floor if degraded else calibration.floor


def scores_for(
    ids: set[uuid.UUID], searched: _Searched, statistics: Statistics, embedding: np.ndarray | None
) -> tuple[list[Evidence], dict[uuid.UUID, np.ndarray]]:
    """Return exact evidence of both kinds for these memories and the turns next to them, and their vectors.

    What the narrowing or the scopes leave out is not in the answer.
    """
    if not ids:
        return [], {}
    rows = _rows(ids, searched, statistics)
    with_vector = [row for row in rows if row[-1] is not None]
    matrix = vectors.decode([row[-1] for row in with_vector])
    held = {row[0]: vector for row, vector in zip(with_vector, matrix, strict=True)}
    cosines: dict[uuid.UUID, float] = {}
    if embedding is not None and with_vector:
        cosines = dict(zip(held, (matrix @ embedding).tolist(), strict=True))
    evidence = [
        Evidence(
            memory_id=memory,
            cosine=cosines.get(memory),
            coverage=statistics.coverage(matched, length),
            matched=matched,
            exact=statistics.identifier_share(matched),
            place=Place(session, sequence if session else None, actor, chars, asks),
        )
        for memory, session, sequence, actor, chars, asks, length, matched, _ in rows
    ]
    return evidence, held


def _rows(ids: set[uuid.UUID], searched: _Searched, statistics: Statistics) -> list[tuple]:
    bits, params = keywords.matched_sql(statistics.query, "k")
    fits, narrowing = searched.where.sql("k")
    # LATERAL … OFFSET 0: one look-up by key for each memory, whatever the planner thinks of the tables.
    # Joined with nothing, the tokens are unpacked once for a row and not once for each term.
    sql = f"""
        SELECT a.id, p.session_id, p.sequence, p.actor, p.chars, p.asks, k.length, {bits}, v.embedding
        FROM (
            SELECT unnest(%(ids)s::uuid[]) AS id
            UNION
            SELECT n.id FROM unnest(%(ids)s::uuid[]) AS f(id)
            CROSS JOIN LATERAL (
                SELECT session_id, sequence FROM memories_memory
                WHERE team_id = %(team)s AND id = f.id AND sequence IS NOT NULL AND session_id <> '' OFFSET 0
            ) t CROSS JOIN LATERAL (
                SELECT id FROM memories_memory
                WHERE team_id = %(team)s AND session_id = t.session_id
                  AND sequence IN (t.sequence - 1, t.sequence + 1) OFFSET 0
            ) n
        ) a CROSS JOIN LATERAL (
            SELECT session_id, sequence, actor, char_length(content) AS chars,
                   char_length(content) < 120 AND content ~ '[?？]\\s*$' AS asks
            FROM memories_memory WHERE team_id = %(team)s AND id = a.id OFFSET 0
        ) p CROSS JOIN LATERAL (
            SELECT tokens || ''::tsvector AS tokens, length FROM memories_memoryterms k
            WHERE team_id = %(team)s AND memory_id = a.id
              AND scope_id = ANY(%(scopes)s) AND status = ANY(%(statuses)s) AND {fits} OFFSET 0
        ) k LEFT JOIN LATERAL (
            SELECT halfvec_send(embedding) AS embedding FROM memories_memoryvector
            WHERE team_id = %(team)s AND memory_id = a.id AND model_id = %(model)s OFFSET 0
        ) v ON TRUE
    """  # noqa: S608 - made of constants
    params |= narrowing | {
        "team": searched.team_id,
        "ids": list(ids),
        "model": searched.model_id,
        "scopes": list(searched.scope_ids),
        "statuses": list(searched.statuses),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def _embed(text: str, otherwise: np.ndarray) -> np.ndarray:
    try:
        return get_embedder().embed([text], kind="query")[0]
    except EmbeddingError:
        return otherwise
