"""Vector search on the real table, and both searches together."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hindsight_site.accounts.models import Team
from memories.embeddings import get_embedder
from memories.enums import Kind, Status
from memories.models import MemoryVector, Scope
from memories.search import background, candidates, vectors
from memories.search.narrowing import Narrowing
from memories.search.passages import passage_text
from tests.memories.search_rows import MODEL, scope_of, store, store_vectors

ACTIVE = [str(Status.ACTIVE)]
RANDOM = np.random.default_rng(7)


def unit(n: int, dimensions: int = 32) -> np.ndarray:
    rows = RANDOM.normal(size=(n, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def scope(team: Team) -> Scope:
    return scope_of(team)


def nearest(scope: Scope, embedding: np.ndarray, **options: Any) -> list[vectors.VectorHit]:
    given = {"scope_ids": [scope.pk], "statuses": ACTIVE, "model_id": MODEL, "limit": 10, **options}
    return vectors.nearest(team_id=scope.team_id, embedding=embedding, **given)


def test_the_search_is_exact(scope: Scope) -> None:
    rows = unit(80)
    ids = store(scope, [f"memory {i}" for i in range(80)])
    store_vectors(scope, ids, rows)
    question = unit(1)[0]
    hits = nearest(scope, question)
    expected = np.argsort(-(rows @ question))[:10]
    assert [hit.memory_id for hit in hits] == [ids[i] for i in expected]
    assert [hit.cosine for hit in hits] == pytest.approx((rows @ question)[expected].tolist(), abs=2e-3)


def test_other_teams_scopes_statuses_and_models_stay_out(scope: Scope, other_team: Team) -> None:
    row = unit(1)
    elsewhere = scope_of(other_team)
    store_vectors(elsewhere, store(elsewhere, ["theirs"]), row)
    private = scope_of(scope.team, "private")
    store_vectors(private, store(private, ["private"]), row)
    store_vectors(scope, store(scope, ["demoted"], status=Status.DEMOTED), row, status=Status.DEMOTED)
    mine = store(scope, ["mine", "by another model"])
    store_vectors(scope, mine[:1], row)
    vectors.upsert(team_id=scope.team_id, model_id="other@1", rows=[(mine[1], scope.pk, Status.ACTIVE, unit(1, 8)[0])])
    assert [hit.memory_id for hit in nearest(scope, row[0])] == mine[:1]
    assert [hit.memory_id for hit in nearest(scope, row[0], scope_ids=[scope.pk, elsewhere.pk])] == mine[:1]


def test_a_filter_comes_before_the_limit(scope: Scope) -> None:
    near = np.repeat(unit(1), 30, axis=0)
    store_vectors(scope, store(scope, ["fact"] * 30), near)
    lesson = store(scope, ["lesson"], kind=Kind.EXPERIENCE)
    store_vectors(scope, lesson, -near[:1])
    where = Narrowing(now=timezone.now(), kinds=[Kind.EXPERIENCE])
    assert [hit.memory_id for hit in nearest(scope, near[0], limit=2, where=where)] == lesson


def test_writing_again_replaces_and_deleting_removes(scope: Scope) -> None:
    ids = store(scope, ["one", "two"])
    rows = unit(2)
    store_vectors(scope, ids, rows)
    store_vectors(scope, ids[:1], -rows[:1])
    assert MemoryVector.objects.filter(memory_id__in=ids).count() == 2
    assert nearest(scope, rows[0], limit=1)[0].memory_id != ids[0]
    vectors.delete(team_id=scope.team_id, memory_ids=ids[:1], model_id="other@1")
    assert len(nearest(scope, rows[0])) == 2
    vectors.delete(team_id=scope.team_id, memory_ids=ids[:1])
    assert [hit.memory_id for hit in nearest(scope, rows[0])] == ids[1:]


@given(arrays.arrays(np.float16, (3, 5), elements=st.floats(-100, 100, width=16)))
def test_what_is_read_is_what_was_sent(rows: np.ndarray) -> None:
    pk = uuid.UUID(int=1)
    parts = list(vectors._binary(pk, MODEL, [(pk, pk, "active", row) for row in rows]))
    raws = [part[-(4 + 2 * 5) :] for part in parts[1:-1]]
    assert np.array_equal(vectors.decode(raws), rows.astype(np.float32))
    assert vectors.decode([]).shape == (0, 0)


def test_a_sample_is_stable_and_names_the_speakers(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SAMPLE", 5)
    ids = store(scope, [f"turn {i}" for i in range(20)], actor="Ann")
    store_vectors(scope, ids, unit(20))
    first = background.sample(scope.team_id, [scope.pk], MODEL)
    assert first.vectors.shape == (5, 32)
    assert first.actors == {"Ann"}
    background._samples.put((scope.team_id, (scope.pk,), MODEL), first)
    assert background.sample(scope.team_id, [scope.pk], MODEL) is first
    assert background.sample(scope.team_id, [scope.pk], "other@1").vectors.shape == (0, 0)


# --- Both searches on one question ------------------------------------------------------------------


def talk(scope: Scope, turns: list[tuple[str, str]]) -> list[uuid.UUID]:
    """A conversation as memories, embedded the way turns are."""
    ids: list[uuid.UUID] = []
    for sequence, (actor, content) in enumerate(turns):
        ids += store(scope, [content], actor=actor, session_id="monday", sequence=sequence)
    texts = [passage_text(content, turns[i - 1][1] if i else "") for i, (_, content) in enumerate(turns)]
    embedder = get_embedder()
    rows = [
        (pk, scope.pk, Status.ACTIVE, vector) for pk, vector in zip(ids, embedder.embed(texts, "passage"), strict=True)
    ]
    vectors.upsert(team_id=scope.team_id, model_id=embedder.model_id, rows=rows)
    return ids


def ask(scope: Scope, text: str, *, with_vectors: bool = True) -> candidates.Found:
    return candidates.find(
        team=scope.team,
        scope_ids=[scope.pk],
        text=text,
        statuses=ACTIVE,
        only={"now": timezone.now()},
        with_vectors=with_vectors,
    )


TURNS = [
    ("Ann", "Hi Bo! How was the trip?"),
    ("Bo", "Wonderful, we hiked along the coast for three days."),
    ("Ann", "Which boots did you take along?"),
    ("Bo", "The old brown leather ones."),
    ("Ann", "I bought a violin yesterday, by the way."),
    ("Bo", "Since when do you play music?"),
    ("Ann", "The error ERR_CONN_4031 came back at work, so I needed something to calm down."),
]


def test_a_question_finds_the_turn_that_answers_it(scope: Scope) -> None:
    ids = talk(scope, TURNS)
    assert ask(scope, "What did Ann buy yesterday?").fused[0].memory_id == ids[4]
    # The answer holds no word of the question, but the turn before it does.
    assert ids[3] in [hit.memory_id for hit in ask(scope, "Which boots did Bo wear?").fused[:2]]


def test_an_exact_identifier_comes_first_in_the_whole(scope: Scope) -> None:
    ids = talk(scope, TURNS)
    first = ask(scope, "Was it at work that she saw ERR_CONN_4031, or on the trip along the coast?").fused[0]
    assert (first.memory_id, first.exact) == (ids[6], 1.0)


def test_what_nobody_spoke_of_stays_below_the_floor(scope: Scope) -> None:
    talk(scope, TURNS)
    best = ask(scope, "quarterly tax rates for imported steel").fused
    assert not best or best[0].relevance < candidates.floor(by_keywords_alone=False)


def test_words_alone_still_answer(scope: Scope) -> None:
    ids = talk(scope, TURNS)
    found = ask(scope, "violin", with_vectors=False)
    assert found.fused[0].memory_id == ids[4]
    assert found.fused[0].vector == 0.0
    assert found.fused[0].relevance > candidates.floor(by_keywords_alone=True)


def test_neighbours_keep_to_scope_and_narrowing(scope: Scope) -> None:
    ids = talk(scope, TURNS)
    elsewhere = scope_of(scope.team, "elsewhere")
    (foreign,) = store(elsewhere, ["a violin of another scope"], session_id="monday", sequence=5)
    (working,) = store(scope, ["violin notes"], session_id="monday", sequence=7, tier="working")
    seen = {hit.memory_id for hit in ask(scope, "violin").fused}
    assert ids[5] in seen
    assert not seen & {foreign, working}


def test_found_vectors_belong_to_the_candidates(scope: Scope) -> None:
    talk(scope, TURNS)
    found = ask(scope, "violin")
    assert set(found.vectors) == {hit.memory_id for hit in found.fused}
    assert all(np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-2) for vector in found.vectors.values())


def test_nowhere_to_look_finds_nothing(scope: Scope) -> None:
    none = candidates.find(team=scope.team, scope_ids=[], text="x", statuses=ACTIVE, only={"now": timezone.now()})
    assert none.fused == []
