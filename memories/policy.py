"""The numbers of a team's policy, with their defaults. Pure.

What each number means to a person (label, unit, help, limits) stands in `memories.policy_table`; which
numbers a team has set, in `memories.team_policy`.
"""

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
    """The rules of life: when a memory fades, merges, waits for a person or leaves. See `memories.lifecycle`."""

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

    # Passing failures
    transient_after: timedelta = timedelta(hours=24)
    transient_factor: float = 0.5
    # Episodic memories without a hit
    episodic_fade_after: timedelta = timedelta(days=30)
    episodic_fade_factor: float = 0.5
    episodic_archive_after: timedelta = timedelta(days=60)
    episodic_delete_after: timedelta = timedelta(days=180)  # further, after the archive
    # Facts, preferences and relations without a hit; those with this many hits ever are spared
    fact_fade_after: timedelta = timedelta(days=90)
    fact_fade_factor: float = 0.5
    fact_archive_after: timedelta = timedelta(days=180)
    fact_enough_hits: int = 3
    # Lessons
    unused_streak: int = 5  # recalled so often in a row and never adopted
    unused_step: float = 0.1
    failing_uses: int = 5  # adopted so often, with a known end
    failing_rate: float = 0.3  # and succeeded in fewer than this share
    failing_factor: float = 0.5
    lesson_archive_after: timedelta = timedelta(days=90)
    # All
    least_confidence: float = 0.3
    approved_exempt: timedelta = timedelta(days=90)
    restored_exempt: timedelta = timedelta(days=30)
    # Room in a scope, and what gives way first
    capacity: int = 10_000
    keep_confidence: float = 0.4
    keep_frequency: float = 0.3
    keep_recency: float = 0.3
    keep_half_life: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Review:
    """When the week's sample is drawn, how many memories are in it, and how many of them two people judge."""

    weekday: int = 0  # Monday
    hour: int = 6  # the team's time
    most_random: int = 30
    most_targeted: int = 10
    overlap: float = 0.2  # the share of the random memories that two people judge, each without the other's verdict
    canaries: int = 0  # memories with a known answer, at most; never more than 5 % of the batch


@dataclass(frozen=True, slots=True)
class Keep:
    """How long raw material is kept; nothing, for ever. The audit stays as long as the team."""

    traces: timedelta = timedelta(0)
    receipts: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Policy:
    """All of a team's numbers. `version` counts its changes; 0 is the defaults."""

    life: Life = field(default_factory=Life)
    ranking: Ranking = field(default_factory=Ranking)
    review: Review = field(default_factory=Review)
    keep: Keep = field(default_factory=Keep)
    version: int = 0


RANKING = Ranking()
LIFE = Life()
