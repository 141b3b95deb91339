"""Contradictions: noticed when written, shown as contested, settled by a person or by traces, undone."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import AuditEvent
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict, Invalid
from memories import actions, queries, scopes
from memories.actions import FeedbackItem
from memories.enums import ConflictReason, Kind, RelationKind, Resolution, ReviewMode, Status, Tier
from memories.models import Memory, Recall, Relation, Scope, Settlement
from memories.ranking import CONTESTED_STEP, hold_back
from tests import factories
from tests.memories.judging import DO, DONT, PORT_NEW, PORT_OLD, conflict_of, fresh, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def sides(agent) -> tuple[Memory, Memory]:
    return say(agent, PORT_OLD), say(agent, PORT_NEW)


def settle(memory: Memory, user, decision: str, **more) -> Settlement:
    edge = conflict_of(memory)
    with team_transaction(memory.team):
        return actions.settle_conflict(team=memory.team, by=person(user), conflict=edge, decision=decision, **more)


def undo(memory: Memory, user) -> Settlement:
    edge = conflict_of(memory)
    with team_transaction(memory.team):
        return actions.undo_settlement(team=memory.team, by=person(user), conflict=edge)


# --- Noticing ------------------------------------------------------------------------------------------


def test_both_are_kept_joined_and_flagged(sides, team) -> None:
    old, new = map(fresh, sides)
    edge = conflict_of(new)
    assert (edge.source_id, edge.target_id, edge.note) == (new.pk, old.pk, ConflictReason.OTHER_VALUE)
    assert old.status == new.status == Status.ACTIVE
    assert old.needs_review
    assert new.needs_review
    with team_transaction(team):
        assert queries.contested(team, [old.pk, new.pk]) == {old.pk, new.pk}
        verbs = AuditEvent.objects.of(team).filter(verb="memory.contested").values_list("object_id", flat=True)
        assert set(verbs) == {str(old.pk), str(new.pk)}


def test_said_again_it_is_joined_once(sides, agent, team) -> None:
    say(agent, PORT_NEW)
    say(agent, PORT_OLD)
    with team_transaction(team):
        assert Relation.objects.of(team).count() == 1


def test_two_values_are_never_merged_however_close_their_words(agent) -> None:
    first, second = (say(agent, f"The default region of the Berlin office is region-0-{x}.") for x in "ab")
    assert first.pk != second.pk
    assert conflict_of(second).target_id == first.pk


def test_a_flag_leaves_an_open_page_valid(agent) -> None:
    seen = say(agent, PORT_OLD)
    say(agent, PORT_NEW)
    with team_transaction(agent.team):
        actions.pin(team=agent.team, by=SYSTEM, memory=seen)  # compare-and-set on what was read before
    assert fresh(seen).needs_review


@pytest.mark.parametrize(
    "other",
    [{"tier": Tier.WORKING}, {"sequence": 3, "session_id": "s"}, {"kind": Kind.TASK}],
    ids=["working", "turn", "episode"],
)
def test_what_stands_by_itself_contradicts_nothing(agent, team, other) -> None:
    say(agent, PORT_OLD)
    say(agent, PORT_NEW, **other)
    with team_transaction(team):
        assert not Relation.objects.of(team).exists()


def test_other_scopes_and_teams_are_not_compared(agent, other_agent, team) -> None:
    say(agent, PORT_OLD)
    say(factories.agent(team, "second"), PORT_NEW)
    say(other_agent, PORT_NEW)
    with team_transaction(team):
        assert not Relation.objects.of(team).exists()
    with team_transaction(other_agent.team):
        assert not Relation.objects.of(other_agent.team).exists()


def test_two_in_one_batch_are_compared(api, team) -> None:
    rows = [{"kind": "fact", "content": PORT_OLD}, {"kind": "fact", "content": PORT_NEW}]
    answer = api.post("/api/v1/memories/bulk", {"memories": rows}).json()
    assert [row["status"] for row in answer["results"]] == ["created", "created"]
    with team_transaction(team):
        assert Relation.objects.of(team).count() == 1


def test_an_edit_can_start_a_conflict_and_end_it(agent, team, alice) -> None:
    old, new = say(agent, PORT_OLD), say(agent, "The staging database is backed up every night.")
    with team_transaction(team):
        actions.revise(team=team, by=person(alice), memory=fresh(new), content=PORT_NEW)
        assert queries.contested(team, [old.pk]) == {old.pk}
        actions.revise(team=team, by=person(alice), memory=fresh(new), content="Backups are kept for a year.")
        assert queries.contested(team, [old.pk]) == set()
    assert not fresh(old).needs_review
    assert conflict_of(old).settled_at is not None


# --- Settling by a person ------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "winner"), [(Resolution.KEEP_LEFT, 0), (Resolution.KEEP_RIGHT, 1)])
def test_the_loser_is_superseded_and_the_edge_says_by_what(sides, team, alice, decision, winner) -> None:
    before = [memory.confidence for memory in sides]
    settle(sides[0], alice, decision, note="looked it up")
    kept, lost = fresh(sides[winner]), fresh(sides[1 - winner])
    assert (kept.status, lost.status) == (Status.ACTIVE, Status.SUPERSEDED)
    assert not kept.needs_review
    assert not lost.needs_review
    assert kept.confidence > before[winner]
    assert lost.confidence < before[1 - winner]
    with team_transaction(team):
        edge = Relation.objects.of(team).get(kind=RelationKind.SUPERSEDES)
        assert (edge.source_id, edge.target_id) == (kept.pk, lost.pk)
        event = AuditEvent.objects.of(team).get(verb="conflict.settled")
        assert (event.actor_kind, event.detail["decision"]) == ("person", decision)
        assert "looked" not in str(event.detail)


def test_both_may_be_true_when_it_is_said_when(sides, alice) -> None:
    with pytest.raises(Invalid):
        settle(sides[0], alice, Resolution.BOTH, condition="  ")
    settlement = settle(sides[0], alice, Resolution.BOTH, condition="5433 since the move to version 16")
    assert settlement.condition.startswith("5433")
    assert {fresh(side).status for side in sides} == {Status.ACTIVE}
    assert not any(fresh(side).needs_review for side in sides)


def test_neither_demotes_both(sides, alice) -> None:
    settle(sides[0], alice, Resolution.NEITHER)
    assert {fresh(side).status for side in sides} == {Status.DEMOTED}


def test_a_memory_in_two_conflicts_stays_flagged_until_both_are_settled(sides, agent, team, alice) -> None:
    say(agent, "The staging database listens on port 6000.")
    with team_transaction(team):
        edges = list(Relation.objects.of(team).filter(kind=RelationKind.CONTRADICTS).order_by("created_at"))
        assert len(edges) == 3
        actions.settle_conflict(
            team=team, by=person(alice), conflict=edges[0], decision=Resolution.BOTH, condition="before and after"
        )
    assert fresh(sides[0]).needs_review


def test_it_is_settled_once(sides, alice, bob) -> None:
    edge = conflict_of(sides[0])
    settle(sides[0], alice, Resolution.KEEP_LEFT)
    with pytest.raises(Conflict) as refusal, team_transaction(edge.team):
        actions.settle_conflict(team=edge.team, by=person(bob), conflict=edge, decision=Resolution.KEEP_RIGHT)
    assert refusal.value.code == "already_settled"
    assert fresh(sides[1]).status == Status.SUPERSEDED


@pytest.mark.parametrize("decision", Resolution.values)
def test_undo_puts_everything_back(sides, alice, bob, team, decision) -> None:
    before = [(m.status, m.confidence, m.alpha, m.beta, m.needs_review) for m in map(fresh, sides)]
    settle(sides[0], alice, decision, condition="by day and by night")
    undo(sides[0], bob)
    assert [(m.status, m.confidence, m.alpha, m.beta, m.needs_review) for m in map(fresh, sides)] == before
    with team_transaction(team):
        assert not Relation.objects.of(team).filter(kind=RelationKind.SUPERSEDES).exists()
        assert queries.contested(team, [sides[0].pk]) == {sides[0].pk}
        assert Settlement.objects.of(team).get().undone_at is not None
    settle(sides[0], bob, Resolution.KEEP_RIGHT)  # and it can be decided anew
    assert fresh(sides[0]).status == Status.SUPERSEDED


def test_undo_keeps_the_feedback_that_came_since(sides, alice, team, api) -> None:
    settle(sides[0], alice, Resolution.KEEP_RIGHT)
    found = api.post("/api/v1/recall", {"query": "staging database port", "min_relevance": 0}).json()
    with team_transaction(team):
        recall = Recall.objects.of(team).get(pk=found["recall_id"])
        items = [FeedbackItem(str(sides[1].pk), adopted=True, success=True)]
        actions.give_feedback(team=team, by=SYSTEM, recall=recall, items=items)
    undo(sides[0], alice)
    assert fresh(sides[1]).alpha == pytest.approx(sides[1].alpha + 1)


def test_undo_is_refused_when_a_side_has_changed(sides, alice, team) -> None:
    settle(sides[0], alice, Resolution.KEEP_LEFT)
    with team_transaction(team):
        actions.pin(team=team, by=SYSTEM, memory=fresh(sides[0]))
    with pytest.raises(Conflict) as refusal:
        undo(sides[0], alice)
    assert refusal.value.code == "changed_since"
    assert fresh(sides[1]).status == Status.SUPERSEDED
    with pytest.raises(Conflict):
        settle(sides[0], alice, Resolution.KEEP_RIGHT)


def test_a_forgotten_side_ends_the_conflict(sides, team) -> None:
    with team_transaction(team):
        actions.forget(team=team, by=SYSTEM, memory=fresh(sides[0]))
        assert queries.contested(team, [sides[1].pk]) == set()
        assert not Relation.objects.of(team).exists()


# --- Settling by traces ----------------------------------------------------------------------------------


def test_two_independent_traces_settle_it(agent, team) -> None:
    old = say(agent, PORT_OLD, by_trace=True)
    new = say(agent, PORT_NEW, by_trace=True)
    assert fresh(old).status == Status.ACTIVE  # one is not enough
    say(agent, PORT_NEW, by_trace=True)
    assert fresh(old).status == Status.SUPERSEDED
    assert fresh(new).status == Status.ACTIVE
    with team_transaction(team):
        settlement = Settlement.objects.of(team).get()
        assert (settlement.actor_kind, settlement.actor_label) == ("system", "two independent traces")


def test_what_a_person_opened_again_no_trace_settles(agent, alice) -> None:
    old, new = say(agent, PORT_OLD, by_trace=True), say(agent, PORT_NEW, by_trace=True)
    say(agent, PORT_NEW, by_trace=True)
    undo(new, alice)
    say(agent, PORT_NEW, by_trace=True)
    assert fresh(old).status == Status.ACTIVE


def test_traces_that_disagree_settle_nothing(agent) -> None:
    old, new = say(agent, PORT_OLD, by_trace=True), say(agent, PORT_NEW, by_trace=True)
    say(agent, PORT_OLD, by_trace=True)
    say(agent, PORT_NEW, by_trace=True)
    assert {fresh(old).status, fresh(new).status} == {Status.ACTIVE}


def test_traces_overrule_no_person(agent, team, alice) -> None:
    old = say(agent, PORT_OLD)
    with team_transaction(team):
        actions.approve(team=team, by=person(alice), memory=fresh(old))
    new = say(agent, PORT_NEW, by_trace=True)
    for _ in range(3):
        say(agent, PORT_NEW, by_trace=True)
    assert fresh(old).status == Status.ACTIVE
    assert fresh(new).needs_review


# --- Recall ------------------------------------------------------------------------------------------------


def ask(api, query: str = "which port does the staging database listen on?") -> dict:
    return api.post("/api/v1/recall", {"query": query, "min_relevance": 0}).json()


def test_recall_says_contested_and_prefers_the_more_confident(agent, api) -> None:
    sure = say(agent, "The invoice deadline is Monday.", confidence=0.8)
    say(agent, "The invoice deadline is Friday.", confidence=0.2)
    hits = ask(api, "is the invoice deadline Friday?")["hits"]
    assert hits[0]["memory"] == str(sure.pk)
    assert hits[0]["contested"]
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert "(contested)" in ask(api, "is the invoice deadline Friday?")["context"]


def test_what_a_person_approved_stands_first_however_sure_the_other_claims_to_be(agent, api, team, alice) -> None:
    approved = say(agent, "The invoice deadline is Monday.", confidence=0.3)
    with team_transaction(team):
        actions.approve(team=team, by=person(alice), memory=fresh(approved))
    say(agent, "The invoice deadline is Friday.", confidence=1.0)
    assert fresh(approved).confidence < 0.8
    assert ask(api, "is the invoice deadline Friday?")["hits"][0]["memory"] == str(approved.pk)


def test_a_settled_conflict_is_not_contested_and_the_loser_is_not_recalled(sides, alice, api) -> None:
    settle(sides[0], alice, Resolution.KEEP_RIGHT)
    answer = ask(api)
    assert [hit["memory"] for hit in answer["hits"]] == [str(sides[1].pk)]
    assert not answer["hits"][0]["contested"]


def test_warnings_come_back_as_warnings(agent, api) -> None:
    say(agent, DONT, kind=Kind.EXPERIENCE)
    answer = ask(api, "payment call timed out")
    assert answer["hits"][0]["warning"]
    assert "- [warning, private-coder] Do not retry" in answer["context"]


def test_advice_against_a_trusted_memory_waits_for_a_person(agent, team, alice, api) -> None:
    trusted = say(agent, DO, kind=Kind.EXPERIENCE)
    with team_transaction(team):
        actions.approve(team=team, by=person(alice), memory=fresh(trusted))
    against = say(agent, DONT, kind=Kind.EXPERIENCE, confidence=1.0)
    assert fresh(against).status == Status.QUARANTINED
    assert not fresh(trusted).needs_review
    assert [hit["memory"] for hit in ask(api, "payment call timed out")["hits"]] == [str(trusted.pk)]
    with team_transaction(team):
        released = actions.release(team=team, by=person(alice), memory=fresh(against))
        assert (released.status, released.trust, released.needs_review) == (Status.CANDIDATE, "agent", True)
        assert queries.contested(team, [trusted.pk]) == {trusted.pk}  # now a conflict for a person to settle


def test_a_persons_own_advice_does_not_wait(agent, team, alice) -> None:
    trusted = say(agent, DO, kind=Kind.EXPERIENCE)
    with team_transaction(team):
        actions.approve(team=team, by=person(alice), memory=fresh(trusted))
    against = say(agent, DONT, kind=Kind.EXPERIENCE, trust="human")
    assert fresh(against).status == Status.ACTIVE


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_settle_it_once(agent, team, alice, bob) -> None:
    left, right = say(agent, PORT_OLD), say(agent, PORT_NEW)
    edge = conflict_of(right)
    told: list[str] = []

    def decide(user, decision: str) -> None:
        try:
            with team_transaction(team):
                actions.settle_conflict(team=team, by=person(user), conflict=edge, decision=decision)
            told.append(decision)
        except Conflict as refusal:
            told.append(refusal.code)
        finally:
            connection.close()

    calls = ((alice, Resolution.KEEP_LEFT), (bob, Resolution.KEEP_RIGHT))
    threads = [threading.Thread(target=decide, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count("already_settled") == 1
    statuses = sorted((fresh(left).status, fresh(right).status))
    assert statuses == [Status.ACTIVE, Status.SUPERSEDED]
    with team_transaction(team):
        assert Settlement.objects.of(team).count() == 1


# --- The endpoints ------------------------------------------------------------------------------------------


def test_over_the_api(sides, api, team_api, team) -> None:
    (row,) = api.get("/api/v1/conflicts").json()["results"]
    assert (row["left"]["id"], row["right"]["id"]) == (str(sides[0].pk), str(sides[1].pk))
    assert (row["reason"], row["in_words"]) == ("other_value", "Same subject and attribute, another value")
    address = f"/api/v1/conflicts/{row['id']}"
    assert team_api.post(f"{address}/resolve", {"decision": "burn"}).status_code == 422
    vague = team_api.post(f"{address}/resolve", {"decision": "both"})
    assert (vague.status_code, vague.json()["errors"][0]["field"]) == (422, "condition")
    done = team_api.post(f"{address}/resolve", {"decision": "keep_right", "note": "asked jane.roe@example.com"}).json()
    assert (done["left"]["status"], done["right"]["status"]) == ("superseded", "active")
    assert done["settlement"]["decision"] == "keep_right"
    assert "jane.roe" not in done["settlement"]["note"]  # masked like every payload
    assert team_api.post(f"{address}/resolve", {"decision": "keep_left"}).json()["code"] == "already_settled"
    assert api.get("/api/v1/conflicts").json()["results"] == []
    assert len(api.get("/api/v1/conflicts?state=settled").json()["results"]) == 1
    back = team_api.post(f"{address}/undo", {}).json()
    assert (back["left"]["status"], back["settlement"]) == ("active", None)
    assert team_api.post(f"{address}/undo", {}).json()["code"] == "nothing_to_undo"


def test_an_agent_sees_only_conflicts_between_memories_it_may_see(sides, team, other_api) -> None:
    second = factories.api_client(team, factories.agent(team, "second"))
    edge = conflict_of(sides[0])
    for client in (second, other_api):
        assert client.get("/api/v1/conflicts").json()["results"] == []
        assert client.post(f"/api/v1/conflicts/{edge.pk}/resolve", {"decision": "neither"}).status_code == 404


# --- Ranking, pure ----------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcdef")


@given(
    st.dictionaries(NAMES, st.floats(0, 1), min_size=2),
    st.lists(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] != pair[1])),
    st.fixed_dictionaries({name: st.tuples(st.booleans(), st.floats(0, 1)) for name in "abcdef"}),
)
def test_the_less_believed_side_never_stands_first(scores, pairs, belief) -> None:
    held = hold_back(scores, pairs, belief)
    assert held.keys() == scores.keys()
    assert all(0 <= held[name] <= scores[name] for name in scores)
    best = max(held, key=lambda name: (belief[name], held[name]))
    assert held[best] == scores[best]  # what is believed most is never held back
    for a, b in pairs:
        if a in held and b in held and belief[a] > belief[b]:
            assert held[b] <= max(scores[a] - CONTESTED_STEP, 0)


def test_an_agent_does_not_read_in_a_conflict_what_waits_for_a_review(agent, team, api, team_api, alice) -> None:
    with team_transaction(team):
        shared = scopes.team_scope(team)
    say(agent, PORT_OLD, scope=shared)
    with team_transaction(team):
        Scope.objects.of(team).filter(pk=shared.pk).update(review_mode=ReviewMode.GATE_ALL)
        shared.refresh_from_db()
    held = say(factories.agent(team, "second"), PORT_NEW, scope=shared)
    assert held.status == Status.CANDIDATE
    edge = conflict_of(held)
    assert PORT_NEW not in api.get("/api/v1/conflicts").content.decode()
    assert api.post(f"/api/v1/conflicts/{edge.pk}/resolve", {"decision": "keep_left"}).status_code == 404
    assert len(team_api.get("/api/v1/conflicts").json()["results"]) == 1
    with team_transaction(team):
        actions.approve(team=team, by=person(alice), memory=fresh(held))
    assert len(api.get("/api/v1/conflicts").json()["results"]) == 1
