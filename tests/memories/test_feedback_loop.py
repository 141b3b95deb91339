"""What becomes of recalled memories: belief, streaks, lift, flags and verdicts; exact when told at once or late."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.actions import FeedbackItem
from memories.enums import Kind
from memories.lifecycle import sweep as lifecycle
from memories.lift import Lift, lifts
from memories.models import Feedback, Memory, Recall
from reflection.enums import Stratum
from reflection.models import ReviewItem
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide, undo
from tests import factories
from tests.memories import handing

pytestmark = pytest.mark.django_db


@pytest.fixture
def lesson(agent) -> Memory:
    return factories.memory(agent, "Write the month as 2026-03 when exporting invoices.", kind=Kind.EXPERIENCE)


NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def handed_out(agent, *memories: Memory, day: int = 0, token: ApiToken | None = None) -> Recall:
    return handing.handed_out(agent, *memories, at=NOON + timedelta(days=day), token=token)


def tell(agent, recall: Recall, memory: Memory, adopted: bool, success: bool | None = None) -> None:
    with team_transaction(agent.team):
        items = [FeedbackItem(str(memory.pk), adopted, success)]
        actions.give_feedback(team=agent.team, by=SYSTEM, recall=recall, items=items)


def now(agent, memory: Memory) -> Memory:
    with team_transaction(agent.team):
        return Memory.objects.of(agent.team).get(pk=memory.pk)


def test_belief_is_the_mean_of_a_beta_with_a_neutral_prior(agent, lesson) -> None:
    assert (lesson.alpha, lesson.beta, lesson.confidence) == (1, 1, 0.5)
    for day, success in enumerate((True, True, False)):
        tell(agent, handed_out(agent, lesson, day=day), lesson, True, success)
    after = now(agent, lesson)
    assert (after.alpha, after.beta, after.confidence) == (3, 2, pytest.approx(0.6))
    assert (after.reuse_count, after.reuse_success_count) == (3, 2)


def test_what_was_not_adopted_or_has_no_end_is_no_observation(agent, lesson) -> None:
    tell(agent, handed_out(agent, lesson), lesson, False, True)
    tell(agent, handed_out(agent, lesson), lesson, True, None)
    after = now(agent, lesson)
    assert (after.alpha, after.beta, after.reuse_count) == (1, 1, 0)


def test_told_again_the_newer_word_counts_once(agent, lesson) -> None:
    recall = handed_out(agent, lesson)
    for _ in range(3):
        tell(agent, recall, lesson, True, True)
    assert now(agent, lesson).alpha == 2
    tell(agent, recall, lesson, True, False)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (1, 2)
    tell(agent, recall, lesson, False)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta, now(agent, lesson).reuse_count) == (1, 1, 0)


def test_the_belief_hears_a_voice_once_a_day(agent, lesson) -> None:
    for success in (False, True, False, False):
        tell(agent, handed_out(agent, lesson), lesson, True, success)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (1, 2)
    assert (now(agent, lesson).reuse_count, now(agent, lesson).reuse_success_count) == (4, 1)
    tell(agent, handed_out(agent, lesson, day=1), lesson, True, False)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (1, 3)
    tell(agent, handed_out(factories.agent(agent.team, "second"), lesson), lesson, True, True)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (2, 3)


def test_what_is_taken_back_makes_room_for_another_word_of_the_day(agent, lesson) -> None:
    first, second = handed_out(agent, lesson), handed_out(agent, lesson)
    tell(agent, first, lesson, True, True)
    tell(agent, second, lesson, True, False)
    tell(agent, first, lesson, False)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (1, 1)
    tell(agent, second, lesson, True, True)
    tell(agent, first, lesson, True, False)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (2, 1)


def test_a_team_token_is_one_voice_in_whatever_name_it_asks(agent, lesson, team) -> None:
    with team_transaction(team):
        token, _ = accounts.create_token(
            team=team, by=SYSTEM, name="t", scopes=["memory:read"], allowed=["memory:read"]
        )
    for place in range(3):
        bot = factories.agent(team, f"bot-{place}")
        tell(bot, handed_out(bot, lesson, token=token), lesson, True, False)
    assert (now(agent, lesson).alpha, now(agent, lesson).beta) == (1, 2)


def test_feedback_alone_lifts_no_higher_than_the_trust(agent, alice, lesson) -> None:
    recalls = [handed_out(agent, lesson, day=day) for day in range(25)]
    for recall in recalls:
        tell(agent, recall, lesson, True, True)
    assert now(agent, lesson).confidence == pytest.approx(0.8)
    with team_transaction(agent.team):
        actions.approve(team=agent.team, by=person(alice), memory=now(agent, lesson))
    approved = now(agent, lesson).confidence
    assert approved > 0.8
    tell(agent, handed_out(agent, lesson, day=30), lesson, True, True)
    assert now(agent, lesson).confidence >= approved
    for recall in recalls:  # taken back: what is left is the prior, the person, and one use since
        tell(agent, recall, lesson, False)
    left = now(agent, lesson)
    assert (left.alpha, left.beta, left.reuse_count) == pytest.approx((3, 1, 1))


def test_an_answer_repeated_later_takes_no_more_than_before(agent, lesson) -> None:
    recalls = [handed_out(agent, lesson, day=day) for day in range(6)]
    for recall in recalls:
        tell(agent, recall, lesson, True, True)
    tell(agent, handed_out(agent, lesson, day=6), lesson, True, False)  # there is room under the cap again
    before = now(agent, lesson)
    for recall in recalls:
        tell(agent, recall, lesson, True, True)
    after = now(agent, lesson)
    assert (after.alpha, after.beta) == (before.alpha, before.beta) == (pytest.approx(4), 2)


def test_a_streak_counts_the_recalls_since_the_last_adoption_however_late(agent, lesson) -> None:
    recalls = [handed_out(agent, lesson) for _ in range(7)]
    assert now(agent, lesson).unused_streak == 7
    tell(agent, recalls[1], lesson, True)  # told late: five were handed out after it
    assert now(agent, lesson).unused_streak == 5
    tell(agent, recalls[6], lesson, True)
    assert now(agent, lesson).unused_streak == 0
    tell(agent, recalls[6], lesson, False)  # taken back
    assert now(agent, lesson).unused_streak == 5


def test_five_times_left_aside_counts_less_until_adopted(agent, lesson) -> None:
    recalls = [handed_out(agent, lesson) for _ in range(5)]
    assert lifecycle.sweep(team=agent.team).changed == {"unused": 1}
    assert lifecycle.sweep(team=agent.team).changed == {}
    assert now(agent, lesson).weight == pytest.approx(0.9)
    tell(agent, recalls[4], lesson, True, True)
    assert lifecycle.sweep(team=agent.team).changed == {"lifted": 1}
    assert now(agent, lesson).weight == 1


def test_feedback_comes_late(agent, lesson) -> None:
    recall = handed_out(agent, lesson)
    with team_transaction(agent.team):
        old = {"created_at": timezone.now() - timedelta(days=200)}
        Recall.objects.of(agent.team).filter(pk=recall.pk).update(**old)
        actions.archive(team=agent.team, by=SYSTEM, memory=lesson)
    tell(agent, recall, lesson, True, True)
    assert now(agent, lesson).alpha == 2


# --- Failing lessons ------------------------------------------------------------------------------------


def failing(agent, lesson: Memory) -> None:
    for success in (False, False, True, False, False):
        tell(agent, handed_out(agent, lesson), lesson, True, success)
    assert lifecycle.sweep(team=agent.team).changed == {"failing": 1}


def test_a_failing_lesson_waits_for_a_person_with_half_its_weight(agent, alice, lesson) -> None:
    failing(agent, lesson)
    flagged = now(agent, lesson)
    assert (flagged.needs_review, flagged.weight, flagged.fades) == (True, 0.5, {"failing": 0.5})
    with team_transaction(agent.team):
        item = ReviewItem.objects.of(agent.team).filter(batch=open_batch(team=agent.team, by=SYSTEM)).get()
        assert (item.memory_id, item.stratum) in {(lesson.pk, Stratum.FLAGGED), (lesson.pk, Stratum.RANDOM)}
        who = {"team": agent.team, "by": person(alice), "reviewer": alice}
        decide(**who, item=item, decision="approve", version=item.version)
    approved = now(agent, lesson)
    assert (approved.needs_review, approved.weight, approved.fades) == (False, 1, {})
    assert lifecycle.sweep(team=agent.team).changed == {}, "judged: the same uses flag it no more"
    with team_transaction(agent.team):
        undo(**who, item=ReviewItem.objects.of(agent.team).get(pk=item.pk))
    undone = now(agent, lesson)
    assert (undone.needs_review, undone.weight, undone.fades) == (True, 0.5, {"failing": 0.5})


def test_only_new_failures_flag_an_approved_lesson_again(agent, alice, lesson) -> None:
    failing(agent, lesson)
    with team_transaction(agent.team):
        actions.approve(team=agent.team, by=person(alice), memory=now(agent, lesson))
    for _ in range(4):
        tell(agent, handed_out(agent, lesson), lesson, True, False)
    assert lifecycle.sweep(team=agent.team).changed == {}
    tell(agent, handed_out(agent, lesson), lesson, True, False)
    assert lifecycle.sweep(team=agent.team).changed == {"failing": 1}


# --- Lift -----------------------------------------------------------------------------------------------


def test_lift_is_success_with_minus_success_without(agent, api, lesson) -> None:
    for adopted, success in ((True, True), (True, True), (True, False), (False, False), (False, True), (False, None)):
        tell(agent, handed_out(agent, lesson), lesson, adopted, success)
    with team_transaction(agent.team):
        found = lifts(agent.team, [lesson.pk])[lesson.pk]
    assert found == Lift(3, 2, 2, 1)
    assert found.value == pytest.approx(2 / 3 - 1 / 2)
    told = api.get(f"/api/v1/memories/{lesson.pk}").json()["lift"]
    assert told == {
        "value": pytest.approx(1 / 6), "adopted": 3, "adopted_succeeded": 2, "left_aside": 2, "left_aside_succeeded": 1,
    }  # fmt: skip


def test_without_both_sides_there_is_no_lift(agent, api, lesson, alice, browse) -> None:
    assert api.get(f"/api/v1/memories/{lesson.pk}").json()["lift"] is None
    tell(agent, handed_out(agent, lesson), lesson, True, True)
    assert api.get(f"/api/v1/memories/{lesson.pk}").json()["lift"]["value"] is None
    page = browse(alice).get(f"/memories/{lesson.pk}/").content.decode()
    assert "not known yet" in page
    tell(agent, handed_out(agent, lesson), lesson, False, False)
    page = browse(alice).get(f"/memories/{lesson.pk}/").content.decode()
    assert "+100\u202fpoints" in page


def test_the_end_of_a_task_is_told_of_what_was_left_aside_too(agent, api, lesson) -> None:
    other = factories.memory(agent, "Deploys happen on Tuesdays.")
    recall = handed_out(agent, lesson, other)
    items = [{"memory": str(lesson.pk), "adopted": True}, {"memory": str(other.pk), "adopted": False, "note": "old"}]
    assert api.post("/api/v1/feedback", {"recall_id": str(recall.pk), "items": items}).status_code == 200
    told = api.post("/api/v1/feedback", {"recall_id": str(recall.pk), "success": True})
    assert told.json()["recorded"] == 2
    with team_transaction(agent.team):
        rows = Feedback.objects.of(agent.team).values_list("memory_id", "adopted", "success", "note")
        assert set(rows) == {(lesson.pk, True, True, ""), (other.pk, False, True, "old")}
    assert (now(agent, lesson).reuse_count, now(agent, other).reuse_count) == (1, 0)


# --- At once --------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_counters_are_exact_under_fifty_callers(agent, lesson) -> None:
    other = factories.memory(agent, "Deploys happen on Tuesdays.")
    recalls = [handed_out(agent, lesson, other) for _ in range(50)]
    failures: list[BaseException] = []
    start = threading.Barrier(50)

    def call(place: int) -> None:
        try:
            start.wait()
            with team_transaction(agent.team):
                pair = [lesson, other] if place % 2 else [other, lesson]
                items = [FeedbackItem(str(memory.pk), True, place % 5 != 0) for memory in pair]
                actions.give_feedback(team=agent.team, by=SYSTEM, recall=recalls[place], items=items)
            with team_transaction(agent.team):  # told twice
                actions.give_feedback(team=agent.team, by=SYSTEM, recall=recalls[place], items=items)
        except BaseException as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=call, args=(place,)) for place in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for memory in (lesson, other):
        after = now(agent, memory)
        assert (after.reuse_count, after.reuse_success_count, after.unused_streak) == (50, 40, 0)
        # One observation in all, whoever came first.
        assert (after.alpha, after.beta) in {(2, 1), (1, 2)}
        assert after.confidence == pytest.approx(after.alpha / 3)
        assert after.access_count == 50
