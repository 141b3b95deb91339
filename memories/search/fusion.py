"""Vector and keyword evidence → one calibrated relevance. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from memories.search.tokens import QueryTokens

FLOOR = 0.35  # below this nothing is relevant


@dataclass(frozen=True, slots=True)
class Evidence:
    """What both searches say about one memory; a missing side is 0."""

    memory_id: uuid.UUID
    cosine: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Fused:
    """Relevance in 0..1, comparable between queries, and its two parts in 0..1."""

    memory_id: uuid.UUID
    relevance: float
    vector: float
    keyword: float


def fuse(query: QueryTokens, evidence: Sequence[Evidence]) -> list[Fused]:
    """Return the fused evidence, best first."""
    keyword_share = 0.8 if query.identifiers else 0.5
    fused = []
    for item in evidence:
        vector, keyword = max(item.cosine, 0.0), min(item.coverage, 1.0)
        relevance = max((1 - keyword_share) * vector + keyword_share * keyword, 0.8 * vector)
        fused.append(Fused(item.memory_id, min(relevance, 1.0), vector, keyword))
    return sorted(fused, key=lambda one: (-one.relevance, str(one.memory_id)))
