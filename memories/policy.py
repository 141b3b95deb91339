"""The numbers of a team's policy, with their defaults. Each is explained where it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from memories.enums import Tier, Trust


@dataclass(frozen=True, slots=True)
class Ranking:
    """`score = weight × (relevance·w + recency·w + confidence·w) × heat`, see `memories.recall`."""

    relevance: float = 0.5
    recency: float = 0.3
    confidence: float = 0.2
    half_life: dict[str, timedelta | None] = field(
        # None: recency stays 1.
        default_factory=lambda: {
            Tier.WORKING: timedelta(hours=1),
            Tier.EPISODIC: timedelta(days=7),
            Tier.SEMANTIC: None,
        }
    )
    heat_step: float = 0.05  # heat = 1 + step · ln(1 + access_count), at most heat_cap
    heat_cap: float = 1.2
    most_lessons: int = 3


@dataclass(frozen=True, slots=True)
class Life:
    """The rules of life: when a memory fades, merges or waits for a person."""

    working_ttl: timedelta = timedelta(hours=1)
    merge_cosine: float = 0.95
    prior_strength: float = 2.0  # how many observations a first estimate is worth
    low_confidence: float = 0.5  # `gate_low_confidence` holds back below this
    confidence_cap: dict[str, float] = field(
        default_factory=lambda: {
            Trust.HUMAN: 0.95,
            Trust.VERIFIED: 0.9,
            Trust.AGENT: 0.8,
            Trust.EXTERNAL: 0.5,
        }
    )


RANKING = Ranking()
LIFE = Life()
