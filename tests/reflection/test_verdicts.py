"""Verdicts: given once, carried out at once, taken back exactly; turns and claims."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import AuditEvent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict, Forbidden, Invalid, Refused
from memories import actions, scopes
from memories.actions import Draft, FeedbackItem
from memories.actions.changing import governed
from memories.enums import Kind, Status, Trust
from memories.models import Memory, Recall, RecallHit, Revision
from reflection.enums import BatchStatus, Decision, ItemState
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.sampling import close_due, open_batch
from reflection.review.turns import claim, next_item, take_next, turns_of
from reflection.review.undoing import ChangedSince, state_to_put_back
from reflection.review.verdicts import decide, undo
from tests import factories


@pytest.fixture
def batch(team: Team, agent) -> ReviewBatch:
    for n in range(5):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}", confidence=0.6)
    with team_transaction(team):
        return open_batch(team=team, by=SYSTEM)


@pytest.fixture
def item(batch: ReviewBatch) -> ReviewItem:
    with team_transaction(batch.team):
        return batch.items.order_by("position")[0]


def judge(item: ReviewItem, by: User, decision: str, **more) -> Verdict:
    more = {"version": ReviewItem.objects.get(pk=item.pk).version, **more}
    return decide(team=item.team, by=person(by), reviewer=by, item=item, decision=decision, **more)


def take_back(item: ReviewItem, by: User) -> Verdict:
    return undo(team=item.team, by=person(by), reviewer=by, item=item)


def memory_of(item: ReviewItem) -> Memory:
    return Memory.objects.get(pk=item.memory_id)


def state_of(item: ReviewItem) -> str:
    return ReviewItem.objects.get(pk=item.pk).state


# --- Each decision does what it says ---------------------------------------------------------------


def test_approve_makes_it_known(item: ReviewItem, bob: User) -> None:
    before = memory_of(item)
    verdict = judge(item, bob, "approve")
    memory = memory_of(item)
    assert (memory.status, memory.trust, memory.tier) == (Status.ACTIVE, Trust.HUMAN, "semantic")
    assert memory.confidence > before.confidence
    assert memory.approved_at is not None
    assert (verdict.decision, verdict.reviewer, verdict.memory_revision) == ("approve", bob, 1)
    assert state_of(item) == ItemState.DECIDED


def test_demote_takes_it_out_of_recall_and_says_why(item: ReviewItem, bob: User) -> None:
    verdict = judge(item, bob, "demote", reason="wrong", note="The endpoint moved in May.")
    assert memory_of(item).status == Status.DEMOTED
    assert (verdict.reason, verdict.note) == ("wrong", "The endpoint moved in May.")
    event = AuditEvent.objects.of(item.team).get(verb="memory.demoted")
    assert "endpoint" not in str(event.detail), "the audit holds no text"


def test_an_edit_is_a_revision_and_an_approval_and_counts_as_edited(item: ReviewItem, bob: User) -> None:
    verdict = judge(item, bob, "edit", content="Rule: better said.")
    memory = memory_of(item)
    assert (memory.content, memory.revision, memory.trust) == ("Rule: better said.", 2, Trust.HUMAN)
    assert (verdict.decision, verdict.memory_revision) == (Decision.EDIT, 2)


def test_flagging_hides_it_at_once(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "sensitive")
    memory = memory_of(item)
    assert (memory.status, memory.needs_review) == (Status.QUARANTINED, True)
    assert state_of(item) == ItemState.DECIDED


def test_cannot_tell_is_stored_changes_nothing_and_comes_back_at_the_end(batch, item, bob: User) -> None:
    before = governed(memory_of(item))
    judge(item, bob, "cannot_tell")
    assert governed(memory_of(item)) == before
    assert state_of(item) == ItemState.PENDING
    order = [place.item.pk for place in turns_of(batch.team, bob, batch).places]
    assert order[-1] == item.pk


def test_after_two_skips_it_is_somebody_elses(batch, item, alice: User, bob: User) -> None:
    judge(item, bob, "cannot_tell")
    judge(item, bob, "cannot_tell")
    places = {place.item.pk: place for place in turns_of(batch.team, bob, batch).places}
    assert not places[item.pk].mine_to_do
    others = {place.item.pk: place for place in turns_of(batch.team, alice, batch).places}
    assert others[item.pk].mine_to_do
    assert Verdict.objects.of(batch.team).filter(undone_at=None).count() == 1


def test_a_skip_gives_way_to_a_decision(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "cannot_tell")
    judge(item, bob, "approve")
    standing = Verdict.objects.of(item.team).filter(item=item, undone_at=None)
    assert [verdict.decision for verdict in standing] == ["approve"]
    assert Verdict.objects.of(item.team).filter(item=item).count() == 2


# --- Once ------------------------------------------------------------------------------------------


def test_the_same_form_sent_twice_is_one_verdict(item: ReviewItem, bob: User) -> None:
    first = judge(item, bob, "approve", version=1)
    again = judge(item, bob, "approve", version=1)
    assert first == again
    assert Verdict.objects.of(item.team).count() == 1
    assert AuditEvent.objects.of(item.team).filter(verb="memory.approved").count() == 1


def test_the_same_skip_sent_twice_is_one_skip(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "cannot_tell", version=1)
    verdict = judge(item, bob, "cannot_tell", version=1)
    assert verdict.before == {"skips": 1}
    assert Verdict.objects.of(item.team).count() == 1


def test_whoever_is_second_hears_who_was_first(item: ReviewItem, alice: User, bob: User) -> None:
    judge(item, bob, "approve", version=1)
    with pytest.raises(Conflict, match="bob@acme.test decided this already: approved") as refusal:
        judge(item, alice, "demote", version=1)
    assert refusal.value.extra["decision"] == "approve"
    assert refusal.value.extra["decided_by"] == str(bob)
    assert memory_of(item).status == Status.ACTIVE


def test_nobody_overrules_a_decision_with_a_fresh_version(item: ReviewItem, alice: User, bob: User) -> None:
    judge(item, bob, "approve")
    with pytest.raises(Conflict):
        judge(item, alice, "demote")


def test_changing_ones_mind_takes_an_undo(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "approve")
    with pytest.raises(Conflict, match="Undo that first"):
        judge(item, bob, "demote")
    take_back(item, bob)
    judge(item, bob, "demote")
    assert memory_of(item).status == Status.DEMOTED


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("decisions", [("approve", "demote"), ("approve", "approve"), ("edit", "sensitive")])
def test_two_reviewers_at_once(item: ReviewItem, alice: User, bob: User, decisions) -> None:
    start = Barrier(2)

    def run(reviewer: User, decision: str) -> str:
        start.wait()
        try:
            with team_transaction(item.team):
                return judge(item, reviewer, decision, version=1, content=f"By {reviewer}.").decision
        except Conflict as refusal:
            return refusal.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(run, (alice, bob), decisions))
    assert sorted(ended)[0] == "already_decided"
    expected = {"approve": Status.ACTIVE, "demote": Status.DEMOTED, "edit": Status.ACTIVE}
    with team_transaction(item.team):
        verdict = Verdict.objects.of(item.team).get()
        assert verdict.decision in ended
        assert memory_of(item).status == expected.get(verdict.decision, Status.QUARANTINED)


@pytest.mark.django_db(transaction=True)
def test_a_double_click_is_one_verdict(item: ReviewItem, bob: User) -> None:
    start = Barrier(3)

    def run(_: int) -> uuid.UUID:
        start.wait()
        try:
            with team_transaction(item.team):
                return judge(item, bob, "demote", version=1).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(run, range(3)))) == 1
    with team_transaction(item.team):
        assert Verdict.objects.of(item.team).count() == 1


# --- Refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        {"decision": "like"},
        {"decision": "demote", "reason": "ugly"},
        {"decision": "approve", "reason": "wrong"},
        {"decision": "approve", "note": "x" * 2001},
        {"decision": "edit"},
        {"decision": "edit", "content": "  "},
    ],
)
def test_a_judgement_that_is_none_is_refused(item: ReviewItem, bob: User, form) -> None:
    with pytest.raises(Invalid) as refusal:
        judge(item, bob, **form)
    assert refusal.value.errors
    assert state_of(item) == ItemState.PENDING
    assert not Verdict.objects.of(item.team).exists()


def test_an_edit_that_changes_nothing_leaves_the_item_open(item: ReviewItem, bob: User) -> None:
    with pytest.raises(Invalid, match="same as before"):
        judge(item, bob, "edit", content=memory_of(item).content)
    assert state_of(item) == ItemState.PENDING


def test_what_was_changed_while_it_was_read_is_not_decided(item: ReviewItem, bob: User) -> None:
    actions.revise(team=item.team, by=SYSTEM, memory=memory_of(item), content="Something else altogether.")
    with pytest.raises(Conflict) as refusal:
        judge(item, bob, "approve", revision=1)
    assert refusal.value.code == "memory_changed"
    assert state_of(item) == ItemState.PENDING
    assert judge(item, bob, "approve", revision=2).memory_revision == 2


def test_a_forgotten_memory_becomes_void(batch, item: ReviewItem, bob: User) -> None:
    actions.forget(team=item.team, by=SYSTEM, memory=memory_of(item))
    with pytest.raises(Conflict) as refusal:
        judge(item, bob, "approve")
    assert refusal.value.code == "void"
    assert state_of(item) == ItemState.VOID
    turns = turns_of(batch.team, bob, batch)
    assert turns.count(ItemState.VOID) == 1
    assert turns.next is not None
    assert turns.next.pk != item.pk


def test_nobody_judges_what_they_wrote(team: Team, agent, bob: User, alice: User) -> None:
    draft = Draft(content="Bob's own rule.", kind=Kind.FACT, source="page")
    mine = actions.remember(team=team, by=person(bob), scope=scopes.team_scope(team), draft=draft).memory
    batch = open_batch(team=team, by=SYSTEM)
    item = batch.items.get(memory=mine)
    assert next_item(team, bob, batch) is None
    assert next_item(team, alice, batch) == item
    with pytest.raises(Forbidden, match="wrote this memory yourself"):
        judge(item, bob, "approve")
    judge(item, alice, "approve")


def test_when_the_week_is_over_nothing_moves(batch, item: ReviewItem, bob: User) -> None:
    judge(item, bob, "demote")
    ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=timezone.now())
    item = ReviewItem.objects.select_related("batch").get(pk=item.pk)
    for late in (lambda: judge(item, bob, "approve"), lambda: take_back(item, bob)):
        with pytest.raises(Conflict, match="is closed: its verdicts stand") as refusal:
            late()
        assert refusal.value.code == "batch_closed"


def test_a_week_that_closes_while_a_verdict_waits_for_the_item_is_over(batch, item: ReviewItem, bob: User) -> None:
    seen = ReviewItem.objects.select_related("batch").get(pk=item.pk)
    judge(seen, bob, "demote")
    ReviewBatch.objects.filter(pk=batch.pk).update(status=BatchStatus.CLOSED)  # by the schedule, meanwhile
    assert seen.batch.status == BatchStatus.OPEN
    for late in (lambda: judge(seen, bob, "approve"), lambda: take_back(seen, bob)):
        with pytest.raises(Conflict, match="is closed: its verdicts stand"):
            late()
    close_due(timezone.now())
    assert ReviewBatch.objects.get(pk=batch.pk).status == BatchStatus.CLOSED
    assert memory_of(item).status == Status.DEMOTED


# --- Undo ------------------------------------------------------------------------------------------

DECISIONS = [
    {"decision": "approve"},
    {"decision": "demote", "reason": "trivial"},
    {"decision": "edit", "content": "Other words, for now."},
    {"decision": "cannot_tell"},
    {"decision": "sensitive"},
]


@pytest.mark.parametrize("form", DECISIONS, ids=lambda form: form["decision"])
@pytest.mark.parametrize("status", [Status.ACTIVE, Status.CANDIDATE])
def test_undo_puts_the_memory_back_exactly(item: ReviewItem, bob: User, form, status) -> None:
    Memory.objects.filter(pk=item.memory_id).update(status=status, weight=0.5, needs_review=True)
    before = memory_of(item)
    judge(item, bob, **form)
    verdict = take_back(item, bob)
    after = memory_of(item)
    assert governed(after) == governed(before)
    assert (after.content, after.structure, after.tags) == (before.content, before.structure, before.tags)
    assert verdict.undone_at is not None
    assert state_of(item) == ItemState.PENDING


def test_the_words_of_an_undone_edit_stay_in_the_history(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "edit", content="Other words, for now.")
    take_back(item, bob)
    assert memory_of(item).revision == 3
    kept = Revision.objects.of(item.team).filter(memory_id=item.memory_id).order_by("number")
    assert kept[1].content == "Other words, for now."


def test_undo_gives_the_item_back_to_the_same_person(batch, item: ReviewItem, alice, bob: User) -> None:
    judge(item, bob, "approve")
    take_back(item, bob)
    held = {place.item.pk: place.held for place in turns_of(batch.team, alice, batch).places}
    assert held[item.pk]


def test_a_second_undo_changes_nothing(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "approve")
    first = take_back(item, bob)
    judge_count = AuditEvent.objects.of(item.team).count()
    assert take_back(item, bob) == first
    assert AuditEvent.objects.of(item.team).count() == judge_count


def test_nobody_undoes_anothers_verdict(item: ReviewItem, alice: User, bob: User) -> None:
    judge(item, bob, "approve")
    with pytest.raises(Conflict) as refusal:
        take_back(item, alice)
    assert refusal.value.code == "nothing_to_undo"
    assert state_of(item) == ItemState.DECIDED


def test_undo_keeps_what_others_learnt_meanwhile(item: ReviewItem, agent, bob: User) -> None:
    before = memory_of(item)
    judge(item, bob, "approve")
    recall = Recall.objects.create(team=item.team, agent=agent, status="matched")
    RecallHit.objects.create(team=item.team, recall=recall, memory=before, revision=1, rank=1, score=1.0, relevance=1.0)
    feedback = [FeedbackItem(str(before.pk), adopted=True, success=False)]
    actions.give_feedback(team=item.team, by=SYSTEM, recall=recall, items=feedback)
    take_back(item, bob)
    after = memory_of(item)
    assert (after.alpha, after.beta) == pytest.approx((before.alpha, before.beta + 1))
    assert after.confidence == pytest.approx(after.alpha / (after.alpha + after.beta))
    assert (after.tier, after.trust, after.approved_at) == (before.tier, before.trust, None)


def test_undo_does_not_undo_what_somebody_did_since(item: ReviewItem, alice: User, bob: User) -> None:
    judge(item, bob, "approve")
    actions.archive(team=item.team, by=person(alice), memory=memory_of(item))
    with pytest.raises(Conflict, match="changed this memory after you decided") as refusal:
        take_back(item, bob)
    assert refusal.value.code == "changed_since"
    assert memory_of(item).status == Status.ARCHIVED
    assert state_of(item) == ItemState.DECIDED


def test_undo_of_what_was_forgotten_since_is_refused(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "demote")
    actions.forget(team=item.team, by=SYSTEM, memory=memory_of(item))
    with pytest.raises(Conflict) as refusal:
        take_back(item, bob)
    assert refusal.value.code == "forgotten"


def test_every_verdict_and_undo_leaves_its_event(item: ReviewItem, bob: User) -> None:
    judge(item, bob, "demote", reason="duplicate")
    take_back(item, bob)
    events = AuditEvent.objects.of(item.team).filter(actor_id=str(bob.pk)).order_by("at")
    assert [event.verb for event in events] == [
        "memory.demoted",
        "review.decided",
        "memory.verdict_undone",
        "review.undone",
    ]


FIELDS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["active", "demoted"]),
        "tier": st.sampled_from(["episodic", "semantic"]),
        "alpha": st.integers(1, 9).map(float),
        "beta": st.integers(1, 9).map(float),
        "confidence": st.floats(0, 1),
        "pinned": st.booleans(),
    }
)


@given(FIELDS, FIELDS)
def test_untouched_since_it_goes_back_exactly(before, after) -> None:
    assert state_to_put_back(before, after, after) == before


@given(FIELDS, FIELDS, FIELDS)
def test_what_came_later_stays(before, after, now) -> None:
    # Counts only ever grow: the verdict's observation, then those of others.
    for name in ("alpha", "beta"):
        after[name] += before[name]
        now[name] += after[name]
    if now["status"] != after["status"]:
        with pytest.raises(ChangedSince):
            state_to_put_back(before, after, now)
        return
    state = state_to_put_back(before, after, now)
    grown = now["alpha"] - after["alpha"] + now["beta"] - after["beta"]
    assert state["alpha"] + state["beta"] == before["alpha"] + before["beta"] + grown
    for name in ("tier", "pinned"):
        assert state[name] == (now[name] if now[name] != after[name] else before[name])


# --- Turns and claims ------------------------------------------------------------------------------


def test_each_reviewer_has_an_order_that_lasts(batch: ReviewBatch, alice: User, bob: User) -> None:
    orders = {
        person_.pk: [place.item.pk for place in turns_of(batch.team, person_, batch).places] for person_ in (alice, bob)
    }
    assert sorted(orders[alice.pk]) == sorted(orders[bob.pk])
    assert [place.item.pk for place in turns_of(batch.team, bob, batch).places] == orders[bob.pk]


def test_orders_of_reviewers_differ(team: Team, agent, batch: ReviewBatch) -> None:
    people = [factories.member(team, f"r{n}@acme.test", "reviewer") for n in range(6)]
    orders = {tuple(p.item.pk for p in turns_of(team, person_, batch).places) for person_ in people}
    assert len(orders) > 1, "six orders of five items: the same for all only once in 120**5"


def test_decided_items_come_first_by_time(batch: ReviewBatch, bob: User) -> None:
    done = []
    for _ in range(3):
        item = next_item(batch.team, bob, batch)
        judge(item, bob, "approve")
        done.append(item.pk)
    assert [place.item.pk for place in turns_of(batch.team, bob, batch).places][:3] == done


def test_a_claim_keeps_others_away_for_ten_minutes(batch, item: ReviewItem, alice: User, bob: User) -> None:
    now = timezone.now()
    assert claim(item.team, bob, item, now)
    assert claim(item.team, bob, item, now), "again, by the same person"
    assert not claim(item.team, alice, item, now + timedelta(minutes=9))
    assert claim(item.team, alice, item, now + timedelta(minutes=10))


def test_next_passes_over_what_a_colleague_has_open(batch: ReviewBatch, alice: User, bob: User) -> None:
    taken = [take_next(batch.team, reviewer, batch) for reviewer in (alice, bob) for _ in range(2)]
    assert taken[0] == taken[1], "one's own claim is renewed, not piled up"
    assert taken[0] != taken[2]
    for item in batch.items.all():
        claim(batch.team, alice, item)
    assert next_item(batch.team, bob, batch) is None or next_item(batch.team, bob, batch) == taken[2]


def test_a_claim_does_not_stop_a_decision(item: ReviewItem, alice: User, bob: User) -> None:
    assert claim(item.team, alice, item)
    judge(item, bob, "approve")
    assert state_of(item) == ItemState.DECIDED
    with pytest.raises(Refused):
        judge(item, alice, "approve", version=1)


def test_a_decided_item_cannot_be_claimed(item: ReviewItem, alice: User, bob: User) -> None:
    judge(item, bob, "approve")
    assert not claim(item.team, alice, item)


@pytest.mark.django_db(transaction=True)
def test_two_people_never_get_the_same_item(team: Team, batch: ReviewBatch) -> None:
    people = [factories.member(team, f"r{n}@acme.test", "reviewer") for n in range(4)]
    start = Barrier(4)

    def run(reviewer: User) -> uuid.UUID | None:
        start.wait()
        try:
            with team_transaction(team):
                item = take_next(team, reviewer, batch)
                return item.pk if item else None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(run, people))
    assert None not in taken
    assert len(set(taken)) == 4
