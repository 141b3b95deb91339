"""Both searches on one question: candidates with exact evidence of either kind, fused."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hindsight_site.accounts.models import Team
from memories.embeddings import get_embedder
from memories.models import MemoryVector
from memories.search import fusion, keywords, vectors
from memories.search.fusion import Evidence, Fused
from memories.search.narrowing import Narrowing
from memories.search.tokens import query_tokens

LIMIT = 50  # candidates of each kind


@dataclass(frozen=True, slots=True)
class Found:
    """Fused candidates, best first, and their vectors (for telling near-duplicates)."""

    fused: list[Fused]
    vectors: dict[uuid.UUID, np.ndarray]


def find(
    *, team: Team, scope_ids: Sequence[uuid.UUID], text: str, embedding: np.ndarray | None,
    statuses: Sequence[str], only: dict[str, Any],
) -> Found:
    """Return the candidates of a question; without an embedding by keywords alone."""
    if not scope_ids:
        return Found([], {})
    tokens = query_tokens(text)
    where = Narrowing(**only)
    common = {"team_id": team.pk, "scope_ids": scope_ids, "statuses": statuses, "limit": LIMIT, "where": where}
    by_words = {hit.memory_id: hit.coverage for hit in keywords.search(query=tokens, **common)}
    by_meaning: dict[uuid.UUID, float] = {}
    if embedding is not None:
        model_id = get_embedder().model_id
        near = vectors.nearest(embedding=embedding, model_id=model_id, **common)
        by_meaning = {hit.memory_id: hit.cosine for hit in near}
    ids = list(by_words | by_meaning)
    held = _vectors(team, ids)
    if embedding is not None:
        by_meaning |= {pk: _cosine(embedding, held[pk]) for pk in ids if pk not in by_meaning and pk in held}
    evidence = [Evidence(pk, by_meaning.get(pk, 0.0), by_words.get(pk, 0.0)) for pk in ids]
    return Found(fusion.fuse(tokens, evidence), held)


def floor(degraded: bool) -> float:
    """The relevance below which nothing is handed out by default."""
    return fusion.FLOOR / 2 if degraded else fusion.FLOOR


def _vectors(team: Team, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, np.ndarray]:
    rows = MemoryVector.objects.of(team).filter(memory_id__in=ids, model_id=get_embedder().model_id)
    return {pk: np.asarray(vector, np.float32) for pk, vector in rows.values_list("memory_id", "embedding")}


def _cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))
