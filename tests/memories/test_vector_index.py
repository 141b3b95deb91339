"""An engine beside PostgreSQL in use: told after the commit, checked at every recall, left alone when it is down."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import DeletionState
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Agent, Team, TeamDeletion, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, indexing, recall, scopes, tasks, vector_drift, vector_outbox
from memories.embeddings import get_embedder
from memories.enums import Status
from memories.models import Memory, MemoryVector, VectorChange
from memories.search import engines, vectors
from memories.search.deadline import Deadline
from memories.search.engines import Engine, EngineError, Point, calls
from memories.search.engines.breaker import FAILURES, PAUSE_SECONDS, Breaker
from reflection.invariants.running import check_team
from tests import factories

pytest.importorskip("qdrant_client")
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the driver
]
SAID = ("The walrus sleeps at noon.", "Invoices go to the green cabinet.", "Tea is served at four.")


@pytest.fixture(autouse=True)
def _fresh_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "breaker", Breaker())


@pytest.fixture
def engine(settings) -> Iterator[Engine]:
    """Qdrant's local mode, as the settings of this process name it."""
    settings.VECTOR_INDEX, settings.VECTOR_INDEX_URL = "qdrant", ":memory:"
    settings.VECTOR_INDEX_TIMEOUT_MS = 10_000  # a busy machine is no outage
    engines._connected.cache_clear()
    yield engines.current()
    engines._connected.cache_clear()


@pytest.fixture
def said(engine: Engine, agent: Agent) -> list[Memory]:
    return [factories.memory(agent, text) for text in SAID]


def model() -> str:
    return get_embedder().model_id


def held(engine: Engine, team: Team) -> set[uuid.UUID]:
    return {memory for page in engine.scan(team_id=team.pk, model_id=model()) for memory in page}


def tell(team: Team) -> int:
    return vector_outbox.carry_over(team, engines.current(), seconds=30)


def ask(agent: Agent, query: str, **options: Any) -> recall.Answer:
    with team_transaction(agent.team):
        question = recall.Question(query=query, min_relevance=0.0, **{"deadline_ms": 0, **options})
        scope = scopes.private_of(agent.team, agent)
        return recall.recall(team=agent.team, agent=agent, scopes=[scope], question=question)


def nearest(agent: Agent, text: str, limit: int = 5) -> list[uuid.UUID]:
    with team_transaction(agent.team):
        scope = scopes.private_of(agent.team, agent)
        hits = engines.nearest_within(Deadline(None))(
            team_id=agent.team_id, scope_ids=[scope.pk], embedding=indexing.embed_query(text), model_id=model(),
            statuses=["active"], limit=limit,
        )  # fmt: skip
        return [hit.memory_id for hit in hits]


def put(engine: Engine, team: Team, memory_id: uuid.UUID, like: Memory, stamp: str = "x") -> None:
    """Put a point into the engine past the outbox."""
    vector = indexing.embed_memories([like])[0]
    engine.upsert(team_id=team.pk, model_id=model(), points=[Point(memory_id, like.scope_id, "active", stamp, vector)])


# --- The default ------------------------------------------------------------------------------------


def test_pgvector_is_called_directly_and_notes_nothing(agent: Agent) -> None:
    assert engines.nearest_within(Deadline(None)) is vectors.nearest
    with team_transaction(agent.team), CaptureQueriesContext(connection) as queries:
        factories.memory(agent, SAID[0])
    assert not any("vectorchange" in query["sql"] for query in queries)
    with team_transaction(agent.team):
        assert not VectorChange.objects.exists()
    assert tasks.sweep_vector_changes() == tasks.carry_vectors_over(str(agent.team_id)) == "nothing to do"
    call_command("reindex", stdout=(out := StringIO()))
    assert "nothing to rebuild" in out.getvalue()


# --- From a write to a recall -----------------------------------------------------------------------


