"""What is known of the candidates and of the turns next to them: one statement for all of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.db import connection

from memories.embeddings import Embedder

from . import keywords, vectors
from .bm25 import Statistics
from .narrowing import Narrowing
from .tokens import QueryTokens, document_tokens


@dataclass(frozen=True, slots=True)
class Where:
    """Where is searched, and what a memory must be."""

    team_id: uuid.UUID
    scope_ids: Sequence[uuid.UUID]
    statuses: Sequence[str]
    narrowing: Narrowing


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate: what ranking needs to know of it, without its text.

    `matched` are the terms of the question that it holds as bits, `length` its tokens; `vector` is that of
    `model_id`, None where it has none.
    """

    pk: uuid.UUID
    scope_id: uuid.UUID
    agent_id: uuid.UUID | None
    kind: str
    tier: str
    status: str
    trust: str
    confidence: float
    weight: float
    access_count: int
    revision: int
    environment: dict[str, Any]
    approved_at: datetime | None
    created_at: datetime
    occurred_at: datetime | None
    session_id: str
    sequence: int | None
    actor: str
    chars: int
    asks: bool
    length: int
    matched: int
    model_id: str
    vector: np.ndarray | None


_COLUMNS = (
    "id, scope_id, agent_id, kind, tier, status, trust, confidence, weight, access_count, revision, environment,"
    " approved_at, created_at, occurred_at, session_id, sequence, actor"
)
_NAMES = _COLUMNS.split(", ")
_ENVIRONMENT = _NAMES.index("environment")
_TIMES = [_NAMES.index(name) for name in ("approved_at", "created_at", "occurred_at")]
# Times come as microseconds since 1970: read from their text they take longer than all other columns.
_READ = ", ".join(
    f"(extract(epoch FROM {name}) * 1000000)::bigint AS {name}" if at in _TIMES else name
    for at, name in enumerate(_NAMES)
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Next to each other in the same session. LATERAL … OFFSET 0: one look-up by key for each memory, whatever
# the planner thinks of the tables.
_WITH_NEIGHBOURS = """
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
"""


def rows(ids: set[uuid.UUID], where: Where, statistics: Statistics, models: Sequence[str]) -> list[Row]:
    """Return these memories and the turns next to them, as far as scopes, statuses and narrowing allow.

    Of a memory that several models have embedded, the vector of the first of `models` is given.
    """
    if not ids:
        return []
    fetched = _fetch(ids, where, statistics, models)
    decoded: dict[int, np.ndarray] = {}
    for model in models:  # one matrix for each: their dimensions differ
        places = [place for place, row in enumerate(fetched) if row[-2] == model and row[-1] is not None]
        decoded |= dict(zip(places, vectors.decode([fetched[place][-1] for place in places]), strict=True))
    return [_row(row, decoded.get(place)) for place, row in enumerate(fetched)]


def _row(fetched: tuple, vector: np.ndarray | None) -> Row:
    columns: list[Any] = list(fetched[:-2])
    environment = columns[_ENVIRONMENT]  # jsonb comes as text
    columns[_ENVIRONMENT] = {} if environment == "{}" else json.loads(environment)
    for at in _TIMES:
        if columns[at] is not None:
            columns[at] = _EPOCH + timedelta(microseconds=columns[at])
    return Row(*columns, fetched[-2] or "", vector)  # type: ignore[call-arg]


def as_said(
    rows: Sequence[Row], said: Mapping[uuid.UUID, str], query: QueryTokens, embedder: Embedder | None
) -> list[Row]:
    """Return the rows with the evidence of other texts than the present ones, where `said` has one."""
    told = [row for row in rows if row.pk in said]
    embeddings: Sequence[np.ndarray | None] = [None] * len(told)
    if told and embedder is not None:
        embeddings = list(embedder.embed([said[row.pk] for row in told], kind="passage"))
    changed = {}
    for row, embedding in zip(told, embeddings, strict=True):
        tokens = document_tokens(said[row.pk])
        held = set(tokens)
        matched = sum(1 << i for i, lexeme in enumerate(query.lexemes) if lexeme in held)
        model = embedder.model_id if embedder is not None else ""
        changed[row.pk] = replace(row, length=len(tokens), matched=matched, model_id=model, vector=embedding)
    return [changed.get(row.pk, row) for row in rows]


def holding(said: Mapping[uuid.UUID, str], query: QueryTokens) -> set[uuid.UUID]:
    """Return the memories whose text in `said` holds a word of the question."""
    wanted = set(query.lexemes)
    return {pk for pk, text in said.items() if not wanted.isdisjoint(document_tokens(text))}


def _fetch(ids: set[uuid.UUID], where: Where, statistics: Statistics, models: Sequence[str]) -> list[tuple]:
    bits, params = keywords.matched_sql(statistics.query, "k")
    fits, narrowing = where.narrowing.on_memory()
    # Joined with nothing, the tokens are unpacked once for a row and not once for each term.
    sql = f"""
        SELECT m.*, k.length, {bits}, v.model_id, v.embedding
        FROM ({_WITH_NEIGHBOURS}) a CROSS JOIN LATERAL (
            SELECT {_READ}, char_length(content) AS chars,
                   char_length(content) < 120 AND content ~ '[?？]\\s*$' AS asks
            FROM memories_memory m WHERE team_id = %(team)s AND id = a.id
              AND scope_id = ANY(%(scopes)s) AND status = ANY(%(statuses)s) AND {fits} OFFSET 0
        ) m CROSS JOIN LATERAL (
            SELECT tokens || ''::tsvector AS tokens, length FROM memories_memoryterms
            WHERE team_id = %(team)s AND memory_id = a.id OFFSET 0
        ) k LEFT JOIN LATERAL (
            SELECT model_id, halfvec_send(embedding) AS embedding FROM memories_memoryvector
            WHERE team_id = %(team)s AND memory_id = a.id AND model_id = ANY(%(models)s)
            ORDER BY array_position(%(models)s::varchar[], model_id) LIMIT 1
        ) v ON TRUE
    """  # noqa: S608 - made of constants
    params |= narrowing | {
        "team": where.team_id,
        "ids": "{" + ",".join(map(str, ids)) + "}",  # an array written by the driver takes four times as long
        "models": list(models),
        "scopes": list(where.scope_ids),
        "statuses": list(where.statuses),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()
