"""Two models at once: both read until the last row is there, resumable, and only then the old one goes."""

from __future__ import annotations

import uuid

import pytest
from django.core.management import CommandError, call_command

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.tenancy import enter_team
from memories import actions, embeddings, recall, reembedding, scopes
from memories.actions import Draft
from memories.embeddings import EmbeddingError, embedder_of, get_embedder
from memories.enums import Kind
from memories.models import Memory, MemoryVector, Scope
from memories.search import vectors
from tests.fakes import Fault, ModelServer

TEXTS = ("The walrus sleeps at noon.", "Invoices go to the cabinet.", "Tea is served at four.")
NEW = "small@1536"


@pytest.fixture
def scope(agent: Agent) -> Scope:
    enter_team(agent.team)
    return scopes.private_of(agent.team, agent)


@pytest.fixture
def endpoint(model_server: ModelServer, settings):
    """The settings name another model now than the one that embedded what is there."""
    vectors._models.clear()
    settings.EMBEDDING_BACKEND, settings.EMBEDDING_BASE_URL = "openai", model_server.base_url
    settings.EMBEDDING_API_KEY, settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS = "k", "small", 1536
    get_embedder.cache_clear()
    embeddings._another.cache_clear()
    yield model_server
    get_embedder.cache_clear()
    embeddings._another.cache_clear()
    vectors._models.clear()


def remember(scope: Scope, text: str) -> Memory:
    draft = Draft(content=text, kind=Kind.FACT)
    return actions.remember(team=scope.team, by=SYSTEM, scope=scope, draft=draft).memory


def models_of(memory: Memory) -> set[str]:
    return set(MemoryVector.objects.filter(memory_id=memory.pk).values_list("model_id", flat=True))


def ask(scope: Scope, query: str) -> list[tuple[uuid.UUID, float]]:
    question = recall.Question(query=query, min_relevance=0.0, deadline_ms=0)
    answer = recall.recall(team=scope.team, agent=None, scopes=[scope], question=question)
    assert not answer.degraded
    return [(hit.memory, hit.parts["vector"]) for hit in answer.hits]


@pytest.fixture
def old(scope: Scope) -> list[Memory]:
    return [remember(scope, text) for text in TEXTS]


def test_both_models_are_read_until_the_last_row_is_there(
    old: list[Memory], scope: Scope, endpoint: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    local = next(iter(models_of(old[0])))
    new = remember(scope, "The walrus eats clams at night.")
    assert models_of(new) == {NEW}
    found = dict(ask(scope, "what does the walrus do"))
    assert found[old[0].pk] > 0  # by the old model
    assert found[new.pk] > 0  # by the new one
    call_command("reembed", "--team", scope.team.slug)
    assert [models_of(memory) for memory in [*old, new]] == [{NEW}] * 4
    assert reembedding.missing(scope.team, NEW) == 0
    shown = capsys.readouterr().out
    assert "3 memories have no vector of small@1536" in shown
    assert "3 memories embedded with small@1536, 3 vectors of other models removed" in shown
    assert embedder_of(local).model_id == local
    vectors._models.clear()
    assert dict(ask(scope, "what does the walrus do"))[old[0].pk] > 0


def test_stopped_it_goes_on_where_it_was(
    old: list[Memory], scope: Scope, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "BATCH", 1)
    local = next(iter(models_of(old[0])))

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reembedding.reembed(scope.team, get_embedder(), stop)
    assert reembedding.missing(scope.team, NEW) == 2
    assert reembedding.retire(scope.team, NEW) == 0  # not before the last row
    assert all(local in models_of(memory) for memory in old)
    assert reembedding.reembed(scope.team, get_embedder(), lambda _: None) == 2
    assert reembedding.retire(scope.team, NEW) == 3


def test_an_endpoint_that_fails_is_said_and_leaves_the_old_vectors(
    old: list[Memory], scope: Scope, endpoint: ModelServer
) -> None:
    endpoint.script(Fault.UNAUTHORISED)
    with pytest.raises(CommandError, match="run it again"):
        call_command("reembed")
    assert all(NEW not in models_of(memory) for memory in old)


def test_a_model_prepared_in_advance_pushes_nothing_out(old: list[Memory], scope: Scope, endpoint: ModelServer) -> None:
    call_command("reembed", "--model", "large@1536")
    assert all("large@1536" in models_of(memory) and len(models_of(memory)) == 2 for memory in old)


def test_who_asks_for_what_is_not_there_is_told(scope: Scope) -> None:
    with pytest.raises(CommandError, match="no team nobody"):
        call_command("reembed", "--team", "nobody")
    with pytest.raises(EmbeddingError, match="No embedder"):
        embedder_of("unknown@7")
    assert embedder_of("local") is embedder_of("local")


def test_a_forgotten_memory_is_not_embedded_again(old: list[Memory], scope: Scope, endpoint: ModelServer) -> None:
    actions.forget(team=scope.team, by=SYSTEM, memory=old[0])
    call_command("reembed")
    assert models_of(old[0]) == set()
    assert models_of(old[1]) == {NEW}
