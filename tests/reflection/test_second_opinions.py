"""Two people on one memory: blind to each other, nothing lost, disagreements settled, known answers harmless."""

from __future__ import annotations

import csv
import io
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import AuditEvent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict, Forbidden, Invalid, Refused
from memories import actions
from memories.actions.changing import governed
from memories.enums import Status
from memories.models import Memory
from reflection.enums import BatchStatus, Decision, ItemState, Stratum
from reflection.exporting import writing
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review import metric_queries, metrics
from reflection.review.canaries import caught_by
from reflection.review.drawing import Drawn, doubled, pick_canaries
from reflection.review.sampling import close_due, open_batch
from reflection.review.settling import settle
from reflection.review.standing import Said, stand
from reflection.review.turns import turns_of
from reflection.review.verdicts import decide, undo
from tests import factories


@pytest.fixture
def dora(team: Team) -> User:
    return factories.member(team, "dora@acme.test", "reviewer")


@pytest.fixture
def batch(team: Team, agent, alice: User, bob: User) -> ReviewBatch:
    for n in range(5):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}", confidence=0.6)
    with team_transaction(team):
        return open_batch(team=team, by=SYSTEM)


@pytest.fixture
def item(batch: ReviewBatch) -> ReviewItem:
    """The one of five that two people judge."""
    with team_transaction(batch.team):
        return batch.items.select_related("batch").get(quorum=2)


def judge(item: ReviewItem, by: User, decision: str, **more) -> Verdict:
    more = {"version": ReviewItem.objects.get(pk=item.pk).version, **more}
    return decide(team=item.team, by=person(by), reviewer=by, item=item, decision=decision, **more)


def end(item: ReviewItem, by: User, decision: str, **more) -> Verdict:
    more = {"version": ReviewItem.objects.get(pk=item.pk).version, **more}
    return settle(team=item.team, by=person(by), reviewer=by, item=item, decision=decision, **more)


def take_back(item: ReviewItem, by: User) -> Verdict:
    return undo(team=item.team, by=person(by), reviewer=by, item=item)


def memory_of(item: ReviewItem) -> Memory:
    return Memory.objects.get(pk=item.memory_id)


def stands(item: ReviewItem) -> tuple[str, str]:
    fresh = ReviewItem.objects.get(pk=item.pk)
    return fresh.state, fresh.outcome


# --- What opinions amount to, and who is drawn ---------------------------------------------------------

OPINIONS = st.lists(st.builds(Said, st.sampled_from(["approve", "demote", "sensitive"])), max_size=4)


@given(OPINIONS, st.integers(1, 2))
def test_there_is_an_outcome_only_when_enough_people_agree(opinions, quorum) -> None:
    state, outcome = stand(opinions, quorum)
    assert (state == ItemState.DECIDED) == bool(outcome)
    if outcome:
        assert {one.decision for one in opinions} == {outcome}
        assert len(opinions) >= quorum or outcome == "sensitive"
    assert stand(opinions[::-1], quorum) == (state, outcome), "who was first does not matter"


def test_edits_agree_on_the_words() -> None:
    assert stand([Said("edit", "a"), Said("edit", "a")], 2) == ("decided", "edit")
    assert stand([Said("edit", "a"), Said("edit", "b")], 2) == ("conflicted", "")


@given(st.lists(st.uuids(), unique=True, max_size=60), st.floats(0, 1))
def test_the_share_for_two_is_drawn_again_the_same(ids, overlap) -> None:
    drawn = [Drawn(ident, Stratum.RANDOM, 0.5) for ident in ids]
    once = {one.memory_id for one in doubled("seed", drawn, overlap) if one.quorum == 2}
    assert once == {one.memory_id for one in doubled("seed", drawn[::-1], overlap) if one.quorum == 2}
    assert abs(len(once) - overlap * len(ids)) <= 1
    assert len(doubled("seed", drawn, overlap)) == len(ids)


@given(st.integers(0, 200), st.integers(0, 10), st.integers(0, 20))
def test_known_answers_stay_under_five_percent(others: int, most: int, known: int) -> None:
    answers = {uuid.uuid4(): "approve" if at % 2 else "demote" for at in range(known)}
    picked = pick_canaries("seed", answers, {uuid.uuid4() for _ in range(others)}, most)
    assert len(picked) <= most
    assert not picked or len(picked) <= 0.05 * (others + len(picked))
    assert all(one.expected == answers[one.memory_id] for one in picked)


