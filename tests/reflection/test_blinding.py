"""A known answer is not told by the memory's own page, nor by the list, to whoever is still to give it."""

from __future__ import annotations

import uuid

import pytest
from django.urls import reverse

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.enums import Status
from memories.models import Memory
from reflection.enums import Stratum
from reflection.models import ReviewBatch, ReviewItem
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide
from tests import factories

pytestmark = pytest.mark.django_db
HIDDEN = "You are still to judge this one"


@pytest.fixture
def batch(team: Team, agent, alice: User, bob: User) -> ReviewBatch:
    for n in range(4):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}", confidence=0.6)
    with team_transaction(team):
        drawn = open_batch(team=team, by=SYSTEM)
        drawn.items.update(quorum=1)
        return drawn


@pytest.fixture
def canary(batch: ReviewBatch) -> ReviewItem:
    """One of them is known to be bad: the team demoted it before."""
    with team_transaction(batch.team):
        item = batch.items.select_related("batch").order_by("position")[0]
        Memory.objects.filter(pk=item.memory_id).update(status=Status.DEMOTED)
        ReviewItem.objects.filter(pk=item.pk).update(stratum=Stratum.CANARY, expected="demote")
        ReviewBatch.objects.filter(pk=batch.pk).update(population={**batch.population, "canary": {"drawn": 1}})
        item.refresh_from_db()
    return item


def page_of(item: ReviewItem) -> str:
    return reverse("memory", args=[item.memory_id])


def judge(item: ReviewItem, by: User, decision: str = "demote") -> None:
    with team_transaction(item.team):
        decide(team=item.team, by=person(by), reviewer=by, item=item, decision=decision, version=item.version)


def test_its_page_tells_once_it_is_judged(canary, bob, browse) -> None:
    seen = browse(bob)
    before = seen.get(page_of(canary)).content.decode()
    assert HIDDEN in before
    assert "Demoted" not in before
    assert reverse("review-item", args=[canary.pk]) in before
    judge(canary, bob)
    after = seen.get(page_of(canary)).content.decode()
    assert HIDDEN not in after
    assert "Demoted" in after


def test_the_others_of_the_sample_are_hidden_too_or_it_would_stand_out(canary, bob, browse) -> None:
    seen = browse(bob)
    for item in canary.batch.items.all():
        assert HIDDEN in seen.get(page_of(item)).content.decode()
    other = canary.batch.items.exclude(pk=canary.pk).select_related("batch").first()
    judge(other, bob, "approve")
    assert HIDDEN not in seen.get(page_of(other)).content.decode()


@pytest.mark.parametrize("status", ["demoted", "any"])
def test_the_list_by_status_leaves_it_out_and_says_so(canary, bob, browse, status) -> None:
    words = Memory.objects.get(pk=canary.memory_id).content
    address = reverse("memories") + f"?status={status}"
    shown = browse(bob).get(address).content.decode()
    assert words not in shown
    assert "4 memories of this week’s sample" in shown
    judge(canary, bob)
    assert words in browse(bob).get(address).content.decode()


def test_who_does_not_judge_sees_all_of_it(canary, carol, browse) -> None:
    assert HIDDEN not in browse(carol).get(page_of(canary)).content.decode()


def test_a_week_without_known_answers_hides_nothing(batch, bob, browse) -> None:
    for item in batch.items.all():
        assert HIDDEN not in browse(bob).get(page_of(item)).content.decode()


def test_whoever_manages_may_still_forget_it(canary, alice, bob, browse) -> None:
    forget = reverse("memory_forget", args=[canary.memory_id])
    assert forget in browse(alice).get(page_of(canary)).content.decode()
    assert forget not in browse(bob).get(page_of(canary)).content.decode()
