"""Rankings against gold. Pure.

any@k: some gold item among the first k. all@k: every one. recall@k: the share of them. MRR: one over the
rank of the first. AUROC: how often an answerable question's best relevance lies above that of an
unanswerable one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memories.search.fusion import SLOPE

SESSION_COVERED = 0.3  # beyond what fusion gives each turn of the session


def any_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 when a gold item is among the first k, else 0.0."""
    return float(any(key in gold for key in ranked[:k]))


def all_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 when every gold item is among the first k, else 0.0."""
    return float(set(gold) <= set(ranked[:k]))


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """The share of gold items among the first k."""
    return len(set(gold) & set(ranked[:k])) / len(gold)


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """One over the rank of the first gold item, 0.0 when there is none."""
    return next((1 / rank for rank, key in enumerate(ranked, start=1) if key in gold), 0.0)


def mean(values: Iterable[float]) -> float | None:
    """The mean, or None of nothing."""
    held = list(values)
    return sum(held) / len(held) if held else None


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The chance that a random positive lies above a random negative, ties counting half; None of nothing."""
    if not positive or not negative:
        return None
    above = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return above / (len(positive) * len(negative))


@dataclass(frozen=True, slots=True)
class NoMatch:
    """How well `no_match` tells questions without an answer: precision, recall, answerable ones lost."""

    precision: float | None
    recall: float | None
    lost: float | None


def no_match(answerable: Sequence[float], unanswerable: Sequence[float], floor: float) -> NoMatch:
    """Score a floor under the best relevance. Both kinds weigh the same, however many there are of each."""
    lost = mean(float(best < floor) for best in answerable)
    rejected = mean(float(best < floor) for best in unanswerable)
    if lost is None or rejected is None:
        return NoMatch(None, rejected, lost)
    return NoMatch(rejected / (rejected + lost) if rejected + lost else None, rejected, lost)


def session_ranking(hits: Sequence[tuple[str, float]], covered: Mapping[str, float] | None = None) -> list[str]:
    """Sessions by their best hit, from (session, relevance) of the ranked hits, and by the words they cover.

    `covered` is the share of the question that each session covers as a whole. For turns it counts less: a
    session that speaks of everything asked need not hold the one turn that answers.
    """
    best: dict[str, float] = {}
    for session, relevance in hits:
        kept = min(max(relevance, 1e-6), 1 - 1e-6)
        evidence = math.log(kept / (1 - kept)) / SLOPE + SESSION_COVERED * (covered or {}).get(session, 0.0)
        best[session] = max(evidence, best.get(session, evidence))
    return sorted(best, key=lambda session: -best[session])


def session_chances(hits: Sequence[tuple[str, float]]) -> list[str]:
    """Sessions by the chance that any of their hits is relevant: 1 − Π(1 − relevance)."""
    none: dict[str, float] = {}
    for session, relevance in hits:
        none[session] = none.get(session, 0.0) + math.log(max(1.0 - relevance, 1e-9))
    return sorted(none, key=lambda session: none[session])