def test_a_fifth_is_for_two_but_not_where_one_person_reviews(team: Team, agent, batch) -> None:
    assert sorted(batch.items.values_list("quorum", flat=True)) == [1, 1, 1, 1, 2]
    alone = factories.team("alone", owner="solo@alone.test")
    helper = factories.agent(alone, "helper")
    for n in range(10):
        factories.memory(helper, f"Rule {n}: {uuid.uuid4()}")
    with team_transaction(alone):
        assert set(open_batch(team=alone, by=SYSTEM).items.values_list("quorum", flat=True)) == {1}


# --- Blind ---------------------------------------------------------------------------------------------


def test_the_first_opinion_changes_nothing_and_is_told_to_nobody(item, alice, bob, browse) -> None:
    before = governed(memory_of(item))
    judge(item, alice, "demote", reason="wrong", note="It moved in May.")
    assert governed(memory_of(item)) == before
    assert stands(item) == ("pending", "")
    place = next(p for p in turns_of(item.team, bob, item.batch).places if p.item.pk == item.pk)
    assert place.mine_to_do
    client = browse(bob)
    for address in (reverse("review-item", args=[item.pk]), reverse("review-batch", args=[item.batch.week])):
        page = client.get(address).content.decode()
        assert "It moved in May" not in page
        assert "Wrong or outdated</span>" not in page
    rows = client.get(reverse("review-batch-export", args=[item.batch.week, "jsonl"])).content.decode().splitlines()
    row = next(row for row in map(json.loads, rows) if row["item"] == str(item.pk))
    assert (row["decision"], row["opinions"], row["stratum"]) == (None, [], None)
    with team_transaction(item.team):
        event = AuditEvent.objects.of(item.team).get(verb="review.decided")
    assert "demote" not in str(event.detail), "the audit keeps the blind too"


def exported(team: Team, kind: str, field: str) -> set[str]:
    """A column of a table in the export of a whole team."""
    lines = b"".join(writing.pieces(team)).splitlines()
    return {row[field] for row in map(json.loads, lines) if row["type"] == kind}


def test_the_export_of_a_team_keeps_the_blind_too(item, alice, bob) -> None:
    waiting = str(judge(item, alice, "demote", note="It moved in May.").pk)
    assert exported(item.team, "verdict", "id") == set()
    judge(item, bob, "demote")
    assert waiting in exported(item.team, "verdict", "id")
    take_back(item, bob)
    assert exported(item.team, "verdict", "id") == set(), "bob is to judge it again"
    ReviewBatch.objects.filter(pk=item.batch_id).update(status=BatchStatus.CLOSED)
    assert waiting in exported(item.team, "verdict", "id")


def test_whoever_was_first_is_not_asked_again_and_may_take_it_back(item, alice, bob, browse) -> None:
    judge(item, alice, "approve")
    place = next(p for p in turns_of(item.team, alice, item.batch).places if p.item.pk == item.pk)
    assert (place.mine_to_do, place.is_judged) == (False, True)
    page = browse(alice).get(reverse("review-item", args=[item.pk])).content.decode()
    assert "waits for a second opinion" in page
    take_back(item, alice)
    place = next(p for p in turns_of(item.team, alice, item.batch).places if p.item.pk == item.pk)
    assert place.mine_to_do


# --- Both ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "status"), [("approve", Status.ACTIVE), ("demote", Status.DEMOTED), ("edit", Status.ACTIVE)]
)
def test_two_who_agree_decide_once_and_either_may_take_it_back(item, alice, bob, decision, status) -> None:
    before = governed(memory_of(item))
    words = {"content": "Rule: better said."} if decision == "edit" else {}
    judge(item, alice, decision, **words)
    judge(item, bob, decision, **words)
    assert stands(item) == ("decided", decision)
    memory = memory_of(item)
    assert memory.status == status
    assert memory.alpha + memory.beta == pytest.approx(before["alpha"] + before["beta"] + 1), "one matter, seen once"
    take_back(item, alice)
    assert stands(item) == ("pending", "")
    assert governed(memory_of(item)) == before
    judge(item, alice, decision, **words)
    assert stands(item) == ("decided", decision)
    assert not Verdict.objects.get(item=item, reviewer=alice, undone_at=None).is_blind, "bob's had been shown"


