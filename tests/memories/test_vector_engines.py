"""What every engine has to keep: the same tests over all that run here as real programs."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.tenancy import enter_team
from memories import scopes
from memories.search.engines import Engine, EngineError, Point, pgvector
from memories.search.engines.base import collection_of, model_of
from tests.memories import vector_engines
from tests.memories.vector_engines import Running

MODEL, OTHER_MODEL = "small@16", "use-multilingual/3@32"
DIMENSIONS = {MODEL: 16, OTHER_MODEL: 32}
# Of drivers, at their import and at the end of a process; none of them is ours.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Place:
    """Teams with scopes; for pgvector real ones, whose rows the database checks."""

    def __init__(self, engine: Engine, team_id: uuid.UUID, other_id: uuid.UUID, scope_id: uuid.UUID) -> None:
        self.engine, self.team_id, self.other_id = engine, team_id, other_id
        self.scope_id, self.elsewhere = scope_id, new_id()
        self.random = np.random.default_rng(7)

    def points(self, count: int, *, model: str = MODEL, scope: uuid.UUID | None = None, status="active") -> list[Point]:
        vectors = self.random.standard_normal((count, DIMENSIONS[model])).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [Point(new_id(), scope or self.scope_id, status, uuid.uuid4().hex, vector) for vector in vectors]

    def write(self, points: list[Point], *, team: uuid.UUID | None = None, model: str = MODEL) -> list[Point]:
        self.engine.upsert(team_id=team or self.team_id, model_id=model, points=points)
        return points

    def nearest(self, vector: np.ndarray, *, model: str = MODEL, limit: int = 5, **where) -> list[uuid.UUID]:
        given = {"team_id": self.team_id, "scope_ids": [self.scope_id], "statuses": ["active", "candidate"], **where}
        hits = self.engine.nearest(embedding=vector, model_id=model, limit=limit, **given)
        assert [hit.cosine for hit in hits] == sorted((hit.cosine for hit in hits), reverse=True)
        return [hit.memory_id for hit in hits]

    def stamps(self, points: list[Point], *, model: str = MODEL, team: uuid.UUID | None = None) -> dict[uuid.UUID, str]:
        ids = [point.memory_id for point in points]
        return self.engine.stamps(team_id=team or self.team_id, model_id=model, memory_ids=ids)

    def all(self, *, model: str = MODEL, team: uuid.UUID | None = None) -> list[uuid.UUID]:
        pages = self.engine.scan(team_id=team or self.team_id, model_id=model)
        return [memory for page in pages for memory in page]


@pytest.fixture(scope="module")
def address(request, tmp_path_factory) -> Iterator[tuple[str, Running]]:
    """The engine's name and where it runs, once for all tests of it."""
    name = request.param
    if not vector_engines.runs_here(name):
        pytest.skip(f"{name} is not installed: make test-engines")
    if name == "pgvector":
        yield name, Running("")
        return
    with vector_engines.running(name, tmp_path_factory.mktemp(name)) as there:
        yield name, there


@pytest.fixture
def place(address, agent, other_agent) -> Iterator[Place]:
    name, there = address
    enter_team(agent.team)
    scope = scopes.private_of(agent.team, agent)
    engine = pgvector if name == "pgvector" else vector_engines.connect(name, there.url)
    yield Place(engine, agent.team.pk, other_agent.team.pk, scope.pk)
    for model in engine.models():
        engine.drop(model_id=model)
    if name == "pgvector":
        transaction.set_rollback(True)  # its rows point at memories that were never written


every_engine = pytest.mark.parametrize("address", ["pgvector", "qdrant", "milvus", "chroma"], indirect=True)


@every_engine
def test_the_closest_come_first(place: Place) -> None:
    points = place.write(place.points(60))
    for point in points[:5]:
        order = sorted(points, key=lambda other: -float(other.vector @ point.vector))  # noqa: B023 - used at once
        assert place.nearest(point.vector) == [other.memory_id for other in order[:5]]


