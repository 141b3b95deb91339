"""Both searches on one question: candidates with exact evidence of either kind, fused."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from hindsight_site.accounts.models import Team
from memories.embeddings import get_embedder

from . import background, engines, evidence, fusion, keywords, times, vectors
from .asking import ask
from .bm25 import Statistics
from .calibration import Calibration, calibration_of
from .deadline import Deadline, Search, searching
from .evidence import Row, Where
from .fusion import Background, Evidence, Fused, Place
from .keywords import KeywordHit
from .narrowing import Narrowing
from .passages import without_names
from .tokens import query_tokens
from .vectors import VectorHit

LIMIT = 30  # candidates of each kind; 50 changes recall@10 by less than 0.005
NO_DEADLINE = Deadline(None)


@dataclass(frozen=True, slots=True)
class Found:
    """Fused candidates, best first; what is known of each, and its vector (for telling near-duplicates).

    `late` says what was left out because it failed or came too late; empty when nothing was.
    """

    fused: list[Fused]
    vectors: dict[uuid.UUID, np.ndarray] = field(default_factory=dict)
    rows: dict[uuid.UUID, Row] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    by_keywords_alone: bool = False


def find(
    *,
    team: Team,
    scope_ids: Sequence[uuid.UUID],
    text: str,
    statuses: Sequence[str],
    only: dict[str, Any],
    at: datetime | None = None,
    deadline: Deadline = NO_DEADLINE,
    with_vectors: bool = True,
    said: Mapping[uuid.UUID, str] | None = None,
) -> Found:
    """Return the candidates of a question. `only` are the fields of a `Narrowing`, `at` the caller's present.

    The question is embedded by every model that has rows in the scopes, while the keywords are searched.
    What is not there by the deadline is left out and named in `late`. `said` are texts that count instead of
    the present ones.
    """
    if not scope_ids:
        return Found([])
    where = Where(team.pk, scope_ids, statuses, Narrowing(**only))
    models = vectors.models_in(team.pk, scope_ids) if with_vectors else []
    samples = {model: background.sample(team.pk, scope_ids, model) for model in models or [get_embedder().model_id]}
    named = without_names(text, frozenset().union(*(sample.actors for sample in samples.values())))
    asked = ask(named.text, models)
    late: list[str] = []
    with searching(deadline) as search:
        hits, statistics = _keywords(search, where, text, late)
        embeddings = asked.wait(deadline)
        late += asked.late
        near = _nearest(search, where, embeddings, late)
        ids = {hit.memory_id for hit in hits} | near
        ids |= evidence.holding(said, statistics.query) if said else set()
        nothing: list[Row] = []
        rows, in_time = search.attempt(lambda: evidence.rows(ids, where, statistics, list(samples)), nothing)
        late += [] if in_time else ["database"]
    if said:
        rows = evidence.as_said(rows, said, statistics.query, get_embedder() if embeddings else None)
    measured = {
        model: (embedding, _background(samples[model].vectors, embedding, calibration_of(model)))
        for model, embedding in embeddings.items()
    }
    spans = times.spans(text, at or where.narrowing.now)
    fused = fusion.fuse(
        [_evidence(row, statistics, measured, spans) for row in rows],
        share=statistics.share,
        named=named.names,
        session_words=statistics.sessions,
    )
    return Found(
        fused,
        {row.pk: row.vector for row in rows if row.vector is not None},
        {row.pk: row for row in rows},
        tuple(dict.fromkeys(late)),
        by_keywords_alone=not embeddings,
    )


def floor(by_keywords_alone: bool) -> float:
    """The relevance below which nothing is handed out by default."""
    calibration = calibration_of(get_embedder().model_id)
    return calibration.keyword_floor if by_keywords_alone else calibration.floor


def _keywords(search: Search, where: Where, text: str, late: list[str]) -> tuple[list[KeywordHit], Statistics]:
    query = query_tokens(text)
    nothing: tuple[list[KeywordHit], Statistics] = ([], Statistics(query, (0.0,) * len(query.terms), 1.0))
    found, in_time = search.attempt(
        lambda: keywords.search(
            team_id=where.team_id,
            scope_ids=where.scope_ids,
            query=query,
            statuses=where.statuses,
            limit=LIMIT,
            where=where.narrowing,
        ),
        nothing,
    )
    late += [] if in_time else ["keywords"]
    return found


def _nearest(search: Search, where: Where, embeddings: Mapping[str, np.ndarray], late: list[str]) -> set[uuid.UUID]:
    """The closest memories by each model."""
    ids: set[uuid.UUID] = set()
    nothing: list[VectorHit] = []
    for model, embedding in embeddings.items():
        nearest = partial(
            engines.nearest_within(search.deadline),
            team_id=where.team_id,
            scope_ids=where.scope_ids,
            embedding=embedding,
            model_id=model,
            statuses=where.statuses,
            limit=LIMIT,
            where=where.narrowing,
        )
        hits, in_time = search.attempt(nearest, nothing)
        late += [] if in_time else ["vectors"]
        ids |= {hit.memory_id for hit in hits}
    return ids


def _background(sample: np.ndarray, embedding: np.ndarray, calibration: Calibration) -> Background:
    cosines = (sample @ embedding).tolist() if len(sample) else []
    return fusion.background_of(cosines, calibration)


def _evidence(
    row: Row,
    statistics: Statistics,
    measured: Mapping[str, tuple[np.ndarray, Background]],
    spans: list[times.Span],
) -> Evidence:
    near = None
    if row.vector is not None and row.model_id in measured:
        embedding, usual = measured[row.model_id]
        near = fusion.nearness(float(row.vector @ embedding), usual)
    return Evidence(
        memory_id=row.pk,
        near=near,
        coverage=statistics.coverage(row.matched, row.length),
        matched=row.matched,
        exact=statistics.identifier_share(row.matched),
        timely=times.closeness(row.occurred_at, spans),
        place=Place(row.session_id, row.sequence if row.session_id else None, row.actor, row.chars, row.asks),
    )