def test_two_who_differ_leave_it_to_a_third(item, alice, bob, dora, browse) -> None:
    before = governed(memory_of(item))
    judge(item, bob, "approve")
    judge(item, dora, "demote", reason="unsupported")
    assert stands(item) == ("conflicted", "")
    assert governed(memory_of(item)) == before
    page = browse(bob).get(reverse("review-conflicts")).content.decode()
    assert all(word in page for word in ("bob@acme.test", "dora@acme.test", "Unsupported by its evidence"))
    assert "somebody else has to settle it" in page
    with pytest.raises(Forbidden):
        end(item, bob, "approve")
    with pytest.raises(Invalid):
        end(item, alice, "cannot_tell")
    end(item, alice, "demote", reason="wrong")
    assert stands(item) == ("resolved", "demote")
    assert memory_of(item).status == Status.DEMOTED
    with pytest.raises(Conflict, match="settled"):
        take_back(item, bob)
    take_back(item, alice)
    assert stands(item) == ("conflicted", "")
    assert governed(memory_of(item)) == before


def test_settling_in_the_browser_leads_back_to_the_list(item, alice, bob, dora, browse) -> None:
    judge(item, bob, "approve")
    judge(item, dora, "edit", content="Rule: said otherwise.")
    client = browse(alice)
    page = client.get(reverse("review-item", args=[item.pk])).content.decode()
    assert 'name="settles"' in page
    assert "otherwise" in page
    form = {"decision": "approve", "version": ReviewItem.objects.get(pk=item.pk).version, "settles": "1"}
    answer = client.post(reverse("review-decide", args=[item.pk]), form, follow=True)
    assert "Settled." in answer.content.decode()
    assert stands(item) == ("resolved", "approve")
    assert client.post(reverse("review-undo", args=[item.pk])).status_code == 303
    assert stands(item) == ("conflicted", "")


def test_a_form_that_was_blind_settles_nothing(item, alice, bob, dora, browse) -> None:
    version = item.version
    judge(item, bob, "approve")
    judge(item, dora, "demote")
    answer = browse(alice).post(reverse("review-decide", args=[item.pk]), {"decision": "approve", "version": version})
    assert answer.status_code == 409
    assert stands(item) == ("conflicted", "")


def test_whoever_flags_it_is_not_waited_for(item, alice, bob) -> None:
    judge(item, alice, "approve")
    judge(item, bob, "sensitive")
    assert memory_of(item).status == Status.QUARANTINED
    assert stands(item) == ("conflicted", "")
    take_back(item, alice)
    assert stands(item) == ("decided", "sensitive")
    assert memory_of(item).status == Status.QUARANTINED


def test_an_opinion_on_words_that_changed_is_asked_for_again(item, alice, bob) -> None:
    judge(item, alice, "approve")
    actions.revise(team=item.team, by=SYSTEM, memory=memory_of(item), content="Rule: changed meanwhile.")
    judge(item, bob, "approve")
    assert stands(item) == ("pending", "")
    judge(item, alice, "approve")
    assert stands(item) == ("decided", "approve")


def test_a_memory_forgotten_meanwhile_takes_the_words_meant_for_it_along(item, alice) -> None:
    judge(item, alice, "edit", content="Rule: with a secret.")
    actions.forget(team=item.team, by=SYSTEM, memory=memory_of(item))
    close_due(timezone.now())
    with team_transaction(item.team):
        assert stands(item) == ("void", "")
        assert Verdict.objects.get(item=item).content == ""


# --- At once -------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("decisions", [("approve", "approve"), ("approve", "demote")])
def test_two_people_at_the_same_moment_are_both_heard(item: ReviewItem, alice: User, bob: User, decisions) -> None:
    start, version = Barrier(2), item.version

    def go(reviewer: User, decision: str) -> str:
        try:
            with team_transaction(item.team):
                start.wait(10)
                return judge(item, reviewer, decision, version=version).decision
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(go, (alice, bob), decisions))
    assert told == list(decisions)
    with team_transaction(item.team):
        expected = ("decided", "approve") if len(set(decisions)) == 1 else ("conflicted", "")
        assert stands(item) == expected
        assert Verdict.objects.of(item.team).filter(item=item, undone_at=None).count() == 2


