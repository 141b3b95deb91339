"""Edits that changed what a memory says: a second person is shown them, confirms or contradicts."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review import metric_queries
from reflection.review.edits import is_material
from reflection.review.sampling import open_batch
from reflection.review.seconding import waiting_for_a_second_look
from reflection.review.verdicts import decide, undo
from tests import factories

SAID = "The staging database of the billing service listens on port 5432 behind the proxy."
OTHER = "The staging database of the billing service listens on port 5433 behind the proxy."


@pytest.mark.parametrize(
    "after",
    [
        OTHER,
        "The staging database of the billing service does not listen on port 5432 behind the proxy.",
        "The staging database of the billing_v2 service listens on port 5432 behind the proxy.",
        "Ask the team that runs it: port 5432.",
        "The staging database listens on port 5432.",
    ],
)
def test_what_changes_what_it_says_is_material(after: str) -> None:
    assert is_material(SAID, after)
    assert is_material(after, SAID)


@pytest.mark.parametrize(
    "after",
    [
        SAID,
        SAID.rstrip("."),
        SAID.replace("behind the proxy", "behind a proxy"),
        SAID.replace("The staging", "the staging"),
    ],
)
def test_better_words_for_the_same_are_not(after: str) -> None:
    assert not is_material(SAID, after)


def test_chinese_is_counted_by_signs() -> None:
    before = "导入客户反馈表时，文件的编码通常是国标编码，先检查再导入。"
    assert not is_material(before, before.replace("通常", "多半"))
    assert is_material(before, "请先问数据组的同事。")


@given(st.text(max_size=80))
def test_no_change_is_never_material(text: str) -> None:
    assert not is_material(text, text)


# --- Who is shown it ---------------------------------------------------------------------------------


@pytest.fixture
def batch(team: Team, agent, alice: User, bob: User) -> ReviewBatch:
    for n in range(3):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}", confidence=0.6)
    factories.memory(agent, SAID, confidence=0.6)
    with team_transaction(team):
        drawn = open_batch(team=team, by=SYSTEM)
        drawn.items.update(quorum=1)
        return drawn


@pytest.fixture
def item(batch: ReviewBatch) -> ReviewItem:
    with team_transaction(batch.team):
        return batch.items.select_related("batch").get(memory__content=SAID)


def judge(item: ReviewItem, by: User, decision: str, **more) -> Verdict:
    version = ReviewItem.objects.get(pk=item.pk).version
    return decide(
        team=item.team, by=person(by), reviewer=by, item=item, decision=decision, version=version, **more
    )  # fmt: skip


def take_back(item: ReviewItem, by: User) -> Verdict:
    return undo(team=item.team, by=person(by), reviewer=by, item=item)


def stands(item: ReviewItem) -> tuple[str, str, str]:
    fresh = ReviewItem.objects.get(pk=item.pk)
    return fresh.state, fresh.outcome, Memory.objects.get(pk=item.memory_id).content


def shown_to(item: ReviewItem, reader: User) -> list[uuid.UUID]:
    with team_transaction(item.team):
        return [one.item.pk for one in waiting_for_a_second_look(item.team, reader)]


def test_a_material_edit_holds_and_waits_for_a_second_look(item, alice, bob) -> None:
    judge(item, bob, "edit", content=OTHER)
    assert stands(item) == ("decided", "edit", OTHER)
    assert shown_to(item, alice) == [item.pk]
    assert shown_to(item, bob) == [], "who made it has looked"


def test_small_changes_wait_for_nobody(item, alice, bob) -> None:
    judge(item, bob, "edit", content=SAID.replace("behind the proxy", "behind a proxy"))
    assert shown_to(item, alice) == []


def test_confirmed_it_still_counts_as_edited_and_is_asked_no_more(item, alice, bob) -> None:
    judge(item, bob, "edit", content=OTHER)
    judge(item, alice, "approve", adds=True)
    assert stands(item) == ("decided", "edit", OTHER)
    assert shown_to(item, alice) == []
    with team_transaction(item.team):
        verdicts = metric_queries.verdicts_of(item.team, [item.batch], metric_queries.Narrowing())
        assert [one.decision for one in metric_queries.judged_of(item.team, verdicts)] == ["edit"]
        assert metric_queries.opinions_of(verdicts) == [], "it was not drawn for two: no measure of agreement"


def test_contradicted_it_has_to_be_settled(item, alice, bob) -> None:
    judge(item, bob, "edit", content=OTHER)
    judge(item, alice, "demote", adds=True, reason="wrong")
    assert stands(item) == ("conflicted", "", OTHER)
    assert shown_to(item, alice) == []
    take_back(item, alice)
    assert stands(item) == ("decided", "edit", OTHER)
    assert shown_to(item, alice) == [item.pk]


def test_taken_back_by_its_author_the_second_look_goes_with_it(item, alice, bob) -> None:
    judge(item, bob, "edit", content=OTHER)
    judge(item, alice, "approve", adds=True)
    take_back(item, bob)
    assert stands(item) == ("pending", "", SAID)
    assert not Verdict.objects.of(item.team).filter(item=item, undone_at=None).exists(), "she approved other words"
    judge(item, alice, "approve")
    assert stands(item) == ("decided", "approve", SAID)


def test_after_its_week_nobody_is_asked(item, alice, bob) -> None:
    judge(item, bob, "edit", content=OTHER)
    ReviewBatch.objects.filter(pk=item.batch_id).update(closes_at=timezone.now() - timedelta(minutes=1))
    assert shown_to(item, alice) == []
    assert stands(item) == ("decided", "edit", OTHER)


def test_changed_again_since_it_is_somebody_elses_word(item, alice, bob) -> None:
    judge(item, bob, "edit", content=OTHER)
    Memory.objects.filter(pk=item.memory_id).update(revision=9)
    assert shown_to(item, alice) == []


def test_a_known_answer_is_not_shown_as_edited(item, alice, bob) -> None:
    ReviewItem.objects.filter(pk=item.pk).update(stratum="canary", expected="demote")
    item.refresh_from_db()
    judge(item, bob, "edit", content=OTHER)
    assert shown_to(item, alice) == []


# --- The pages ---------------------------------------------------------------------------------------


def test_the_pages_show_it_and_take_the_word_of_the_second(item, alice, bob, carol, browse) -> None:
    judge(item, bob, "edit", content=OTHER)
    hers, address = browse(alice), reverse("review-item", args=[item.pk])
    assert "that one person changed" in hers.get(reverse("review")).content.decode()
    listed = hers.get(reverse("review-conflicts")).content.decode()
    assert "Changed by one person" in listed
    assert "5433</ins>" in listed
    assert "Nobody differs" not in listed
    page = hers.get(address).content.decode()
    assert "A colleague changed what it says" in page
    assert 'name="adds"' in page
    for other in (bob, carol):
        assert 'name="adds"' not in browse(other).get(address).content.decode()
    version = ReviewItem.objects.get(pk=item.pk).version
    form = {"decision": "approve", "version": version, "adds": "1"}
    assert hers.post(reverse("review-decide", args=[item.pk]), form).status_code == 303
    assert stands(item) == ("decided", "edit", OTHER)
    assert "Changed by one person" not in hers.get(reverse("review-conflicts")).content.decode()


def test_whoever_settles_it_sees_what_it_said_before(item, alice, bob, team, browse) -> None:
    judge(item, bob, "edit", content=OTHER)
    judge(item, alice, "demote", adds=True, reason="wrong")
    dora = browse(factories.member(team, "dora@acme.test", "reviewer"))
    for address in (reverse("review-conflicts"), reverse("review-item", args=[item.pk])):
        assert "5432</del>" in dora.get(address).content.decode(), address


def test_another_team_sees_none_of_it(item, bob, mallory, browse) -> None:
    with team_transaction(item.team):
        judge(item, bob, "edit", content=OTHER)
    assert "5433" not in browse(mallory).get(reverse("review-conflicts")).content.decode()