def test_a_write_is_noted_in_its_transaction_and_wakes_a_worker_once(said, agent, engine) -> None:
    with team_transaction(agent.team):
        assert sorted(VectorChange.objects.values_list("memory_id", flat=True)) == sorted(m.pk for m in said)
    woken = [task.func() for task in OrmQ.objects.all() if task.func() == vector_outbox.CARRY_OVER]
    assert len(woken) == 1
    assert held(engine, agent.team) == set()
    assert tasks.carry_vectors_over(str(agent.team_id)) == "3 memories"
    assert held(engine, agent.team) == {memory.pk for memory in said}
    with team_transaction(agent.team):
        assert not VectorChange.objects.exists()


def test_a_write_that_rolls_back_leaves_no_note(engine, agent) -> None:
    class Undone(Exception):
        pass

    def write() -> None:
        with team_transaction(agent.team):
            factories.memory(agent, SAID[0])
            raise Undone

    with pytest.raises(Undone):
        write()
    with team_transaction(agent.team):
        assert not VectorChange.objects.exists()


def test_recall_finds_through_the_engine_what_no_word_leads_to(said, agent) -> None:
    tell(agent.team)
    answer = ask(agent, "when does the big sea animal rest?")
    assert answer.hits[0].memory == said[0].pk
    assert not answer.degraded


def test_what_the_engine_was_not_told_yet_is_found_all_the_same(said, agent) -> None:
    assert nearest(agent, SAID[1])[0] == said[1].pk


def test_an_engine_that_was_never_filled_is_told_of(said, agent) -> None:
    with team_transaction(agent.team):
        VectorChange.objects.all().delete()
    answer = ask(agent, "green cabinet invoices")
    assert answer.degraded
    assert [hit.memory for hit in answer.hits][:1] == [said[1].pk]
    call_command("reindex", stdout=StringIO())
    assert not ask(agent, "green cabinet invoices").degraded


def test_changes_of_status_and_text_reach_the_engine(said, agent, engine) -> None:
    tell(agent.team)
    with team_transaction(agent.team):
        scope = scopes.private_of(agent.team, agent)
        actions.archive(team=agent.team, by=SYSTEM, memory=said[0])
        actions.revise(team=agent.team, by=SYSTEM, memory=said[1], content="Receipts are burnt at dawn.")
    tell(agent.team)
    asked = {"team_id": agent.team_id, "scope_ids": [scope.pk], "model_id": model(), "limit": 3}
    vector = indexing.embed_query(SAID[0])
    archived = engine.nearest(**asked, embedding=vector, statuses=["archived"])
    assert [hit.memory_id for hit in archived] == [said[0].pk]
    assert said[0].pk not in {hit.memory_id for hit in engine.nearest(**asked, embedding=vector, statuses=["active"])}
    assert [drift.memories() for drift in vector_drift.look(agent.team, engine)] == [[], []]


def test_a_forgotten_memory_leaves_the_engine(said, agent, engine) -> None:
    tell(agent.team)
    with team_transaction(agent.team):
        actions.forget(team=agent.team, by=SYSTEM, memory=said[0])
    assert said[0].pk not in nearest(agent, SAID[0]), "never shown, even before the engine is told"
    tell(agent.team)
    assert held(engine, agent.team) == {said[1].pk, said[2].pk}
    assert not any(finding.count for finding in check_team(agent.team))


def test_a_narrowing_that_the_engine_does_not_know_comes_before_the_limit(engine, agent) -> None:
    """Sixty closer ones of another kind would fill what the engine proposes."""
    for number in range(62):
        factories.memory(agent, f"Walrus number {number} sleeps at noon.", session_id="s", sequence=2 * number)
    wanted = factories.memory(agent, "Walruses are preferred to seals.", kind="preference")
    tell(agent.team)
    answer = ask(agent, "walrus sleeping at noon", kinds=["preference"], top_k=1)
    assert [hit.memory for hit in answer.hits] == [wanted.pk]


# --- Nothing of another team ------------------------------------------------------------------------