def test_a_verdict_that_came_too_late_is_kept_as_a_second_opinion(batch, alice, bob, browse) -> None:
    single = batch.items.filter(quorum=1).first()
    judge(single, bob, "demote")
    client = browse(alice)
    form = {"decision": "approve", "version": single.version, "note": "It holds."}
    refused = client.post(reverse("review-decide", args=[single.pk]), form)
    assert refused.status_code == 409
    assert 'name="adds"' in refused.content.decode()
    client.post(reverse("review-decide", args=[single.pk]), form | {"adds": "1"})
    assert stands(single) == ("conflicted", "")
    assert memory_of(single).status == Status.DEMOTED, "what was decided holds until it is settled"
    take_back(single, alice)
    assert stands(single) == ("decided", "demote")


# --- The end of the week, and what it tells ------------------------------------------------------------


def over(batch: ReviewBatch) -> None:
    ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=timezone.now() - timedelta(minutes=1))
    close_due(timezone.now())


def test_an_opinion_that_stayed_alone_counts_when_the_week_closes(item, alice) -> None:
    judge(item, alice, "demote", reason="wrong")
    over(item.batch)
    with team_transaction(item.team):
        assert stands(item) == ("decided", "demote")
        assert memory_of(item).status == Status.DEMOTED


def test_a_disagreement_can_be_settled_after_its_week(item, alice, bob, dora) -> None:
    judge(item, bob, "approve")
    judge(item, dora, "edit", content="Rule: otherwise.")
    over(item.batch)
    with team_transaction(item.team):
        item.batch.refresh_from_db()
        end(item, alice, "approve")
        assert stands(item) == ("resolved", "approve")
        with pytest.raises(Conflict, match="closed"):
            take_back(item, alice)


def test_rates_count_an_item_once_and_pairs_only_the_blind(batch, item, alice, bob, dora) -> None:
    judge(item, bob, "approve")
    judge(item, dora, "demote")
    for other in batch.items.filter(quorum=1):
        judge(other, bob, "approve")
    verdicts = metric_queries.verdicts_of(batch.team, [batch], metric_queries.Narrowing())
    assert len(metric_queries.judged_of(batch.team, verdicts)) == 4, "nothing is counted before it is settled"
    (pair,) = metrics.pairs(metric_queries.opinions_of(verdicts))
    assert {one.decision for one in pair} == {"approve", "demote"}
    end(item, alice, "demote")
    verdicts = metric_queries.verdicts_of(batch.team, [batch], metric_queries.Narrowing())
    judged = metric_queries.judged_of(batch.team, verdicts)
    assert sorted(one.decision for one in judged) == ["approve"] * 4 + ["demote"]
    assert len(metrics.pairs(metric_queries.opinions_of(verdicts))) == 1, "the settlement is no third opinion"


# --- Known answers -------------------------------------------------------------------------------------


@pytest.fixture
def canary(batch: ReviewBatch) -> ReviewItem:
    """A memory that the team had demoted as wrong, mixed in."""
    single = batch.items.filter(quorum=1).first()
    Memory.objects.filter(pk=single.memory_id).update(status=Status.DEMOTED)
    batch.items.filter(pk=single.pk).update(stratum=Stratum.CANARY, expected="demote")
    single.refresh_from_db()
    return single


def test_the_export_of_a_team_names_no_known_answer_before_it_is_given(canary, bob) -> None:
    assert str(canary.pk) not in exported(canary.team, "reviewitem", "id")
    judge(canary, bob, "demote")
    assert str(canary.pk) in exported(canary.team, "reviewitem", "id")


def test_a_verdict_on_a_known_answer_changes_nothing_and_is_private(canary, alice, bob, dora, browse) -> None:
    before = governed(memory_of(canary))
    address = reverse("review-item", args=[canary.pk])
    assert "Demoted" not in browse(bob).get(address).content.decode(), "its status would give it away"
    judge(canary, bob, "approve")
    assert governed(memory_of(canary)) == before
    assert stands(canary) == ("decided", "approve")
    assert [(one.met, one.right) for one in caught_by(canary.team, bob.pk)] == [(1, 0)]
    assert "known answer" in browse(bob).get(address).content.decode()
    assert "known answer" not in browse(dora).get(address).content.decode()
    metrics_page = reverse("review-metrics")
    assert "Known answers" in browse(alice).get(metrics_page).content.decode()
    assert "Known answers" not in browse(dora).get(metrics_page).content.decode()
    take_back(canary, bob)
    assert governed(memory_of(canary)) == before


