"""The rules of life as pure functions: each row of the table, and what holds for all numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.enums import FailureClass, Kind, Rule, Status, Tier
from memories.lifecycle import capacity, rules
from memories.lifecycle.rules import Vitals, decide, spared, weight_of
from memories.policy import LIFE, Life

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def ago(days: float) -> datetime:
    return NOW - days * DAY


def vitals(days: float = 0, **numbers) -> Vitals:
    given = {"tier": Tier.EPISODIC, "kind": Kind.TASK, "status": Status.ACTIVE, "created_at": ago(days)}
    return Vitals(**{**given, **numbers})


def applied(before: Vitals, life: Life = LIFE, now: datetime = NOW) -> Vitals:
    """The memory after a sweep."""
    decision = decide(before, life, now)
    if decision is None:
        return before
    after = replace(
        before, weight=decision.weight, fades=decision.fades, needs_review=before.needs_review or decision.flag
    )
    if decision.to == Status.ARCHIVED:
        after = replace(after, status=decision.to, archived_at=now, archived_by=decision.rule)
    return replace(after, status=decision.to) if decision.to else after


def outcome(before: Vitals, life: Life = LIFE) -> tuple[str, str, float]:
    decision = decide(before, life, NOW)
    after = applied(before, life)
    return (decision.rule.value if decision else "", after.status, round(after.weight, 3))


LESSON = {"kind": Kind.EXPERIENCE}
FACT = {"kind": Kind.FACT}
WORKING = {"tier": Tier.WORKING}
FAILING = {**LESSON, "reuse_count": 5, "reuse_success_count": 1}
CASES = {
    "an episode of 29 days stays": (vitals(29.9), ("", "active", 1)),
    "an episode of 30 days fades": (vitals(30), ("idle", "active", 0.5)),
    "an episode of 60 days is archived": (vitals(60), ("episode_idle", "archived", 1)),
    "a hit counts and not the age": (vitals(300, last_accessed_at=ago(3)), ("", "active", 1)),
    "a restore counts like a hit": (vitals(300, renewed_at=ago(3)), ("", "active", 1)),
    "a lesson of 60 days fades only": (vitals(60, **LESSON), ("idle", "active", 0.5)),
    "a lesson of 90 days is archived": (vitals(90, **LESSON), ("lesson_idle", "archived", 1)),
    "a fact of 60 days stays": (vitals(60, **FACT), ("", "active", 1)),
    "a fact of 90 days fades": (vitals(90, **FACT), ("idle", "active", 0.5)),
    "a fact of 180 days is archived": (vitals(180, **FACT), ("fact_idle", "archived", 1)),
    "a fact with three hits stays": (vitals(400, **FACT, access_count=3), ("", "active", 1)),
    "a fact with two hits goes": (vitals(400, **FACT, access_count=2), ("fact_idle", "archived", 1)),
    "a preference is like a fact": (vitals(90, kind=Kind.PREFERENCE), ("idle", "active", 0.5)),
    "semantic does not age": (vitals(3000, tier=Tier.SEMANTIC), ("", "active", 1)),
    "a semantic fact does not age": (vitals(3000, tier=Tier.SEMANTIC, **FACT), ("", "active", 1)),
    "a passing failure counts half": (
        vitals(1, failure_class=FailureClass.TRANSIENT), ("transient", "active", 0.5)),
    "a fresh one does not": (vitals(0.9, failure_class=FailureClass.TRANSIENT), ("", "active", 1)),
    "an idle passing failure counts a quarter": (
        vitals(30, failure_class=FailureClass.TRANSIENT), ("transient", "active", 0.25)),
    "five times unused": (vitals(1, **LESSON, unused_streak=5), ("unused", "active", 0.9)),
    "four times unused": (vitals(1, **LESSON, unused_streak=4), ("", "active", 1)),
    "twelve times unused": (vitals(1, **LESSON, unused_streak=12), ("unused", "active", 0.8)),
    "a fact has no streak": (vitals(1, **FACT, unused_streak=50), ("", "active", 1)),
    "a weight has a floor": (vitals(1, **LESSON, unused_streak=500), ("unused", "active", 0)),
    "one success in five is failing": (vitals(1, **FAILING), ("failing", "active", 0.5)),
    "semantic lessons fail too": (vitals(1, **FAILING, tier=Tier.SEMANTIC), ("failing", "active", 0.5)),
    "failing goes before low confidence": (vitals(1, **FAILING, confidence=0.2), ("failing", "active", 0.5)),
    "judged, confidence counts again": (
        vitals(1, **FAILING, confidence=0.2, judged_reuse_count=5), ("low_confidence", "archived", 1)),
    "two successes in five are not": (vitals(1, **{**FAILING, "reuse_success_count": 2}), ("", "active", 1)),
    "three in ten are not below": (
        vitals(1, **LESSON, reuse_count=10, reuse_success_count=3), ("", "active", 1)),
    "four uses are too few": (vitals(1, **LESSON, reuse_count=4), ("", "active", 1)),
    "a verdict starts anew": (
        vitals(1, **FAILING, judged_reuse_count=5, judged_reuse_success_count=1), ("", "active", 1)),
    "confidence too low": (vitals(0, confidence=0.29, tier=Tier.SEMANTIC), ("low_confidence", "archived", 1)),
    "confidence just enough": (vitals(0, confidence=0.3), ("", "active", 1)),
    "expired": (vitals(1, expires_at=NOW), ("expired", "archived", 1)),
    "no longer valid": (vitals(1, valid_until=ago(1), tier=Tier.SEMANTIC), ("expired", "archived", 1)),
    "working memory past its time": (vitals(0.1, **WORKING, expires_at=ago(0.01)), ("working_over", "forgotten", 1)),
    "working memory in its time": (vitals(0.1, **WORKING, expires_at=ago(-1)), ("", "active", 1)),
    "working memory without an end": (vitals(0.05, **WORKING), ("working_over", "forgotten", 1)),
    "pinned working memory": (vitals(1, **WORKING, pinned=True), ("", "active", 1)),
    "pinned": (vitals(900, pinned=True, confidence=0.1, expires_at=ago(5)), ("", "active", 1)),
    "pinned and failing: flagged, not faded": (vitals(1, **FAILING, pinned=True), ("failing", "active", 1)),
    "approved lately": (vitals(900, approved_at=ago(89)), ("", "active", 1)),
    "approved long ago": (vitals(900, approved_at=ago(90)), ("episode_idle", "archived", 1)),
    "approved and failing": (vitals(1, **FAILING, approved_at=ago(2)), ("failing", "active", 0.5)),
    "restored with little confidence": (vitals(9, confidence=0.1, restored_at=ago(9)), ("", "active", 1)),
    "candidates live by the same rules": (vitals(60, status=Status.CANDIDATE), ("episode_idle", "archived", 1)),
    "what a person demoted is left alone": (vitals(900, status=Status.DEMOTED), ("", "demoted", 1)),
    "quarantined is left alone": (vitals(900, status=Status.QUARANTINED, confidence=0.1), ("", "quarantined", 1)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_rule(case) -> None:
    before, expected = CASES[case]
    assert outcome(before) == expected


def archived(days: float, by: str = Rule.EPISODE_IDLE, **numbers) -> Vitals:
    return vitals(900, status=Status.ARCHIVED, archived_at=ago(days), archived_by=by, **numbers)


def test_only_an_idle_episode_is_deleted_and_only_after_half_a_year() -> None:
    assert decide(archived(180), LIFE, NOW).to == Status.FORGOTTEN
    assert decide(archived(179), LIFE, NOW) is None
    assert decide(archived(900, last_accessed_at=ago(20)), LIFE, NOW) is None
    assert decide(archived(900, pinned=True), LIFE, NOW) is None
    for other in ("", Rule.FULL, Rule.FACT_IDLE, Rule.LESSON_IDLE, Rule.EXPIRED, Rule.LOW_CONFIDENCE):
        assert decide(archived(900, by=other), LIFE, NOW) is None


def test_what_faded_is_lifted() -> None:
    faded = applied(vitals(40))
    hit = replace(faded, last_accessed_at=ago(0))
    assert decide(hit, LIFE, NOW).rule == Rule.LIFTED
    assert applied(hit).weight == 1
    unused = applied(vitals(1, **LESSON, unused_streak=10))
    assert applied(replace(unused, unused_streak=0)).weight == 1
    failing = applied(vitals(1, **FAILING))
    better = replace(failing, reuse_count=20, reuse_success_count=16)
    assert applied(better).weight == 0.5, "flagged until a person judged it"
    assert applied(replace(better, needs_review=False)).weight == 1


def test_a_reason_names_its_numbers() -> None:
    assert decide(vitals(45), LIFE, NOW).reason == "no hit for 45 days"
    assert decide(vitals(0, confidence=0.1), LIFE, NOW).reason == "confidence 0.10 is below 0.3"


def test_spared_tells_what_an_exemption_kept() -> None:
    assert spared(vitals(61, pinned=True), LIFE, NOW) == Rule.EPISODE_IDLE
    assert spared(vitals(5, pinned=True), LIFE, NOW) is None
    assert spared(vitals(61), LIFE, NOW) is None


moments = st.one_of(st.none(), st.floats(-50, 500).map(ago))
anything = st.builds(
    Vitals,
    tier=st.sampled_from(Tier.values), kind=st.sampled_from(Kind.values), status=st.sampled_from(Status.values),
    created_at=st.floats(0, 800).map(ago), failure_class=st.sampled_from(FailureClass.values),
    confidence=st.floats(0, 1), access_count=st.integers(0, 200), last_accessed_at=moments, renewed_at=moments,
    restored_at=moments, unused_streak=st.integers(0, 60), reuse_count=st.integers(0, 20),
    reuse_success_count=st.integers(0, 20), judged_reuse_count=st.integers(0, 20),
    judged_reuse_success_count=st.integers(0, 20), needs_review=st.booleans(), pinned=st.booleans(),
    approved_at=moments, expires_at=moments, valid_until=moments, archived_at=moments,
    archived_by=st.sampled_from(["", *Rule.values]),
)  # fmt: skip


@given(anything)
def test_applying_twice_changes_nothing(before: Vitals) -> None:
    assert decide(applied(before), LIFE, NOW) is None


@given(anything)
def test_what_is_exempt_stays(before: Vitals) -> None:
    exempt = before.pinned or (before.approved_at is not None and NOW - before.approved_at < timedelta(days=90))
    decision = decide(before, LIFE, NOW)
    if exempt:
        assert decision is None or not decision.to
        assert not capacity.can_give_way(before, LIFE, NOW)


@given(anything, st.floats(0, 1), st.integers(0, 50), st.floats(0, 100))
def test_stronger_never_fades_faster(weaker: Vitals, confidence: float, hits: int, days: float) -> None:
    stronger = replace(
        weaker,
        confidence=max(weaker.confidence, confidence),
        access_count=weaker.access_count + hits,
        last_accessed_at=min(NOW, weaker.last_hit + days * DAY) if weaker.last_hit <= NOW else weaker.last_accessed_at,
        unused_streak=weaker.unused_streak // 2,
        reuse_success_count=weaker.reuse_success_count + 3,
    )
    one, other = applied(weaker), applied(stronger)
    if one.status == weaker.status:
        assert other.status == weaker.status
        assert other.weight >= one.weight
    assert capacity.keeping_score(stronger, LIFE, NOW) >= capacity.keeping_score(weaker, LIFE, NOW) - 1e-12


@given(anything)
def test_weights_stay_in_range_and_follow_their_causes(before: Vitals) -> None:
    decision = decide(before, LIFE, NOW)
    if decision is not None and not decision.to:
        assert 0 <= decision.weight <= 1
        assert decision.weight == weight_of(decision.fades)
        assert set(decision.fades) <= {"transient", "idle", "unused", "failing"}


def test_keeping_score_is_the_formula() -> None:
    row = vitals(30, confidence=0.8, access_count=9)
    assert capacity.keeping_score(row, LIFE, NOW) == pytest.approx(0.4 * 0.8 + 0.3 * 0.49893 + 0.3 * 0.5, abs=1e-4)
    assert capacity.keeping_score(vitals(0, confidence=1, access_count=10**6), LIFE, NOW) == pytest.approx(1)


def test_the_lowest_give_way() -> None:
    assert capacity.lowest([(0.3, 1), (0.1, 2), (0.2, 3)], 2) == [2, 3]
    assert capacity.lowest([(0.3, 1)], -5) == []


def test_a_policy_moves_every_limit() -> None:
    patient = replace(LIFE, episodic_fade_after=100 * DAY, episodic_archive_after=200 * DAY, least_confidence=0)
    assert outcome(vitals(90, confidence=0.01), patient) == ("", "active", 1)
    assert rules.decide(vitals(100), patient, NOW).rule == Rule.IDLE