def test_a_hit_of_another_team_put_into_the_engine_never_comes_out(said, agent, other_agent, engine) -> None:
    secret = factories.memory(other_agent, "The walrus key is under the mat.")
    tell(agent.team)
    tell(other_agent.team)
    with team_transaction(other_agent.team):
        secret = Memory.objects.get(pk=secret.pk)
        vector = indexing.embed_memories([secret])[0]
    # As if it were ours in every way that the engine can tell: our team, our scope, active, closest of all.
    forged = Point(secret.pk, said[0].scope_id, "active", "x", vector)
    engine.upsert(team_id=agent.team_id, model_id=model(), points=[forged])
    proposed = engine.nearest(
        team_id=agent.team_id, scope_ids=[said[0].scope_id], embedding=vector, model_id=model(), statuses=["active"],
        limit=1,
    )  # fmt: skip
    assert [hit.memory_id for hit in proposed] == [secret.pk]
    assert secret.pk not in nearest(agent, "The walrus key is under the mat.")
    answer = ask(agent, "where is the walrus key?", include_archived=True)
    assert secret.pk not in {hit.memory for hit in answer.hits}
    assert "mat" not in answer.context


def test_hits_of_a_scope_or_status_that_is_not_so_any_more_do_not_count(said, agent, engine) -> None:
    tell(agent.team)
    with team_transaction(agent.team):
        Memory.objects.filter(pk=said[0].pk).update(status=Status.DEMOTED)
        MemoryVector.objects.filter(memory_id=said[0].pk).update(status=Status.DEMOTED)
    assert said[0].pk not in nearest(agent, SAID[0])
    ghost = new_id()
    put(engine, agent.team, ghost, said[1])
    assert ghost not in nearest(agent, SAID[1])


# --- Order ------------------------------------------------------------------------------------------


class Slow:
    """The engine, but a write waits until it is told to go on."""

    def __init__(self, engine: Engine, between: Callable[[], None]) -> None:
        self._engine, self._between = engine, between

    def models(self) -> list[str]:
        return self._engine.models()

    def upsert(self, **points: Any) -> None:
        self._between()
        self._engine.upsert(**points)

    def delete(self, **memories: Any) -> None:
        self._engine.delete(**memories)


def test_nobody_writes_for_a_team_while_another_one_does(said, agent, engine) -> None:
    """What is forgotten while its vector is on the way is removed after that vector, not before."""
    seen: list[int] = []

    def forget_meanwhile() -> None:
        if not seen:
            with team_transaction(agent.team):
                actions.forget(team=agent.team, by=SYSTEM, memory=said[0])
            seen.append(tell(agent.team))

    vector_outbox.carry_over(agent.team, Slow(engine, forget_meanwhile), seconds=30)
    assert seen == [0]
    assert held(engine, agent.team) == {said[1].pk, said[2].pk}


def test_a_worker_that_died_with_its_claim_is_followed_by_another_when_it_ran_out(said, agent, engine) -> None:
    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    with pytest.raises(Died):
        vector_outbox.carry_over(agent.team, Slow(engine, die), seconds=30)
    assert tell(agent.team) == 0, "it may still be writing"
    assert tasks.sweep_vector_changes() == "0 woken"
    with team_transaction(agent.team):
        assert VectorChange.objects.update(claimed_until=timezone.now() - timedelta(seconds=1)) == 3
    assert tasks.sweep_vector_changes() == "1 woken"
    assert tell(agent.team) == 3


def test_one_that_was_held_up_after_its_claim_writes_nothing(said, agent, engine, monkeypatch) -> None:
    monkeypatch.setattr(vector_outbox, "LATEST_SEND_SECONDS", -1.0)
    with pytest.raises(EngineError, match="let go"):
        tell(agent.team)
    assert held(engine, agent.team) == set()


# --- Down, slow, back again -------------------------------------------------------------------------