def test_known_answers_are_off_until_a_team_wants_them(team: Team, agent, alice, bob) -> None:
    def week(at) -> ReviewBatch:
        with team_transaction(team):
            return open_batch(team=team, by=SYSTEM, at=at)

    for n in range(45):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}")
    with team_transaction(team):
        Memory.objects.update(created_at=timezone.now() - timedelta(weeks=1, hours=1))
    first = week(timezone.now() - timedelta(weeks=1))
    with team_transaction(team):
        ReviewBatch.objects.update(closes_at=timezone.now() + timedelta(days=1))
        first.refresh_from_db()
        for item in first.items.filter(quorum=1)[:3]:
            judge(item, alice, "demote", reason="wrong")
        ReviewBatch.objects.update(status=BatchStatus.CLOSED, closes_at=timezone.now() - timedelta(days=3))
        actions.change_policy(team=team, by=SYSTEM, changes={"review.canaries": 2})
    second = week(timezone.now())
    with team_transaction(team):
        known = list(second.items.filter(stratum=Stratum.CANARY))
        assert first.items.filter(stratum=Stratum.CANARY).count() == 0
        assert 1 <= len(known) <= 0.05 * second.items.count()
        assert {item.expected for item in known} == {"demote"}
        places = {place.item.pk: place for place in turns_of(team, alice, second).places}
        assert not any(places[item.pk].mine_to_do for item in known), "alice would only remember her own answer"


# --- Many rows at once ---------------------------------------------------------------------------------


def rows_of(client, batch: ReviewBatch, **query: str) -> list[dict[str, str]]:
    answer = client.get(reverse("review-batch-export", args=[batch.week, "csv"]), query)
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_bulk_demotes_what_was_chosen_lists_it_first_and_is_taken_back(batch, bob, browse) -> None:
    client, act = browse(bob), reverse("review-batch-act", args=[batch.week])
    chosen = list(batch.items.filter(quorum=1).order_by("position")[:2])
    asks = client.post(act, {"action": "demote", "item": [str(item.pk) for item in chosen]})
    page = asks.content.decode()
    assert all(item.memory.content in page for item in chosen)
    assert {stands(item)[0] for item in chosen} == {"pending"}, "nothing is done before it is confirmed"
    seen = [f"{item.pk}.{item.version}.1" for item in chosen]
    sent = {"action": "demote", "confirmed": "1", "reason": "trivial", "item": seen}
    told = client.post(act, sent, follow=True).content.decode()
    assert "Demoted 2 of 2" in told
    assert [row["reason"] for row in rows_of(client, batch, decision="demote")] == ["trivial", "trivial"]
    undoing = told.split('action="')[1:]
    address = next(part.split('"')[0] for part in undoing if "/undo/?" in part).replace("&amp;", "&")
    assert "Took back 2 of 2" in client.post(address, follow=True).content.decode()
    assert {stands(item)[0] for item in chosen} == {"pending"}


def test_the_random_sample_is_not_approved_in_bulk(batch, bob, browse) -> None:
    targeted = batch.items.filter(quorum=1).first()
    batch.items.filter(pk=targeted.pk).update(stratum=Stratum.FLAGGED)
    client, act = browse(bob), reverse("review-batch-act", args=[batch.week])
    page = client.post(act, {"action": "approve", "all": "1", "query": ""}).content.decode()
    assert "Approve: 1 memory" in page
    assert "4 stay as they are" in page
    items = [f"{item.pk}.{item.version}.1" for item in batch.items.all()]
    client.post(act, {"action": "approve", "confirmed": "1", "item": items})
    assert list(batch.items.filter(state="decided").values_list("pk", flat=True)) == [targeted.pk]


def test_what_a_colleague_did_meanwhile_is_left(batch, alice, bob, browse) -> None:
    first, second = batch.items.filter(quorum=1).order_by("position")[:2]
    judge(first, alice, "approve")
    sent = {"action": "demote", "confirmed": "1", "item": [f"{i.pk}.{i.version}.1" for i in (first, second)]}
    told = browse(bob).post(reverse("review-batch-act", args=[batch.week]), sent, follow=True).content.decode()
    assert "Demoted 1 of 2" in told
    assert memory_of(first).status == Status.ACTIVE


