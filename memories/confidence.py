"""Confidence as the mean of a Beta distribution. Pure.

A first estimate `c` counts as `strength` observations: alpha = strength·c, beta = strength·(1 − c).
Each success, confirmation or approval adds one to alpha, each failure or demotion one to beta; the
confidence is alpha / (alpha + beta).
Feedback alone lifts it to the cap of the memory's trust and no further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from memories.policy import LIFE, Life


@dataclass(frozen=True, slots=True)
class Belief:
    """Both counts of the Beta distribution."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """alpha / (alpha + beta), in 0..1."""
        return self.alpha / (self.alpha + self.beta)

    def observe(self, *, success: bool, times: float = 1.0) -> Belief:
        """Return the belief after `times` more observations."""
        return Belief(self.alpha + times * success, self.beta + times * (not success))

    def room(self, cap: float) -> float:
        """Return how many successes more may be added before the mean goes above `cap` (0..1)."""
        return max(0.0, cap * self.beta / (1.0 - cap) - self.alpha) if cap < 1.0 else math.inf


def prior(estimate: float, trust: str, life: Life = LIFE) -> Belief:
    """Return the first belief. The estimate is cut at the cap of its trust level."""
    capped = min(max(estimate, 0.0), life.confidence_cap[trust])
    return Belief(life.prior_strength * capped, life.prior_strength * (1.0 - capped))