@pytest.fixture
def silent(settings) -> Iterator[None]:
    """An address that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        settings.VECTOR_INDEX = "qdrant"
        settings.VECTOR_INDEX_URL = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings.VECTOR_INDEX_TIMEOUT_MS, settings.VECTOR_INDEX_WRITE_TIMEOUT_SECONDS = 150, 1.0
        engines._connected.cache_clear()
        yield
        engines._connected.cache_clear()


def test_recall_goes_by_keywords_and_does_not_wait_anew(silent, agent, caplog: pytest.LogCaptureFixture) -> None:
    memory = factories.memory(agent, SAID[1])
    for _ in range(FAILURES + 2):
        answer = ask(agent, "green cabinet invoices")
        assert answer.degraded
        assert "vectors" in answer.late
        assert [hit.memory for hit in answer.hits] == [memory.pk]
    waited = ["did not answer within 150 ms" in record.message for record in caplog.records]
    assert waited == [True] * FAILURES + [False] * 2


def test_the_deadline_of_a_recall_is_kept(silent, agent, settings) -> None:
    settings.VECTOR_INDEX_TIMEOUT_MS = 60_000
    factories.memory(agent, SAID[1])
    ask(agent, "warm up", deadline_ms=100)
    calls.breaker.succeeded()
    began = time.monotonic()
    assert ask(agent, "green cabinet invoices", deadline_ms=600).degraded
    assert time.monotonic() - began < 5


def test_what_could_not_be_told_is_kept_and_told_later(silent, agent, settings) -> None:
    memory = factories.memory(agent, SAID[1])
    assert tasks.carry_vectors_over(str(agent.team_id)) == "the vector index failed"
    assert vector_outbox.tell_now(agent.team, seconds=0.1) == 1
    settings.VECTOR_INDEX_URL = ":memory:"
    calls.breaker.succeeded()
    with team_transaction(agent.team):
        VectorChange.objects.update(claimed_until=timezone.now())
    assert vector_outbox.tell_now(agent.team, seconds=30) == 0
    assert held(engines.current(), agent.team) == {memory.pk}


def test_a_search_that_hangs_is_not_waited_for() -> None:
    over = threading.Event()
    began = time.monotonic()
    with pytest.raises(EngineError, match="50 ms"):
        calls.in_time(over.wait, 0.05)
    assert time.monotonic() - began < 5
    over.set()


def test_the_breaker_opens_after_failures_in_a_row_tries_once_a_pause_and_closes() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    breaker.failed()
    breaker.succeeded()
    for _ in range(FAILURES):
        assert breaker.lets_through()
        breaker.failed()
    assert not breaker.lets_through()
    now[0] += PAUSE_SECONDS
    assert [breaker.lets_through(), breaker.lets_through()] == [True, False]
    breaker.failed()
    now[0] += PAUSE_SECONDS
    assert not breaker.lets_through(), "the pause has doubled"
    now[0] += PAUSE_SECONDS
    assert breaker.lets_through()
    breaker.succeeded()
    assert [breaker.lets_through(), breaker.lets_through()] == [True, True]


# --- Drift ------------------------------------------------------------------------------------------


def found(team: Team, *, mend: bool = False) -> dict[str, tuple[int, int]]:
    return {f.check.name: (f.count, f.repaired) for f in check_team(team, mend=mend) if f.count}


def test_drift_of_every_kind_is_found_and_mended(said, agent, engine) -> None:
    tell(agent.team)
    assert found(agent.team) == {}
    engine.delete(team_id=agent.team_id, model_id=model(), memory_ids=[said[0].pk])
    put(engine, agent.team, said[1].pk, said[0], stamp="old")
    put(engine, agent.team, new_id(), said[0])
    old_model = Point(said[2].pk, said[2].scope_id, "active", "x", np.ones(8, dtype=np.float32))
    engine.upsert(team_id=agent.team_id, model_id="retired@8", points=[old_model])
    told = {
        "vectors_missing_from_index": 1, "vectors_stale_in_index": 1, "vectors_left_in_index": 2
    }  # fmt: skip
    assert found(agent.team) == {name: (count, 0) for name, count in told.items()}
    assert found(agent.team, mend=True) == {name: (count, count) for name, count in told.items()}
    assert found(agent.team) == {}
    assert list(engine.scan(team_id=agent.team_id, model_id="retired@8")) == []


def test_what_is_on_its_way_is_no_drift(said, agent) -> None:
    assert found(agent.team) == {}


def test_an_engine_that_is_down_is_a_finding_that_a_person_has_to_mend(silent, agent) -> None:
    factories.memory(agent, SAID[0])
    with pytest.raises(SystemExit):
        call_command("check_invariants", stdout=(out := StringIO()))
    assert "acme: 1 vector indexes that do not answer" in out.getvalue()


def test_reindex_fills_an_empty_engine_for_all_teams_and_goes_on_where_it_was(said, agent, other_agent, engine) -> None:
    theirs = factories.memory(other_agent, SAID[0])
    for team in (agent.team, other_agent.team):
        tell(team)
    engine.drop(model_id=model())
    put(engine, agent.team, new_id(), said[0])
    call_command("reindex", stdout=(out := StringIO()))
    assert "4 vectors in PostgreSQL" in out.getvalue()
    assert "4 vectors compared with qdrant, 5 put right" in out.getvalue()
    assert held(engine, agent.team) == {memory.pk for memory in said}
    assert held(engine, other_agent.team) == {theirs.pk}
    call_command("reindex", "--team", "acme", stdout=(out := StringIO()))
    assert "3 vectors compared with qdrant, 0 put right" in out.getvalue()
    call_command("reindex", "--drop", stdout=(out := StringIO()))
    assert "4 put right" in out.getvalue()
    assert held(engine, other_agent.team) == {theirs.pk}


def test_reindex_says_what_to_do_when_it_cannot(silent, agent, engine, settings) -> None:
    with pytest.raises(CommandError, match="no team nobody"):
        call_command("reindex", "--team", "nobody")
    with pytest.raises(CommandError, match="without --team"):
        call_command("reindex", "--team", "acme", "--drop")


def test_a_deleted_team_leaves_the_engine(said, agent, other_agent, engine) -> None:
    factories.memory(other_agent, SAID[0])
    for team in (agent.team, other_agent.team):
        tell(team)
    with team_transaction(agent.team):
        TeamDeletion.objects.create(
            team=agent.team, team_name="Acme", requested_by=User.objects.first(), state=DeletionState.DONE,
            finished_at=timezone.now(),
        )  # fmt: skip
    assert tasks.forget_vectors_of_deleted_teams() == "1 forgotten"
    assert held(engine, agent.team) == set()
    assert len(held(engine, other_agent.team)) == 1
    assert tasks.forget_vectors_of_deleted_teams() == "0 forgotten"


# --- Settings ---------------------------------------------------------------------------------------


def ids_of_findings() -> set[str]:
    return {message.id for message in run_checks() if message.id.startswith("memories.")}


@pytest.mark.parametrize(
    ("name", "url", "told"),
    [
        ("pgvector", "", set()),
        ("qdrant", "http://vectors:6333", set()),
        ("qdrant", "https://vectors", set()),
        ("qdrant", ":memory:", {"memories.W001"}),
        ("qdrant", "", {"memories.E003"}),
        ("qdrant", "vectors:6333", {"memories.E003"}),
        ("faiss", "http://vectors", {"memories.E001"}),
    ],
    ids=["default", "http", "https", "in-process", "no-address", "no-scheme", "unknown"],
)
def test_wrong_settings_are_told_at_the_start(settings, name: str, url: str, told: set[str]) -> None:
    settings.VECTOR_INDEX, settings.VECTOR_INDEX_URL = name, url
    assert ids_of_findings() == told


def test_a_missing_driver_is_told_with_what_to_install(settings, monkeypatch) -> None:
    monkeypatch.setitem(engines.DRIVERS, "milvus", ("a_driver_that_is_not_there", "pymilvus>=3.0,<4"))
    settings.VECTOR_INDEX, settings.VECTOR_INDEX_URL = "milvus", "http://vectors:19530"
    (message,) = [message for message in run_checks() if message.id == "memories.E002"]
    assert "pip install 'pymilvus>=3.0,<4'" in message.hint


def test_other_names_and_missing_files_are_told(settings) -> None:
    settings.VECTOR_INDEX, settings.VECTOR_INDEX_URL = "qdrant", "https://vectors"
    settings.VECTOR_INDEX_COLLECTION, settings.VECTOR_INDEX_CA_FILE = "my vectors", "/nowhere.pem"
    assert ids_of_findings() == {"memories.E004", "memories.E005"}
