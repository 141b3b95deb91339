"""The arithmetic of the review. Pure: counts in, numbers out.

Only verdicts on the random stratum go into an acceptance rate; callers see to that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

Z95 = 1.959964  # the 97.5 % point of the normal distribution
FEWEST = 20  # below this a share says too little to be shown as a result
USUAL_SPACING = 25.0  # seconds a decision takes, until somebody's own pace is known
BREAK = timedelta(minutes=5)  # a longer pause is a pause, not a decision
USUAL_WEIGHT = 10  # how many decisions of their own weigh as much as the usual pace
QUICKEST, SLOWEST = 5.0, 120.0  # seconds: a double click and a conversation say nothing about the pace
PACE_WINDOW = 50  # how many past decisions tell the pace


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % interval, all in 0..1. `n` judgements, `hits` of them in favour."""

    hits: int
    n: int
    share: float
    low: float
    high: float

    @property
    def is_enough(self) -> bool:
        """Whether there are enough judgements to read it as a result."""
        return self.n >= FEWEST


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of `hits` out of `n`; (0, 1) when n is 0.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927) 209-212: centre (p + z²/2n) / (1 + z²/n),
    half-width z·sqrt(p(1−p)/n + z²/4n²) / (1 + z²/n).
    """
    return wilson_of(hits / n, n, z) if n else (0.0, 1.0)


def wilson_of(p: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson interval of the share `p` seen in `n` > 0 judgements, which need not be a whole number."""
    square = z * z
    scale = 1 + square / n
    centre = (p + square / (2 * n)) / scale
    half = z * math.sqrt(max(0.0, p * (1 - p)) / n + square / (4 * n * n)) / scale
    # At 0 and 1 one end is exact; rounding must not push it past.
    low = 0.0 if p <= 0 else max(0.0, centre - half)
    high = 1.0 if p >= 1 else min(1.0, centre + half)
    return low, high


def share(hits: int, n: int) -> Share | None:
    """Return hits/n with its Wilson interval, or None when nothing was judged."""
    if n == 0:
        return None
    low, high = wilson(hits, n)
    return Share(hits=hits, n=n, share=hits / n, low=low, high=high)


def acceptance(*, approved: int, demoted: int, edited: int) -> Share | None:
    """The acceptance rate: approved / (approved + demoted + edited).

    An edited memory is not an acceptance. Skipped, sensitive and void items are reported apart.
    """
    return share(approved, approved + demoted + edited)


def seconds_per_decision(moments: Sequence[datetime]) -> float:
    """Return how long a decision takes somebody, in seconds, from when they gave their last 50.

    The median spacing, with pauses over five minutes left out and each spacing held within 5 to 120 s; it is
    weighed against ten usual decisions of 25 s, so that a few quick clicks do not throw the estimate about.
    """
    recent = sorted(moments)[-PACE_WINDOW:]
    spacings = [later - earlier for earlier, later in zip(recent, recent[1:], strict=False)]
    working = [spacing.total_seconds() for spacing in spacings if spacing <= BREAK]
    if not working:
        return USUAL_SPACING
    own = median(min(max(one, QUICKEST), SLOWEST) for one in working)
    return (USUAL_WEIGHT * USUAL_SPACING + len(working) * own) / (USUAL_WEIGHT + len(working))


