"""The same said again is one memory with the evidence of both, and can be taken apart again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict, NotFound
from memories import actions
from memories.enums import RelationKind
from memories.models import Evidence, Memory, MemoryVector, Merge, Relation
from reflection import actions as reflection
from reflection.models import Trace
from tests.memories.judging import evidence, fresh, say

pytestmark = pytest.mark.django_db
FIRST = "Run the database migrations before the integration tests are started on the build server."
AGAIN = "Always run the database migrations before the integration tests are started on the build server."


def quotes(memory: Memory) -> int:
    with team_transaction(memory.team):
        return Evidence.objects.of(memory.team).filter(memory=memory).count()


def split(memory: Memory, **more) -> Memory:
    with team_transaction(memory.team):
        return actions.split(team=memory.team, by=SYSTEM, memory=fresh(memory), **more)


def test_evidence_of_both_support_newest_time_and_access_count_stay(agent, team) -> None:
    first = say(agent, FIRST, by_trace=True, occurred_at=timezone.now() - timedelta(days=9))
    with team_transaction(team):
        Memory.objects.of(team).filter(pk=first.pk).update(access_count=7)
    later = timezone.now() - timedelta(days=1)
    again = say(agent, AGAIN, by_trace=True, occurred_at=later)
    assert again.pk == first.pk
    assert (again.support_count, again.access_count, again.occurred_at) == (2, 7, later)
    assert again.content == FIRST
    assert quotes(first) == 2


def test_nobody_speaks_from_the_future_or_makes_a_memory_older(agent) -> None:
    now = timezone.now()
    first = say(agent, FIRST, occurred_at=now - timedelta(days=1))
    assert say(agent, AGAIN, occurred_at=now - timedelta(days=5)).occurred_at == first.occurred_at
    assert say(agent, AGAIN, occurred_at=now + timedelta(days=900)).occurred_at <= timezone.now()


def test_one_source_said_often_is_one_support(agent) -> None:
    quote = evidence(agent)
    first = say(agent, FIRST, evidence=(quote,))
    for _ in range(5):
        again = say(agent, AGAIN, evidence=(quote,), confidence=1.0)
    assert (again.support_count, again.confidence, again.trust) == (1, first.confidence, first.trust)
    for _ in range(5):
        again = say(agent, AGAIN)  # without any source at all
    assert (again.support_count, again.confidence) == (1, first.confidence)


def test_repetition_is_not_kept_over_and_over(agent, team) -> None:
    say(agent, FIRST)
    for _ in range(4):
        say(agent, FIRST)
        say(agent, AGAIN)
    with team_transaction(team):
        assert Merge.objects.of(team).count() == 1


def test_split_brings_it_back_with_its_own_evidence(agent, team) -> None:
    first = say(agent, FIRST, by_trace=True)
    told = fresh(first)
    say(agent, AGAIN, by_trace=True, tags=("ci",), metadata={"from": "build"}, environment={"os": "linux"})
    new = split(first)
    kept = fresh(first)
    assert new.pk != first.pk
    assert (new.content, new.tags, new.metadata, new.environment) == (AGAIN, ["ci"], {"from": "build"}, {"os": "linux"})
    assert (kept.content, kept.support_count) == (FIRST, 1)
    assert (kept.alpha, kept.beta) == pytest.approx((told.alpha, told.beta))
    assert quotes(first) == quotes(new) == 1
    with team_transaction(team):
        assert MemoryVector.objects.of(team).filter(memory_id=new.pk).exists()
        assert Relation.objects.of(team).get(source=new).kind == RelationKind.RELATES_TO
        assert not Merge.objects.of(team).exists()


def test_split_takes_the_one_that_is_named(agent, team) -> None:
    first = say(agent, FIRST, by_trace=True)
    say(agent, AGAIN, by_trace=True)
    say(agent, FIRST, by_trace=True)
    with team_transaction(team):
        older, newer = Merge.objects.of(team).order_by("created_at")
    assert split(first, merge=older.pk).content == AGAIN
    assert split(first).content == FIRST
    assert fresh(first).support_count == 1
    with pytest.raises(Conflict) as refusal:
        split(first)
    assert refusal.value.code == "nothing_merged"
    with pytest.raises(NotFound):
        split(first, merge=newer.pk)


def test_a_deleted_trace_takes_what_was_merged_from_it_along(agent, team) -> None:
    first = say(agent, FIRST, by_trace=True)
    quote = evidence(agent)
    say(agent, AGAIN, evidence=(quote,))
    with team_transaction(team):
        reflection.delete_trace(team=team, by=SYSTEM, trace=Trace.objects.of(team).get(pk=quote.trace_id))
        assert not Merge.objects.of(team).exists()
        actions.forget(team=team, by=SYSTEM, memory=fresh(first))


def test_forgetting_leaves_no_words_of_what_was_merged(agent, team) -> None:
    first = say(agent, FIRST)
    say(agent, AGAIN, by_trace=True)
    with team_transaction(team):
        assert Merge.objects.of(team).get().said["content"] == AGAIN
        actions.forget(team=team, by=SYSTEM, memory=fresh(first))
        assert not Merge.objects.of(team).exists()


def test_over_the_api(api, agent, team) -> None:
    first = say(agent, FIRST, by_trace=True)
    say(agent, AGAIN, by_trace=True)
    merges = api.get(f"/api/v1/memories/{first.pk}/merges").json()["results"]
    assert [(m["content"], m["counted"]) for m in merges] == [(AGAIN, True)]
    answer = api.post(f"/api/v1/memories/{first.pk}/split", {"merge": merges[0]["id"]})
    assert (answer.status_code, answer.json()["content"]) == (201, AGAIN)
    again = api.post(f"/api/v1/memories/{first.pk}/split", {})
    assert (again.status_code, again.json()["code"]) == (409, "nothing_merged")


def test_the_page_offers_it_and_does_it(browse, bob, carol, agent) -> None:
    first = say(agent, FIRST, by_trace=True)
    say(agent, AGAIN, by_trace=True)
    page = browse(bob).get(f"/memories/{first.pk}/").content.decode()
    assert f'action="/memories/{first.pk}/split/"' in page
    assert f'action="/memories/{first.pk}/split/"' not in browse(carol).get(f"/memories/{first.pk}/").content.decode()
    answer = browse(bob).post(f"/memories/{first.pk}/split/", follow=True)
    assert AGAIN in answer.content.decode()
    assert "memory of its own again" in answer.content.decode()
