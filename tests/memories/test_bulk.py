"""Many memories in one call: the same outcome as one after the other, in far fewer statements."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent, AuditEvent
from hindsight_site.accounts.tenancy import enter_team
from memories import actions, scopes
from memories.actions import Draft, newcomers
from memories.enums import Kind, Status, Tier
from memories.models import Memory, MemoryTerms, MemoryVector, Relation, Scope

TEXTS = [
    "The walrus sleeps at noon.",
    "Invoices are filed in the green cabinet.",
    "the walrus  sleeps at NOON.",  # the same words
    "Tea is served at four in the garden.",
    "The staging server listens on port 8000.",
    "The staging server listens on port 9000.",  # another number: no twin, however close
    "Backups run every night at two.",
    "Backups run every night at two o'clock.",
    "客户希望每周五收到进度邮件。",
    "Deploy on Fridays only with a second pair of eyes.",
    "Never deploy on Fridays.",
    "Logs are kept for seven days.",
]


@pytest.fixture
def scope(agent: Agent) -> Scope:
    enter_team(agent.team)
    return scopes.private_of(agent.team, agent)


def drafts(**fields: Any) -> list[Draft]:
    return [Draft(content=text, kind=Kind.FACT, **fields) for text in TEXTS]


def outcome(scope: Scope) -> dict[str, Any]:
    memories = Memory.objects.filter(scope=scope).order_by("content")
    edges = Relation.objects.filter(source__scope=scope)
    written = AuditEvent.objects.filter(object_id__in=[str(m.pk) for m in memories], verb="memory.remembered")
    return {
        "memories": [(m.content, m.status, m.support_count, m.needs_review) for m in memories],
        "words": MemoryTerms.objects.filter(scope=scope).count(),
        "vectors": MemoryVector.objects.filter(scope=scope).count(),
        "edges": sorted(sorted((edge.source.content, edge.target.content)) for edge in edges),
        "audit": written.count(),
    }


def test_the_same_comes_out_as_one_by_one(scope: Scope, agent: Agent) -> None:
    other = scopes.private_of(agent.team, agent_of(agent))
    many = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=drafts())
    one = [actions.remember(team=scope.team, by=SYSTEM, scope=other, draft=draft) for draft in drafts()]
    assert [result.merged for result in many] == [result.merged for result in one]
    assert [result.memory.content for result in many] == [result.memory.content for result in one]
    assert outcome(scope) == outcome(other)
    again = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=drafts())
    assert all(result.merged for result in again)
    assert outcome(scope)["words"] == outcome(other)["words"]


def agent_of(agent: Agent) -> Agent:
    from tests import factories

    other = factories.agent(agent.team, "other")
    enter_team(agent.team)
    return other


def test_what_is_certainly_new_is_written_together(scope: Scope) -> None:
    unlike = [Draft(content=f"{word} belongs to {word[::-1]}.", kind=Kind.FACT) for word in WORDS]
    with CaptureQueriesContext(
        connection,
    ) as few:
        results = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=unlike[:10])
    with CaptureQueriesContext(connection) as more:
        actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=unlike[10:])
    assert not any(result.merged for result in results)
    assert len(more) <= len(few) + 12  # does not grow with the number of memories


WORDS = [
    "walrus", "invoice", "kettle", "bridge", "violin", "cactus", "ladder", "pepper", "rocket", "mirror",
    "anchor", "button", "candle", "dragon", "engine", "forest", "guitar", "hammer", "island", "jacket",
    "kitten", "lantern", "magnet", "needle", "orchid", "parrot", "quartz", "ribbon", "saddle", "turnip",
]  # fmt: skip


def test_turns_and_working_memory_stand_by_themselves(scope: Scope) -> None:
    turns = [Draft(content=text, kind=Kind.FACT, session_id="s", sequence=i) for i, text in enumerate(TEXTS)]
    assert not any(r.merged for r in actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=turns))
    working = drafts(tier=Tier.WORKING, session_id="s")
    assert not any(r.merged for r in actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=working))


def test_what_is_held_back_stays_so_in_a_batch(scope: Scope) -> None:
    held = drafts(quarantine_reason="tells the reader what to do")
    results = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=held)
    assert {r.memory.status for r in results} == {Status.QUARANTINED}
    again = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=drafts())
    assert {r.memory.status for r in again} == {Status.QUARANTINED}


def test_a_scope_too_large_to_hold_is_asked_one_by_one(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newcomers, "MOST_COMPARED", 1)
    first = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=drafts())
    second = actions.remember_many(team=scope.team, by=SYSTEM, scope=scope, drafts=drafts())
    assert all(result.merged for result in second)
    assert {r.memory.pk for r in second} == {r.memory.pk for r in first}