def minutes_left(moments: Sequence[datetime], remaining: int) -> int:
    """Return how many whole minutes `remaining` decisions will take at this pace; 0 only when none remain."""
    if remaining <= 0:
        return 0
    return max(1, math.ceil(seconds_per_decision(moments) * remaining / 60))


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One week on a p-chart: its share, the limits for its own n, and whether it is out of control."""

    share: float
    n: int
    low: float  # 3-sigma limits, cut at 0 and 1
    high: float
    alert: bool


def p_chart(weeks: Sequence[tuple[int, int]]) -> list[ChartPoint]:
    """Return the p-chart of (hits, n) per week, oldest first. Weeks without judgements are left out.

    Centre p̄ = Σhits/Σn, limits p̄ ± 3·sqrt(p̄(1−p̄)/n) (W. A. Shewhart 1931; NIST/SEMATECH e-Handbook
    6.3.3.2). A week alerts outside 3 sigma, or when it and one of the two before it lie outside
    2 sigma on the same side (Western Electric rules 1 and 2, 1956).
    """
    judged = [(hits, n) for hits, n in weeks if n > 0]
    if not judged:
        return []
    centre = sum(hits for hits, _ in judged) / sum(n for _, n in judged)
    sigmas = [math.sqrt(centre * (1 - centre) / n) for _, n in judged]
    deviations = [
        (hits / n - centre) / sigma if sigma else 0.0 for (hits, n), sigma in zip(judged, sigmas, strict=True)
    ]
    return [
        ChartPoint(
            share=hits / n,
            n=n,
            low=max(0.0, centre - 3 * sigma),
            high=min(1.0, centre + 3 * sigma),
            alert=_is_alarming(deviations[max(0, at - 2) : at + 1]),
        )
        for at, ((hits, n), sigma) in enumerate(zip(judged, sigmas, strict=True))
    ]


def _is_alarming(last_three: Sequence[float]) -> bool:
    """Judge the newest of up to three deviations, in sigmas."""
    newest = last_three[-1]
    if abs(newest) > 3:
        return True
    same_side = [deviation for deviation in last_three if abs(deviation) > 2 and deviation * newest > 0]
    return abs(newest) > 2 and len(same_side) >= 2


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of two raters' labels, in −1..1; None when it is not defined.

    J. Cohen, "A coefficient of agreement for nominal scales", Educ. Psychol. Meas. 20 (1960) 37-46:
    κ = (p_o − p_e) / (1 − p_e). Undefined without pairs, and when both raters only ever used one
    and the same label (p_e = 1).
    """
    if not pairs:
        return None
    n = len(pairs)
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    observed = sum(a == b for a, b in pairs) / n
    labels = set(first) | set(second)
    expected = sum(first.count(label) * second.count(label) for label in labels) / (n * n)
    return None if expected == 1 else (observed - expected) / (1 - expected)


def weighted_share(judged: Sequence[tuple[bool, float]]) -> float | None:
    """Estimate the share in the whole population from (in favour, inclusion probability) pairs.

    The Hájek ratio estimator Σ(y/π) / Σ(1/π) (J. Hájek 1971, after Horvitz & Thompson, JASA 47 (1952)
    663-685): an item that was drawn with probability π stands for 1/π memories. Items picked by rule
    have π = 1 and stand for themselves.
    """
    if any(not 0 < probability <= 1 for _, probability in judged):
        raise ValueError("an inclusion probability must lie in (0, 1]")
    total = sum(1 / probability for _, probability in judged)
    return sum(1 / probability for hit, probability in judged if hit) / total if judged else None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A weighted share of the whole population with its 95 % interval, all in 0..1, from `n` judgements."""

    share: float
    low: float
    high: float
    n: int

    @property
    def is_enough(self) -> bool:
        """Whether there are enough judgements to read it as a result."""
        return self.n >= FEWEST


def weighted_estimate(judged: Sequence[tuple[bool, float]], z: float = Z95) -> Estimate | None:
    """Return `weighted_share` with its interval; None without judgements.

    The interval is Wilson's at Kish's effective sample size (Σw)²/Σw² (L. Kish, "Survey Sampling", 1965), so that
    it stays inside 0..1 and is honest when few memories stand for many.
    """
    mean = weighted_share(judged)
    if mean is None:
        return None
    weights = [1 / probability for _, probability in judged]
    effective = sum(weights) ** 2 / sum(weight * weight for weight in weights)
    low, high = wilson_of(mean, effective, z)
    return Estimate(mean, low, high, len(judged))
