"""Room in a scope: which memories give way when it holds more than it may. Pure."""

from __future__ import annotations

import heapq
import math
import uuid
from collections.abc import Iterable
from datetime import datetime

from memories.enums import Tier
from memories.lifecycle.rules import LIVE, Vitals, is_exempt
from memories.policy import Life

FULL_FREQUENCY = 100  # hits that count as 1 on the logarithmic scale


def keeping_score(vitals: Vitals, life: Life, now: datetime) -> float:
    """0.4 confidence + 0.3 log-frequency + 0.3 recency by default, each in 0..1.

    log-frequency = ln(1 + hits) / ln(1 + 100), at most 1; recency = 0.5^(time since the last hit / half-life).
    """
    frequency = min(1.0, math.log1p(vitals.access_count) / math.log1p(FULL_FREQUENCY))
    recency = 0.5 ** (max(0.0, (now - vitals.last_hit).total_seconds()) / life.keep_half_life.total_seconds())
    return life.keep_confidence * vitals.confidence + life.keep_frequency * frequency + life.keep_recency * recency


def can_give_way(vitals: Vitals, life: Life, now: datetime) -> bool:
    """Whether a live memory may be evicted. Working memory is not: it leaves by itself."""
    return vitals.status in LIVE and vitals.tier != Tier.WORKING and not is_exempt(vitals, life, now)


def lowest(scored: Iterable[tuple[float, uuid.UUID]], excess: int) -> list[uuid.UUID]:
    """The `excess` memories with the lowest scores; of equal ones the older, whose id sorts first."""
    return [ident for _, ident in heapq.nsmallest(max(0, excess), scored)]