def test_claims_are_for_ten_minutes_and_a_closed_week_takes_no_action(batch, bob, browse) -> None:
    client, act = browse(bob), reverse("review-batch-act", args=[batch.week])
    client.post(act, {"action": "claim", "confirmed": "1", "all": "1"})
    assert batch.items.filter(claimed_by=bob).count() == 5
    ReviewBatch.objects.filter(pk=batch.pk).update(status=BatchStatus.CLOSED)
    told = client.post(act, {"action": "demote", "confirmed": "1", "all": "1"}, follow=True).content.decode()
    assert "closed" in told
    assert batch.items.filter(state="pending").count() == 5


@pytest.mark.parametrize("sort", ["memory", "-memory", "time", "-time", "decision", "nonsense"])
def test_the_table_sorts_and_says_so(batch, bob, browse, sort) -> None:
    judge(batch.items.filter(quorum=1).first(), bob, "approve")
    rows = rows_of(browse(bob), batch, sort=sort)
    assert len(rows) == 5
    if "memory" in sort:
        words = [row["content"].casefold() for row in rows]
        assert words == sorted(words, reverse=sort.startswith("-"))
    if "time" in sort:
        assert rows[0]["decided_at"], "what has no time stands last, both ways"


def test_a_download_runs_nothing_in_a_spreadsheet(batch, agent, bob, browse) -> None:
    for start in ("=", "+", "-", "@", "\t=", "＝", " ="):
        item = batch.items.order_by("position").first()
        Memory.objects.filter(pk=item.memory_id).update(content=f"{start}cmd|' /C calc'!A0")
        assert rows_of(browse(bob), batch)[0]["content"].startswith("'")


def test_a_viewer_downloads_and_does_not_act(batch, carol, browse, mallory) -> None:
    client = browse(carol)
    assert len(rows_of(client, batch)) == 5
    act = reverse("review-batch-act", args=[batch.week])
    assert client.post(act, {"action": "demote", "all": "1", "confirmed": "1"}).status_code == 403
    assert browse(mallory).get(reverse("review-batch-export", args=[batch.week, "csv"])).status_code == 404
    assert batch.items.filter(state="pending").count() == 5


def test_nothing_refused_is_silent(item, alice, bob) -> None:
    judge(item, alice, "approve")
    with pytest.raises(Refused, match="You decided this already"):
        judge(item, alice, "demote")
    assert Decision.APPROVE in Verdict.objects.filter(item=item).values_list("decision", flat=True)


# --- What is written about a memory ------------------------------------------------------------------


def test_what_is_sensitive_is_hidden_though_it_was_a_known_answer(canary, bob) -> None:
    Memory.objects.filter(pk=canary.memory_id).update(status=Status.ACTIVE)
    judge(canary, bob, "sensitive")
    assert memory_of(canary).status == Status.QUARANTINED
    take_back(canary, bob)
    assert memory_of(canary).status == Status.ACTIVE


def test_notes_are_masked_and_go_with_their_memory(item, alice, bob) -> None:
    note = "The card 4111 1111 1111 1111 belongs to Anna."
    judge(item, alice, "edit", content="Rule A", note=note)
    judge(item, bob, "edit", content="Rule B", note=note)
    kept = Verdict.objects.filter(item=item)
    assert {one.content for one in kept} == {"Rule A", "Rule B"}
    assert not any("4111" in one.note for one in kept)
    with team_transaction(item.team):
        actions.forget(team=item.team, by=SYSTEM, memory=memory_of(item))
    assert set(kept.values_list("content", "note")) == {("", "")}


def test_taking_back_a_first_opinion_does_not_tell_it(item, alice) -> None:
    judge(item, alice, "demote", reason="wrong")
    take_back(item, alice)
    event = AuditEvent.objects.get(verb="review.undone")
    assert "decision" not in event.detail


def test_an_action_on_many_judges_only_the_words_that_were_read(batch, agent, alice, browse) -> None:
    one = batch.items.filter(quorum=1).first()
    address = reverse("review-batch-act", args=[batch.week])
    client = browse(alice)
    form = {"action": "demote", "item": str(one.pk)}
    page = client.post(address, form).content.decode()
    seen = f"{one.pk}.{one.version}.{memory_of(one).revision}"
    assert f'value="{seen}"' in page
    with team_transaction(batch.team):
        actions.revise(team=batch.team, by=SYSTEM, memory=memory_of(one), content="Something else altogether.")
    before = memory_of(one).status
    for sent in (seen, str(one.pk)):
        client.post(address, {**form, "item": sent, "confirmed": "1"})
        assert memory_of(one).status == before