@every_engine
def test_cosines_are_those_of_the_vectors(place: Place) -> None:
    one, other = place.write(place.points(2))
    hits = place.engine.nearest(
        team_id=place.team_id, scope_ids=[place.scope_id], statuses=["active"], embedding=one.vector, model_id=MODEL,
        limit=2,
    )  # fmt: skip
    assert [hit.cosine for hit in hits] == pytest.approx([1.0, float(one.vector @ other.vector)], abs=2e-3)


@every_engine
def test_a_small_team_beside_a_big_one_gets_all_of_its_own(place: Place) -> None:
    mine = place.write(place.points(8))
    asked = mine[0].vector
    theirs = [Point(p.memory_id, p.scope_id, p.status, p.stamp, asked) for p in place.points(600)]
    place.write(theirs, team=place.other_id)
    assert set(place.nearest(asked, limit=8)) == {point.memory_id for point in mine}
    assert place.nearest(asked, limit=3)[0] == mine[0].memory_id


@every_engine
def test_scopes_and_statuses_are_filtered_before_the_limit(place: Place) -> None:
    right, asked = place.points(1)[0], place.points(1)[0].vector
    closer = [
        Point(p.memory_id, scope, status, p.stamp, asked)
        for p, (scope, status) in zip(
            place.points(80), [(place.elsewhere, "active"), (place.scope_id, "demoted")] * 40, strict=True
        )
    ]
    place.write([right, *closer])
    assert place.nearest(asked, limit=1) == [right.memory_id]
    assert len(place.nearest(asked, limit=100, scope_ids=[place.scope_id, place.elsewhere])) == 41
    assert len(place.nearest(asked, limit=100, statuses=["demoted"])) == 40


@every_engine
def test_writing_again_replaces(place: Place) -> None:
    first, second = place.write(place.points(2))
    again = Point(first.memory_id, place.scope_id, "archived", "new", second.vector)
    place.write([again])
    place.write([again])
    assert place.stamps([first, second]) == {first.memory_id: "new", second.memory_id: second.stamp} or (
        place.engine is pgvector and len(place.stamps([first, second])) == 2  # its stamps follow from the row
    )
    assert place.nearest(first.vector) == [second.memory_id]
    assert place.nearest(second.vector, statuses=["archived"]) == [first.memory_id]


@every_engine
def test_deleting_reaches_what_is_named_and_of_the_team(place: Place) -> None:
    one, other = place.write(place.points(2))
    (foreign,) = place.write(place.points(1), team=place.other_id)
    named = [one.memory_id, foreign.memory_id, new_id()]
    for _ in range(2):
        place.engine.delete(team_id=place.team_id, model_id=MODEL, memory_ids=named)
        assert place.nearest(one.vector) == [other.memory_id]
        assert place.all(team=place.other_id) == [foreign.memory_id]


@every_engine
def test_models_do_not_mix(place: Place) -> None:
    (small,) = place.write(place.points(1))
    (large,) = place.write(place.points(1, model=OTHER_MODEL), model=OTHER_MODEL)
    assert place.engine.models() == sorted([MODEL, OTHER_MODEL])
    assert place.nearest(small.vector) == [small.memory_id]
    assert place.nearest(large.vector, model=OTHER_MODEL) == [large.memory_id]
    place.engine.delete(team_id=place.team_id, model_id=OTHER_MODEL, memory_ids=[small.memory_id, large.memory_id])
    assert (place.all(), place.all(model=OTHER_MODEL)) == ([small.memory_id], [])


@every_engine
def test_a_model_without_a_collection_holds_nothing(place: Place) -> None:
    (point,) = place.points(1)
    assert (place.nearest(point.vector), place.stamps([point]), place.all(), place.engine.models()) == ([], {}, [], [])
    place.engine.delete(team_id=place.team_id, model_id=MODEL, memory_ids=[point.memory_id])
    place.engine.forget_team(team_id=place.team_id)
    place.engine.drop(model_id=MODEL)


