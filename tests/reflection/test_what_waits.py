"""How much waits for whom: the badge, the overview and the review say the same number."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.actions import Draft, remember
from memories.enums import Kind
from memories.scopes import team_scope
from reflection.models import ReviewBatch, ReviewItem
from reflection.review.sampling import open_batch
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def batch(team: Team, agent) -> ReviewBatch:
    for n in range(3):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}")
    return open_batch(team=team, by=SYSTEM)


def send(client: Client, item: ReviewItem, decision: str) -> str:
    """Decide; return the page that follows without its tags."""
    with team_transaction(item.team):
        version = ReviewItem.objects.get(pk=item.pk).version
    form = {"decision": decision, "version": version}
    page = client.post(f"/review/items/{item.pk}/decide/", form, follow=True).content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def told(client: Client) -> tuple[int, int]:
    """What the overview says is to judge, and what the navigation says; 0 for nothing."""
    page = client.get("/").content.decode()
    here = re.search(r'<strong class="num">(\d+)</strong> memor(?:y|ies) of this week', page)
    badge = re.search(r'<span class="count">(\d+)<span class="visually-hidden"> to judge', page)
    return int(here[1]) if here else 0, int(badge[1]) if badge else 0


def test_what_could_not_be_told_still_waits_and_what_was_judged_does_not(batch, bob: User, alice: User, browse) -> None:
    client, items = browse(bob), list(batch.items.order_by("position"))
    assert told(client) == (3, 3)
    page = send(client, items[0], "cannot_tell")
    assert re.search(r"Could not tell It comes back at the end .* Undo", page)
    assert told(client) == (3, 3)
    send(client, items[1], "approve")
    assert told(client) == (2, 2)
    page = send(client, items[0], "cannot_tell")
    assert re.search(r"Could not tell It is left to somebody else .* Undo", page)
    assert told(client) == (1, 1), "after two times it goes to somebody else"
    assert told(browse(alice)) == (2, 2)


def test_a_viewer_is_told_what_waits_for_the_team(batch, bob: User, carol: User, browse) -> None:
    send(browse(bob), batch.items.order_by("position")[0], "cannot_tell")
    assert told(browse(carol)) == (3, 0)


def test_what_somebody_wrote_themselves_waits_for_others(team: Team, alice: User, bob: User, browse) -> None:
    for by in (person(bob), SYSTEM):
        draft = Draft(content=f"Rule {uuid.uuid4()}", kind=Kind.FACT)
        remember(team=team, by=by, scope=team_scope(team), draft=draft)
    open_batch(team=team, by=SYSTEM)
    assert (told(browse(bob)), told(browse(alice))) == ((1, 1), (2, 2))
