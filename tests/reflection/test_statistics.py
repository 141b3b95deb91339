"""The arithmetic of the review, against published values and by its properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflection.review import statistics
from reflection.review.statistics import (
    acceptance,
    cohens_kappa,
    minutes_left,
    p_chart,
    weighted_share,
    wilson,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SHARES = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (27, 30, 0.74, 0.97),
        (45, 50, 0.79, 0.96),
        (90, 100, 0.83, 0.94),
        (0, 10, 0.0, 0.2775),  # Newcombe 1998, method 3
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
    ],
)
def test_wilson_gives_the_published_intervals(hits: int, n: int, low: float, high: float) -> None:
    digits = 2 if n in (30, 50, 100) else 4
    assert tuple(round(end, digits) for end in wilson(hits, n)) == (low, high)


def test_wilson_knows_nothing_without_judgements() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(SHARES)
def test_wilson_holds_the_share_and_stays_inside(counts: tuple[int, int]) -> None:
    hits, n = counts
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1


@given(SHARES)
def test_wilson_is_a_mirror(counts: tuple[int, int]) -> None:
    hits, n = counts
    low, high = wilson(hits, n)
    mirrored = wilson(n - hits, n)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-9)


@given(SHARES)
def test_more_judgements_of_the_same_share_narrow_it(counts: tuple[int, int]) -> None:
    hits, n = counts
    low, high = wilson(hits, n)
    wider = wilson(4 * hits, 4 * n)
    assert wider[1] - wider[0] < high - low


def test_an_edit_is_no_acceptance() -> None:
    rate = acceptance(approved=16, demoted=2, edited=2)
    assert rate is not None
    assert (rate.hits, rate.n, rate.share, rate.is_enough) == (16, 20, 0.8, True)


def test_nothing_judged_has_no_rate_and_a_few_are_too_few() -> None:
    assert acceptance(approved=0, demoted=0, edited=0) is None
    few = acceptance(approved=19, demoted=0, edited=0)
    assert few is not None
    assert not few.is_enough


def moments_of(spacings: list[float]) -> list[datetime]:
    """The moments of decisions that lie so many seconds apart."""
    moments = [NOON]
    for seconds in spacings:
        moments.append(moments[-1] + timedelta(seconds=seconds))
    return moments


def test_pace_is_the_median_without_pauses_beside_the_usual_one() -> None:
    """Four spacings of their own, 20, 30, 40 and 30 s, against ten of 25 s."""
    assert statistics.seconds_per_decision(moments_of([20, 30, 40, 3600, 30])) == (10 * 25 + 4 * 30) / 14


def test_pace_counts_the_last_fifty_only() -> None:
    pace = statistics.seconds_per_decision(moments_of([200] * 60 + [10] * 50))
    assert pace == (10 * 25 + 49 * 10) / 59


@given(st.lists(st.floats(10, 60), max_size=60), st.integers(1, 5))
def test_a_few_quick_clicks_do_not_throw_the_estimate_about(spacings: list[float], clicks: int) -> None:
    before = statistics.seconds_per_decision(moments_of(spacings))
    after = statistics.seconds_per_decision(moments_of([*spacings, *[0.3] * clicks]))
    assert after == pytest.approx(before, rel=0.6)
    assert statistics.seconds_per_decision(moments_of([0.3] * clicks)) > 0.7 * statistics.USUAL_SPACING


@given(st.lists(st.floats(0, 10_000), max_size=80))
def test_a_decision_takes_seconds_whatever_was_measured(spacings: list[float]) -> None:
    assert statistics.QUICKEST <= statistics.seconds_per_decision(moments_of(spacings)) <= statistics.SLOWEST


def test_a_newcomer_gets_the_usual_pace() -> None:
    assert minutes_left([], 40) == 17
    assert minutes_left([NOON], 1) == 1
    assert minutes_left([], 0) == 0


def test_p_chart_limits_follow_each_weeks_own_n() -> None:
    small, large = p_chart([(18, 20), (90, 100)])
    assert (small.share, large.share) == (0.9, 0.9)
    assert small.low == pytest.approx(0.9 - 3 * (0.09 / 20) ** 0.5)
    assert small.high == 1.0
    assert large.low == pytest.approx(0.81)
    assert not small.alert
    assert not large.alert


def test_p_chart_alerts_beyond_three_sigma() -> None:
    steady = [(90, 100)] * 8
    assert [point.alert for point in p_chart([*steady, (60, 100)])] == [False] * 8 + [True]


def test_p_chart_alerts_on_two_of_three_beyond_two_sigma() -> None:
    steady = [(90, 100)] * 20
    assert not p_chart([*steady, (82, 100)])[-1].alert
    assert p_chart([*steady, (82, 100), (90, 100), (82, 100)])[-1].alert
    assert not p_chart([*steady, (97, 100), (90, 100), (82, 100)])[-1].alert, "on opposite sides"


@given(st.lists(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=30))
def test_p_chart_of_anything(weeks: list[tuple[int, int]]) -> None:
    points = p_chart(weeks)
    assert len(points) == sum(n > 0 for _, n in weeks)
    assert all(0 <= point.low <= point.high <= 1 for point in points)


def test_kappa_of_cohens_own_kind_of_table() -> None:
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert cohens_kappa(pairs) == pytest.approx(0.4)


def test_kappa_is_undefined_without_pairs_or_choice() -> None:
    assert cohens_kappa([]) is None
    assert cohens_kappa([("yes", "yes")] * 5) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_lies_in_range_and_does_not_care_who_is_first(pairs: list[tuple[str, str]]) -> None:
    kappa = cohens_kappa(pairs)
    if kappa is not None:
        assert -1 <= kappa <= 1
        assert cohens_kappa([(b, a) for a, b in pairs]) == pytest.approx(kappa)


def test_an_item_stands_for_as_many_as_it_was_drawn_from() -> None:
    # 3 of 30 drawn, one bad; one flagged item picked by rule, bad: (20 + 0) / (30 + 1)
    judged = [(True, 0.1), (True, 0.1), (False, 0.1), (False, 1.0)]
    assert weighted_share(judged) == pytest.approx(20 / 31)
    assert weighted_share([]) is None


def test_an_impossible_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="inclusion probability"):
        weighted_share([(True, 0.0)])


@given(st.lists(st.booleans(), min_size=1), st.floats(0.01, 1))
def test_with_one_probability_it_is_the_plain_share(hits: list[bool], probability: float) -> None:
    assert weighted_share([(hit, probability) for hit in hits]) == pytest.approx(sum(hits) / len(hits))