@every_engine
def test_a_scan_gives_every_point_of_the_team_once(place: Place) -> None:
    mine = place.write(place.points(1_201))
    place.write(place.points(30), team=place.other_id)
    found = place.all()
    assert sorted(found) == sorted(point.memory_id for point in mine)
    assert len(place.stamps(mine)) == len(mine)
    assert place.stamps(mine[:3], team=place.other_id) == {}


@every_engine
def test_a_team_is_forgotten_whole(place: Place) -> None:
    place.write(place.points(700))
    place.write(place.points(2, model=OTHER_MODEL), model=OTHER_MODEL)
    theirs = place.write(place.points(3), team=place.other_id)
    place.engine.forget_team(team_id=place.team_id)
    assert (place.all(), place.all(model=OTHER_MODEL)) == ([], [])
    assert len(place.all(team=place.other_id)) == len(theirs)


@every_engine
def test_a_dropped_collection_is_made_anew(place: Place) -> None:
    (point,) = place.write(place.points(1))
    place.engine.drop(model_id=MODEL)
    assert place.nearest(point.vector) == []
    place.write([point])
    assert place.nearest(point.vector) == [point.memory_id]


@pytest.mark.parametrize("name", ["qdrant", "milvus", "chroma"])
def test_an_engine_that_is_down_or_hangs_is_an_error_in_time(name: str) -> None:
    if not vector_engines.runs_here(name):
        pytest.skip(f"{name} is not installed: make test-engines")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        _refused_within(5.0, name, url)
        silent.listen(16)  # the kernel takes connections, nobody answers
        _refused_within(8.0, name, url)


def _refused_within(seconds: float, name: str, url: str) -> None:
    asked: dict = {"team_id": new_id(), "scope_ids": [new_id()], "statuses": ["active"], "limit": 3}
    began = time.monotonic()
    engine = vector_engines.connect(name, url, timeout_seconds=1.0)
    with pytest.raises(EngineError) as told:
        engine.nearest(**asked, embedding=np.ones(16, dtype=np.float32), model_id=MODEL)
    assert time.monotonic() - began < seconds
    assert url not in str(told.value)


@every_engine
def test_threads_may_share_a_connection(place: Place) -> None:
    if place.engine is pgvector:
        pytest.skip("a database connection belongs to one thread")
    lots = [place.points(20) for _ in range(6)]
    failures: list[BaseException] = []

    def work(points: list[Point]) -> None:
        try:
            place.write(points)
            assert place.nearest(points[0].vector, limit=1) == [points[0].memory_id]
        except BaseException as failure:  # noqa: BLE001 - told below
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(lot,)) for lot in lots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(place.all()) == 120


@pytest.mark.parametrize("address", ["milvus", "chroma"], indirect=True)
def test_an_engine_that_hangs_is_an_error_in_time_and_serves_on_afterwards(address, place: Place) -> None:
    name, there = address
    (point,) = place.write(place.points(1))
    place.engine = vector_engines.connect(name, there.url, timeout_seconds=1.0)
    assert place.nearest(point.vector) == [point.memory_id]
    with there.paused():
        began = time.monotonic()
        with pytest.raises(EngineError):
            place.nearest(point.vector)
        assert time.monotonic() - began < 5
    assert place.nearest(point.vector) == [point.memory_id]


# --- Names of collections ---------------------------------------------------------------------------


@given(model=st.text(min_size=1, max_size=40), prefix=st.from_regex(r"\A[A-Za-z][A-Za-z0-9]{0,11}\Z"))
def test_a_collections_name_tells_its_model(model: str, prefix: str) -> None:
    try:
        name = collection_of(prefix, model)
    except (EngineError, UnicodeEncodeError):
        return
    assert name.replace("_", "").isalnum()
    assert name.isascii()
    assert model_of(prefix, name) == model
    assert model_of(prefix + "x", name) is None


def test_other_peoples_collections_are_not_ours() -> None:
    assert [model_of("hs", name) for name in ("hs", "hs__", "other__small", "hs__a-b", "hs__a_zz", "hs__a_ff")] == (
        [None] * 6
    )
