"""The arithmetic of the review against statsmodels, which others wrote and check."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa as reference_kappa
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from reflection.review.statistics import cohens_kappa, p_chart, weighted_estimate, weighted_share, wilson

LABELS = ("approve", "demote", "edit")
COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))  # hits, n


@settings(deadline=None)
@given(COUNTS)
def test_wilson(counts: tuple[int, int]) -> None:
    hits, n = counts
    assert wilson(hits, n) == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=2, max_size=60))
def test_cohens_kappa(pairs: list[tuple[str, str]]) -> None:
    ours = cohens_kappa(pairs)
    if ours is None:
        return
    counted = Counter(pairs)
    table = np.array([[counted[a, b] for b in LABELS] for a in LABELS])
    assert ours == pytest.approx(reference_kappa(table, return_results=False), abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 1)), min_size=1, max_size=60))
def test_the_weighted_share_and_its_interval(judged: list[tuple[bool, float]]) -> None:
    weighed = DescrStatsW([float(hit) for hit, _ in judged], weights=[1 / chance for _, chance in judged])
    assert weighted_share(judged) == pytest.approx(float(weighed.mean))
    found = weighted_estimate(judged)
    assert found is not None
    weights = np.array([1 / chance for _, chance in judged])
    effective = weights.sum() ** 2 / (weights**2).sum()
    low, high = proportion_confint(float(weighed.mean) * effective, effective, method="wilson")
    assert (found.low, found.high) == pytest.approx((max(0, low), min(1, high)), abs=1e-6)
    assert found.low <= found.share <= found.high


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=20)
)
def test_the_limits_of_the_p_chart(weeks: list[tuple[int, int]]) -> None:
    centre = float(DescrStatsW([h / n for h, n in weeks], weights=[n for _, n in weeks]).mean)
    for point, (_, n) in zip(p_chart(weeks), weeks, strict=True):
        sigma = (max(0.0, centre * (1 - centre)) / n) ** 0.5
        assert point.low == pytest.approx(max(0.0, centre - 3 * sigma), abs=1e-6)
        assert point.high == pytest.approx(min(1.0, centre + 3 * sigma), abs=1e-6)
