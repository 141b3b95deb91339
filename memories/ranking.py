"""From relevance to a ranked, diverse list. Pure: numbers in, numbers out.

`score = weight × (0.5·relevance + 0.3·recency + 0.2·confidence) × heat`; the numbers are the team's
ranking policy (`memories.policy.Ranking`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from memories.enums import Kind, Tier
from memories.policy import Ranking

NEAR_DUPLICATE = 0.97  # cosine between two hits above which only the better one is shown
CONTESTED_STEP = 0.0001  # how far the less believed side of a contradiction stays below the other: one shown digit


@dataclass(frozen=True, slots=True)
class Standing:
    """What ranking needs to know of a memory."""

    tier: str
    kind: str
    confidence: float  # 0..1
    weight: float  # 0..1
    access_count: int
    last_changed: datetime
    is_own: bool  # in the caller's private scope


@dataclass(frozen=True, slots=True)
class Parts:
    """Every part of a score, as shown by `explain`."""

    relevance: float
    recency: float
    confidence: float
    weight: float
    heat: float

    def score(self, ranking: Ranking) -> float:
        """Return the product that hits are sorted by."""
        blend = (
            ranking.relevance * self.relevance + ranking.recency * self.recency + ranking.confidence * self.confidence
        )
        return self.weight * blend * self.heat


def parts_of(standing: Standing, relevance: float, now: datetime, ranking: Ranking) -> Parts:
    """Return the parts of one memory's score at `now`."""
    return Parts(
        relevance=relevance,
        recency=recency(now - standing.last_changed, ranking.half_life[standing.tier]),
        confidence=standing.confidence,
        weight=standing.weight,
        heat=heat(standing.access_count, ranking),
    )


def recency(age: timedelta, half_life: timedelta | None) -> float:
    """0.5^(age / half-life) in 0..1; without a half-life 1."""
    if half_life is None:
        return 1.0
    return 0.5 ** (max(age, timedelta(0)) / half_life)


def heat(access_count: int, ranking: Ranking) -> float:
    """1 + step · ln(1 + access_count), at most the cap."""
    return min(1.0 + ranking.heat_step * math.log1p(access_count), ranking.heat_cap)


def order_key(score: float, standing: Standing, exact: float = 0.0) -> tuple[bool, float, bool, bool]:
    """Sort descending by this: an exact identifier of the query, the score, semantic, the caller's own scope.

    Who asks for `ERR_CONN_4031` wants what is known of it, however old or little used.
    """
    return (exact > 0, round(score, 6), standing.tier == Tier.SEMANTIC, standing.is_own)


def hold_back(
    scores: Mapping[Hashable, float],
    pairs: Iterable[tuple[Hashable, Hashable]],
    belief: Mapping[Hashable, tuple[bool, float]],
) -> dict[Hashable, float]:
    """Return the scores with, of each contradicting pair, the less believed one just below the other.

    `belief` is whether somebody stands behind a memory (a person, an outcome), and its confidence.
    """
    held = dict(scores)
    both_there = [(a, b) for a, b in pairs if a in held and b in held and belief[a] != belief[b]]
    ordered = [(a, b) if belief[a] > belief[b] else (b, a) for a, b in both_there]
    for better, worse in sorted(ordered, key=lambda pair: belief[pair[0]], reverse=True):
        held[worse] = min(held[worse], max(held[better] - CONTESTED_STEP, 0.0))
    return held


def choose(kinds: Sequence[str], vectors: Sequence[np.ndarray | None], top_k: int, most_lessons: int) -> list[int]:
    """Return the places (in ranked order) of at most `top_k` hits: few lessons, no near-duplicates."""
    chosen: list[int] = []
    lessons = 0
    for place, (kind, vector) in enumerate(zip(kinds, vectors, strict=True)):
        if len(chosen) == top_k:
            break
        if kind == Kind.EXPERIENCE and lessons == most_lessons:
            continue
        if vector is not None and any(_alike(vector, vectors[other]) for other in chosen):
            continue
        lessons += kind == Kind.EXPERIENCE
        chosen.append(place)
    return chosen


def fold(kinds: Sequence[str], traces: Sequence[frozenset[Hashable]]) -> list[int]:
    """Return the places in their order with each episode giving way to the best lesson of the same trace.

    The lesson is what the episode comes down to: handed out together they would say the same thing twice.
    """
    order: dict[int, None] = {}
    for place, kind in enumerate(kinds):
        lesson = None
        if kind == Kind.TASK:
            lessons = (i for i, other in enumerate(kinds) if other == Kind.EXPERIENCE and traces[i] & traces[place])
            lesson = next(lessons, None)
        order.setdefault(place if lesson is None else lesson)
    return list(order)


def _alike(left: np.ndarray, right: np.ndarray | None) -> bool:
    if right is None or left.shape != right.shape:
        return False
    return float(left @ right) >= NEAR_DUPLICATE * float(np.linalg.norm(left) * np.linalg.norm(right))


def contradicts(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether a memory's environment says something else than the query's about the same key."""
    return any(
        key in asked and str(asked[key]).strip().casefold() != str(value).strip().casefold()
        for key, value in recorded.items()
    )
