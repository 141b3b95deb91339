"""Recall as a caller gets it: identifiers first, in time, as of a moment, lessons before their episodes."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.tenancy import enter_team
from memories import actions, embeddings, ranking, recall, reranking, scopes
from memories.actions import Draft
from memories.embeddings import EmbeddingError, get_embedder
from memories.enums import Kind, Status, Tier
from memories.models import Evidence, Memory, MemoryTerms, Revision, Scope
from memories.search import asking
from memories.search.deadline import Deadline, searching
from memories.search.fusion import Fused
from tests import factories
from tests.factories import ApiClient
from tests.fakes import Fault, ModelServer

LONG_AGO = timezone.now() - timedelta(days=40)


@pytest.fixture
def scope(agent: Agent) -> Scope:
    enter_team(agent.team)
    return scopes.private_of(agent.team, agent)


def remember(scope: Scope, content: str, **fields: Any) -> Memory:
    draft = Draft(**{"content": content, "kind": Kind.FACT, "tier": Tier.SEMANTIC, **fields})
    return actions.remember(team=scope.team, by=SYSTEM, scope=scope, draft=draft).memory


def ask(scope: Scope, query: str, **options: Any) -> recall.Answer:
    question = recall.Question(query=query, **{"deadline_ms": 0, **options})
    return recall.recall(team=scope.team, agent=None, scopes=[scope], question=question)


def ids(answer: recall.Answer) -> list[uuid.UUID]:
    return [hit.memory for hit in answer.hits]


# --- What comes first ---------------------------------------------------------------------------------


def test_an_exact_identifier_comes_before_every_better_standing(scope: Scope) -> None:
    old = remember(scope, "ERR_CONN_4031 means the gateway closed the idle connection.", tier=Tier.EPISODIC)
    Memory.objects.filter(pk=old.pk).update(weight=0.1, confidence=0.05, created_at=LONG_AGO)
    remember(scope, "The gateway closes an idle connection after a minute; open a new connection.", confidence=0.9)
    answer = ask(scope, "ERR_CONN_4031 idle connection of the gateway closed", min_relevance=0.0)
    assert ids(answer)[0] == old.pk
    assert answer.hits[0].parts["exact"] == 1.0


def test_a_time_that_is_named_is_preferred_and_a_number_is_not(scope: Scope) -> None:
    at = datetime(2026, 3, 18, 12, tzinfo=UTC)
    march = remember(scope, "The deploy failed: the disk of the runner was full.", occurred_at=at - timedelta(days=9))
    june = remember(scope, "The deploy failed: the runner had no memory left.", occurred_at=at - timedelta(days=280))
    last_week = ask(scope, "why did the deploy of the runner fail last week", at=at, min_relevance=0.0)
    assert ids(last_week)[0] == march.pk
    assert last_week.hits[0].parts["time"] > 0
    plain = ask(scope, "why did the deploy of the runner on port 2025 fail", at=at, min_relevance=0.0)
    assert {hit.parts["time"] for hit in plain.hits} == {0.0}
    assert set(ids(plain)) == {march.pk, june.pk}


def test_a_lesson_comes_instead_of_the_episode_that_it_was_drawn_from(scope: Scope) -> None:
    trace = uuid.uuid4()
    lesson = remember(scope, "Write the month of an invoice export as YYYY-MM.", kind=Kind.EXPERIENCE)
    episode = remember(scope, "Exported the March invoices; the month had to be YYYY-MM.", kind=Kind.TASK)
    other = remember(scope, "Exported the invoices of April, the month as YYYY-MM.", kind=Kind.TASK)
    for memory, of in ((lesson, trace), (episode, trace), (other, uuid.uuid4())):
        Evidence.objects.create(team=scope.team, memory=memory, trace_id=of)
    answer = ask(scope, "month of the March invoices export", min_relevance=0.0)
    assert lesson.pk in ids(answer)
    assert episode.pk not in ids(answer)
    assert other.pk in ids(answer)
    assert answer.filtered["folded_into_lesson"] == 1
    assert ids(ask(scope, "month of the March invoices export", kinds=[Kind.TASK], min_relevance=0.0))[0] == episode.pk


@given(st.lists(st.tuples(st.sampled_from([Kind.TASK, Kind.EXPERIENCE, Kind.FACT]), st.frozensets(st.integers(0, 3)))))
def test_folding_drops_only_episodes_that_a_lesson_stands_for(rows: list[tuple[Kind, frozenset[int]]]) -> None:
    kinds, traces = [kind for kind, _ in rows], [frozenset(held) for _, held in rows]
    places = ranking.fold(kinds, traces)
    assert len(set(places)) == len(places)
    lessons = [traces[i] for i, kind in enumerate(kinds) if kind == Kind.EXPERIENCE]
    for place in set(range(len(rows))) - set(places):
        assert kinds[place] == Kind.TASK
        assert any(traces[place] & held for held in lessons)


def test_only_what_fits_the_environment_kinds_and_tiers(scope: Scope) -> None:
    linux = remember(scope, "Restart the service with systemctl.", kind=Kind.EXPERIENCE, environment={"os": "linux"})
    fact = remember(scope, "The service is restarted every night.", tier=Tier.EPISODIC)
    question = "how to restart the service"
    answer = ask(scope, question, environment={"os": "windows"}, min_relevance=0.0)
    assert ids(answer) == [fact.pk]
    assert answer.filtered["other_environment"] == 1
    assert ids(ask(scope, question, environment={"os": "Linux"}, kinds=[Kind.EXPERIENCE], min_relevance=0.0)) == [
        linux.pk
    ]
    assert ids(ask(scope, question, tiers=[Tier.EPISODIC], min_relevance=0.0)) == [fact.pk]


# --- As of a moment -----------------------------------------------------------------------------------


def test_as_of_gives_the_text_of_then(scope: Scope) -> None:
    memory = remember(scope, "The staging server listens on port 8000.")
    Memory.objects.filter(pk=memory.pk).update(created_at=LONG_AGO)
    memory.refresh_from_db()
    then = timezone.now()
    actions.revise(team=scope.team, by=SYSTEM, memory=memory, content="The test cluster answers at 9443.")
    now = ask(scope, "which port does the staging server listen on", min_relevance=0.0)
    assert now.hits[0].snippet == "The test cluster answers at 9443."
    past = ask(scope, "which port does the staging server listen on", as_of=then)
    assert [(hit.snippet, hit.revision) for hit in past.hits] == [("The staging server listens on port 8000.", 1)]
    assert past.hits[0].relevance > now.hits[0].relevance  # found by what it said then
    assert ask(scope, "staging server port", as_of=LONG_AGO - timedelta(days=1)).hits == []
    assert Revision.objects.count() == 1


def test_as_of_gives_what_was_recalled_then_and_not_what_was_out_already(scope: Scope) -> None:
    memory = remember(scope, "Deploys go through the blue cluster.")
    Memory.objects.filter(pk=memory.pk).update(created_at=LONG_AGO)
    memory.refresh_from_db()
    before = timezone.now()
    actions.archive(team=scope.team, by=SYSTEM, memory=memory)
    after = timezone.now()
    question = "which cluster do deploys go through"
    assert ask(scope, question).hits == []
    assert [hit.status for hit in ask(scope, question, as_of=before).hits] == ["active"]
    assert ask(scope, question, as_of=after).hits == []
    assert ids(ask(scope, question, as_of=after, include_archived=True)) == [memory.pk]
    memory.refresh_from_db()
    actions.restore(team=scope.team, by=SYSTEM, memory=memory)
    memory.refresh_from_db()
    actions.demote(team=scope.team, by=SYSTEM, memory=memory, reason="wrong")
    assert ask(scope, question, as_of=before).hits == []  # a person took it out: of the past too


def test_what_the_rules_of_life_archived_since_was_recalled_before(scope: Scope) -> None:
    memory = remember(scope, "Deploys go through the blue cluster.")
    Memory.objects.filter(pk=memory.pk).update(created_at=LONG_AGO, status=Status.ARCHIVED)
    MemoryTerms.objects.filter(memory_id=memory.pk).update(status=Status.ARCHIVED)
    before = timezone.now()
    audit.record(team=scope.team, by=SYSTEM, verb="memory.archived", on=memory, detail={"rule": "unused"})
    assert ids(ask(scope, "which cluster do deploys go through", as_of=before)) == [memory.pk]


# --- In time ------------------------------------------------------------------------------------------


class Slow:
    """An embedder that takes its time, or fails."""

    def __init__(self, seconds: float = 0.0, *, fails: bool = False) -> None:
        self.model_id, self.dimensions = get_embedder().model_id, 512
        self._seconds, self._fails = seconds, fails

    def embed(self, texts: list[str], kind: str) -> np.ndarray:
        if self._fails:
            raise EmbeddingError("down")
        threading_wait(self._seconds)
        return get_embedder().embed(texts, "query")


def threading_wait(seconds: float) -> None:
    import time

    time.sleep(seconds)


@pytest.mark.parametrize(("embedder", "why"), [(Slow(1.5), "embedder late"), (Slow(fails=True), "embedder failed")])
def test_without_vectors_the_words_answer_and_it_says_so(
    scope: Scope, monkeypatch: pytest.MonkeyPatch, embedder: Slow, why: str
) -> None:
    memory = remember(scope, "The walrus sleeps at noon.")
    monkeypatch.setattr(asking, "embedder_of", lambda model: embedder)
    answer = ask(scope, "when does the walrus sleep", deadline_ms=600)
    assert (ids(answer), answer.degraded, answer.late) == ([memory.pk], True, (why,))
    assert answer.hits[0].parts["vector"] == 0.0
    assert answer.took_ms < 1_400


@pytest.mark.django_db(transaction=True)
def test_a_search_that_is_late_is_cancelled_and_the_transaction_goes_on(agent: Agent) -> None:
    from django.db import transaction

    with transaction.atomic():
        with searching(Deadline.after(100)) as search:
            found, in_time = search.attempt(lambda: _sleep(5), "nothing")
            assert (found, in_time) == ("nothing", False)
            assert search.attempt(lambda: _sleep(0), "nothing") == ("slept", True)
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("0",)


def _sleep(seconds: float) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'slept' FROM pg_sleep(%s)", [seconds])
        return cursor.fetchone()[0]


def test_a_recall_makes_few_statements(scope: Scope, django_assert_max_num_queries) -> None:
    for i in range(30):
        remember(scope, f"Service number {i} keeps its logs for {i} days.")
    ask(scope, "how long are logs kept")
    with django_assert_max_num_queries(16):
        ask(scope, "how long are the logs of a service kept")


def test_an_empty_scope_is_no_match(scope: Scope) -> None:
    answer = ask(scope, "anything")
    assert (answer.status, answer.hits, answer.context, answer.degraded) == ("no_match", [], "", False)


# --- A model's look -----------------------------------------------------------------------------------


@pytest.fixture
def model(model_server: ModelServer, settings) -> ModelServer:
    settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.RECALL_RERANK_DEADLINE_MS = model_server.base_url, "k", 3_000
    return model_server


LOGS = ("Logs of the gateway are kept for seven days.", "Logs of the gateway are noisy on Mondays.")


def test_a_model_may_turn_the_order_but_adds_no_relevance(scope: Scope, model: ModelServer) -> None:
    kept, noisy = (remember(scope, text) for text in LOGS)
    plain = {hit.memory: hit.relevance for hit in ask(scope, "gateway logs", min_relevance=0.0).hits}
    first = max(plain, key=lambda pk: plain[pk])
    model.script({"scores": {"1": 0, "2": 10}})
    answer = ask(scope, "gateway logs", rerank=True, deadline_ms=None, min_relevance=0.0)
    assert set(ids(answer)) == {kept.pk, noisy.pk}
    assert ids(answer)[0] != first
    assert all(hit.relevance <= plain[hit.memory] + 1e-4 for hit in answer.hits)
    assert not answer.degraded


@pytest.mark.parametrize("bad", [Fault.HANG, "no json at all", {"scores": {}}, {"scores": {"x": "y"}}, {"scores": [1]}])
def test_a_model_that_fails_changes_nothing_and_is_named(scope: Scope, model: ModelServer, bad: Any, settings) -> None:
    settings.RECALL_RERANK_DEADLINE_MS = 700
    for text in LOGS:
        remember(scope, text)
    plain = ids(ask(scope, "gateway logs"))
    model.script(bad)
    answer = ask(scope, "gateway logs", rerank=True, deadline_ms=None)
    assert ids(answer) == plain
    assert answer.degraded
    assert answer.late[0].startswith("rerank")


def test_without_a_model_a_rerank_says_that_there_is_none(scope: Scope, settings) -> None:
    settings.LLM_BASE_URL = settings.LLM_API_KEY = ""
    remember(scope, LOGS[0])
    assert ask(scope, "gateway logs", rerank=True).late == ("rerank failed",)


def test_another_wording_finds_what_the_first_does_not(scope: Scope, model: ModelServer, settings) -> None:
    settings.RECALL_REWRITE = True
    memory = remember(scope, "zxqv is purged after a fortnight.")
    model.script({"question": "zxqv purged fortnight"}, {"scores": {"1": 10}})
    answer = ask(scope, "how long until the thing is thrown away", rerank=True, deadline_ms=None)
    assert ids(answer) == [memory.pk]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.lists(st.integers(-5, 20), min_size=1, max_size=5))
def test_the_best_of_a_bad_lot_stays_bad(relevances: list[float], scores: list[int]) -> None:
    fused = [Fused(uuid.UUID(int=i + 1), r, 0.0, 0.0, 0.0, 0.0) for i, r in enumerate(relevances)]
    kept = {place: min(max(score / 10, 0), 1) for place, score in enumerate(scores, start=1)}
    for place, one in enumerate(fused, start=1):
        factor = reranking.KEPT + (1 - reranking.KEPT) * kept.get(place, 1.0)
        assert one.relevance * factor <= one.relevance


# --- Over the API -------------------------------------------------------------------------------------


def test_the_api_takes_rerank_and_tells_what_was_late(api: ApiClient, agent: Agent, settings) -> None:
    settings.LLM_BASE_URL = settings.LLM_API_KEY = ""
    factories.memory(agent, "The walrus sleeps at noon.")
    body = api.post(
        "/api/v1/recall", {"query": "when does the walrus sleep", "rerank": True, "explain": True}, format="json"
    ).json()
    assert (body["status"], body["degraded"], body["late"]) == ("matched", True, ["rerank failed"])
    assert set(body["hits"][0]["parts"]) == {
        "vector", "keyword", "context", "session", "time", "exact", "recency", "confidence", "weight", "heat",
    }  # fmt: skip


def test_one_embedding_when_a_speaker_is_named(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(scope, "I bought a violin.", actor="Ann", session_id="s", sequence=1)
    asked: list[str] = []
    real = embeddings.get_embedder()

    class Counting(Slow):
        def embed(self, texts: list[str], kind: str) -> np.ndarray:
            asked.extend(texts)
            return real.embed(texts, "query")

    monkeypatch.setattr(asking, "embedder_of", lambda model: Counting())
    ask(scope, "What did Ann buy?")
    assert asked == ["What did buy?"]
