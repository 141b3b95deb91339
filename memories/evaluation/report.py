"""Figures of a run as rows of a table, beside what must hold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .datasets import Asked
from .metrics import (
    all_at,
    any_at,
    auroc,
    mean,
    no_match,
    recall_at,
    reciprocal_rank,
    session_chances,
    session_ranking,
)
from .runs import Ranked, Run


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number; `must` and `aim` are None where nothing was agreed. `at_most`: small is good."""

    measure: str
    value: float | None
    n: int
    must: float | None = None
    aim: float | None = None
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the number is what it must be; None where nothing was agreed or measured."""
        if self.must is None or self.value is None:
            return None
        return self.value <= self.must if self.at_most else self.value >= self.must


#: (set, measure) → (must, aim).
AGREED = {
    ("locomo", "recall@10"): (0.78, 0.85),
    ("locomo", "any@5"): (0.77, 0.85),
    ("locomo", "MRR"): (0.60, 0.70),
    ("locomo", "session any@5"): (0.95, 0.98),
    ("locomo", "session MRR"): (0.84, 0.90),
    ("longmemeval", "session all@5"): (0.84, 0.92),
    ("beam", "recall@10"): (0.52, 0.62),
    ("memorybank_zh", "any@1"): (0.66, 0.76),
    ("memorybank_zh", "any@5"): (0.93, 0.97),
    ("paraphrases_zh", "any@1"): (0.48, 0.65),
    ("paraphrases_zh", "any@5"): (0.74, 0.90),
    ("identifiers", "any@1"): (0.99, 1.0),
}


def figures(name: str, run: Run, floor: float) -> list[Figure]:
    """Return everything that a run says about a set. `floor` is the default relevance floor."""
    rows = [*_ranking(run.ranked), *_sessions(run.ranked), *_ablation(run.ranked), *_abstention(run, floor)]
    times = sorted(answer.milliseconds for answer in run.ranked)
    if times:
        rows.append(("recall p50, ms", times[len(times) // 2], len(times)))
    rows.append(("written, memories/s", run.memories / run.writing_seconds, run.memories))
    return [Figure(measure, value, n, *AGREED.get((name, measure), (None, None))) for measure, value, n in rows]


_Row = tuple[str, float | None, int]


def _ranking(ranked: Sequence[Ranked]) -> list[_Row]:
    judged = [answer for answer in ranked if answer.asked.gold]
    if not judged:
        return []
    metrics: dict[str, Callable[[Ranked], float]] = {
        "recall@10": lambda a: recall_at(a.keys, a.asked.gold, 10),
        "any@1": lambda a: any_at(a.keys, a.asked.gold, 1),
        "any@5": lambda a: any_at(a.keys, a.asked.gold, 5),
        "MRR": lambda a: reciprocal_rank(a.keys, a.asked.gold),
    }
    return [(measure, mean(map(score, judged)), len(judged)) for measure, score in metrics.items()]


def _sessions(ranked: Sequence[Ranked]) -> list[_Row]:
    """any@5 and MRR over sessions by their best turn and their words, all@5 over sessions by all their turns."""
    judged = [answer for answer in ranked if answer.asked.gold_sessions]
    if not judged:
        return []
    by_best = [(session_ranking(answer.sessions, answer.covered), _gold(answer.asked)) for answer in judged]
    by_all = [(session_chances(answer.sessions), _gold(answer.asked)) for answer in judged]
    return [
        ("session any@5", mean(any_at(ranking, gold, 5) for ranking, gold in by_best), len(judged)),
        ("session MRR", mean(reciprocal_rank(ranking, gold) for ranking, gold in by_best), len(judged)),
        ("session all@5", mean(all_at(ranking, gold, 5) for ranking, gold in by_all), len(judged)),
    ]


def _gold(asked: Asked) -> frozenset[str]:
    return asked.gold_sessions


def _ablation(ranked: Sequence[Ranked]) -> list[_Row]:
    judged = [answer for answer in ranked if answer.asked.gold]
    if not judged:
        return []
    return [
        (
            "recall@10, keywords alone",
            mean(recall_at(a.by_keywords, a.asked.gold, 10) for a in judged),
            len(judged),
        ),
        (
            "recall@10, vectors alone",
            mean(recall_at(a.by_vectors, a.asked.gold, 10) for a in judged),
            len(judged),
        ),
    ]


def _abstention(run: Run, floor: float) -> list[_Row]:
    answerable = [answer.best for answer in run.ranked if answer.asked.answerable]
    unanswerable = [answer.best for answer in run.ranked if not answer.asked.answerable]
    rows: list[_Row] = []
    if run.wrong_scope:
        told = no_match(answerable, run.wrong_scope, floor)
        n = len(run.wrong_scope)
        rows += [
            ("wrong scope AUROC", auroc(answerable, run.wrong_scope), n),
            ("wrong scope no_match precision", told.precision, n),
            ("wrong scope no_match recall", told.recall, n),
        ]
    if unanswerable:
        n = len(unanswerable)
        rows += [
            ("unanswerable AUROC", auroc(answerable, unanswerable), n),
            ("unanswerable no_match recall", no_match(answerable, unanswerable, floor).recall, n),
        ]
    if answerable:
        rows.append(("answerable lost to the floor", mean(float(b < floor) for b in answerable), len(answerable)))
    return rows
