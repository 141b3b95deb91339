"""Fusion, statistics and what is embedded: pure, so numbers in and numbers out."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.search import bm25
from memories.search.calibration import CALIBRATIONS, UNKNOWN, calibration_of
from memories.search.fusion import Background, Evidence, Fused, Place, background_of, fuse, nearness
from memories.search.passages import SHORT, date_words, passage_text, without_names
from memories.search.tokens import query_tokens

USE = CALIBRATIONS["use-multilingual-v3"]
BACKGROUND = Background(mean=0.1, spread=0.09, count=200)
IDS = [uuid.UUID(int=i) for i in range(1, 40)]


def fused(*evidence: Evidence, named: frozenset[str] = frozenset()) -> list[Fused]:
    return fuse(evidence, share=lambda matched: 0.0, named=named)


def near(cosine: float) -> float:
    return nearness(cosine, BACKGROUND)


def relevance(evidence: Evidence, **options) -> float:
    return fused(evidence, **options)[0].relevance


evidences = st.builds(
    Evidence,
    memory_id=st.sampled_from(IDS),
    near=st.none() | st.floats(-12, 12),
    coverage=st.floats(0, 0.65),
    matched=st.integers(0, 2**20),
    exact=st.sampled_from([0.0, 0.5, 1.0]),
    place=st.builds(
        Place,
        session_id=st.sampled_from(["a", "b"]),
        sequence=st.none() | st.integers(0, 9),
        actor=st.sampled_from(["", "Ann", "assistant"]),
        chars=st.integers(1, 9_000),
        asks=st.booleans(),
    ),
)


@given(st.lists(evidences, max_size=25, unique_by=lambda e: e.memory_id))
def test_every_candidate_comes_back_once_in_order_between_0_and_1(evidence: list[Evidence]) -> None:
    result = fused(*evidence)
    assert sorted(one.memory_id for one in result) == sorted(e.memory_id for e in evidence)
    assert all(0.0 <= one.relevance <= 1.0 for one in result)
    for better, worse in zip(result, result[1:], strict=False):
        if (better.exact > 0) == (worse.exact > 0):
            assert better.relevance >= worse.relevance
        else:
            assert better.exact > 0  # an exact identifier comes first whatever the rest says


@given(evidences, st.floats(0, 0.3))
def test_more_evidence_never_means_less_relevance(evidence: Evidence, more: float) -> None:
    better = replace(evidence, coverage=evidence.coverage + more, near=(evidence.near or -12.0) + 10 * more)
    assert relevance(better) >= relevance(evidence) - 1e-12


def test_the_best_of_a_bad_lot_stays_bad() -> None:
    lot = [Evidence(pk, near=near(0.12), coverage=0.0) for pk in IDS[:5]]
    assert fused(*lot)[0].relevance < USE.floor
    assert relevance(Evidence(IDS[0], near=near(0.55), coverage=0.5)) > 0.9


def test_relevance_does_not_depend_on_company() -> None:
    """Comparable between questions: a better neighbour in the list takes nothing away."""
    one = Evidence(IDS[0], near=near(0.4), coverage=0.3)
    alone = relevance(one)
    beside = {f.memory_id: f.relevance for f in fused(one, Evidence(IDS[1], near=near(0.9), coverage=0.6))}
    assert beside[IDS[0]] == pytest.approx(alone)


def test_either_search_alone_can_carry_a_memory() -> None:
    assert relevance(Evidence(IDS[0], near=near(0.6), coverage=0.0)) > USE.floor
    assert relevance(Evidence(IDS[0], near=None, coverage=0.5)) > USE.floor


def test_a_question_in_other_words_leans_on_the_vectors() -> None:
    chance = Evidence(IDS[0], near=near(0.15), coverage=0.1)  # one common word
    meant = Evidence(IDS[1], near=near(0.28), coverage=0.0)
    assert fused(chance, meant)[0].memory_id == IDS[1]
    clear = Evidence(IDS[2], near=near(0.15), coverage=0.5)
    assert fused(chance, meant, clear)[0].memory_id == IDS[2]


def test_an_exact_identifier_comes_first() -> None:
    best = Evidence(IDS[0], near=near(0.8), coverage=0.5)
    exact = Evidence(IDS[1], near=near(0.1), coverage=0.1, exact=1.0)
    assert fused(best, exact)[0].memory_id == IDS[1]


def test_a_turn_is_helped_by_its_neighbours_in_the_same_session_only() -> None:
    def turn(pk: uuid.UUID, session: str, sequence: int, coverage: float) -> Evidence:
        return Evidence(pk, near=near(0.2), coverage=coverage, place=Place(session, sequence))

    asked = turn(IDS[0], "a", 4, 0.5)
    answer, far, stranger = turn(IDS[1], "a", 5, 0.0), turn(IDS[2], "a", 9, 0.0), turn(IDS[3], "b", 5, 0.0)
    by_id = {f.memory_id: f.relevance for f in fused(asked, answer, far, stranger)}
    assert by_id[IDS[1]] > by_id[IDS[2]] > by_id[IDS[3]]


def test_the_speaker_the_question_names_is_preferred() -> None:
    place = Place("a", 1, actor="Ann")
    said = Evidence(IDS[0], near=near(0.3), coverage=0.2, place=place)
    heard = Evidence(IDS[1], near=near(0.3), coverage=0.2, place=replace(place, actor="Bo", sequence=5))
    assert fused(said, heard, named=frozenset({"Ann"}))[0].memory_id == IDS[0]
    both = {f.memory_id: f.relevance for f in fused(said, heard, named=frozenset({"Ann", "Bo"}))}
    assert both[IDS[0]] == pytest.approx(both[IDS[1]])


def test_without_a_sample_the_background_is_what_is_known_of_the_model() -> None:
    assert background_of([], USE).mean == USE.background
    many = background_of([0.3] * 1_000, USE)
    assert many.mean == pytest.approx(0.3, abs=0.01)
    assert many.spread == USE.spread


def test_the_spread_of_an_unknown_model_is_measured() -> None:
    narrow = background_of([0.80, 0.82, 0.78, 0.81, 0.79] * 40, UNKNOWN)
    assert narrow.spread < 0.04
    assert calibration_of("never-heard-of@768") is UNKNOWN
    assert calibration_of("use-multilingual-v3@9.9") is USE


def test_coverage_is_a_share_of_what_the_question_could_reach() -> None:
    query = query_tokens("purple giraffe invoices")
    stats = bm25.statistics(query, [1] * len(query.terms), memories=100, mean_length=20.0)
    everything = (1 << len(query.terms)) - 1
    assert stats.share(everything) == pytest.approx(1.0)
    assert 0 < stats.coverage(1, 20) < stats.coverage(everything, 20) < 1
    assert stats.coverage(everything, 10) > stats.coverage(everything, 40)


def test_rare_words_weigh_more_and_unknown_ones_keep_coverage_low() -> None:
    query = query_tokens("purple giraffe")
    kinds = [term.lexeme for term in query.terms]
    counts = [50 if lexeme.startswith("purpl") else 1 for lexeme in kinds]
    stats = bm25.statistics(query, counts, memories=100, mean_length=20.0)
    common = sum(1 << i for i, lexeme in enumerate(kinds) if lexeme.startswith("purpl"))
    assert stats.share(common) < 0.3


def test_the_identifier_share_counts_identifiers_only() -> None:
    query = query_tokens("timeout ERR_4031 in billing/views.py")
    stats = bm25.statistics(query, [1] * len(query.terms), memories=50, mean_length=10.0)
    bit = {term.lexeme: 1 << i for i, term in enumerate(query.terms)}
    assert stats.identifier_share(bit["timeout"]) == 0.0
    assert stats.identifier_share(bit["err_4031"]) == pytest.approx(0.5)
    assert stats.identifier_share(bit["err_4031"] | bit["billing/views.py"]) == pytest.approx(1.0)


def test_a_short_turn_is_embedded_with_the_one_before() -> None:
    assert passage_text("Yes!", "Did you book the flight?") == "Did you book the flight?\nYes!"
    assert passage_text("Yes!", "x" * (SHORT + 1)) == "Yes!"
    assert passage_text("y" * (SHORT + 1), "Well?") == "y" * (SHORT + 1)


def test_a_day_has_words() -> None:
    assert date_words(datetime(2023, 5, 8, tzinfo=UTC)) == "2023-05-08 2023 May 8 Monday"
    assert date_words(None) == ""


@pytest.mark.parametrize(
    ("question", "text", "names"),
    [
        ("What did Ann's sister give Bo?", "What did sister give ?", {"Ann", "Bo"}),
        ("What did Annabel say?", "What did Annabel say?", set()),
        ("What did the user ask?", "What did the user ask?", set()),
        ("Ann?", "Ann?", {"Ann"}),
        ("张曼婷喜欢什么？", "喜欢什么？", {"张曼婷"}),
    ],
)
def test_names_of_speakers_are_taken_out(question: str, text: str, names: set[str]) -> None:
    found = without_names(question, ["Ann", "Bo", "user", "张曼婷"])
    assert (found.text, found.names) == (text, frozenset(names))
