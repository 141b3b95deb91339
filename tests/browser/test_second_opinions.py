"""Second opinions and many rows at once in a real browser: wide and narrow, light and dark, read by axe.

With HINDSIGHT_SCREENSHOTS=1 the pages are also kept as docs/screenshots/opinions-*.png.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Page, expect

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from reflection.models import ReviewBatch, ReviewItem
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide
from tests import factories
from tests.browser.conftest import CHROMIUM, fits

SCREENSHOTS = Path(os.environ.get("HINDSIGHT_SCREENSHOTS_IN", settings.BASE_DIR / "docs" / "screenshots"))
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}
RULES = (
    "A basic economy booking cannot be changed by itself: upgrade the cabin in the same call.",
    "The exporter takes the month as YYYY-MM since version 4.",
    "The payments sandbox answers 429 after 20 calls a minute: wait for Retry-After.",
    "Ask for the reservation number first; names are not unique.",
    "Refunds go back to the card that paid, and to no other.",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]


@pytest.fixture
def differs(team: Team, agent: Agent, alice: User, bob: User) -> ReviewItem:
    """One of five memories, on which bob and dora differ."""
    dora = factories.member(team, "dora@acme.test", "reviewer")
    for rule in RULES:
        factories.memory(agent, rule)
    with team_transaction(team):
        item = open_batch(team=team, by=SYSTEM).items.select_related("batch").get(quorum=2)
        said = ((bob, "approve", {}), (dora, "demote", {"reason": "wrong", "note": "It moved to the new fare rules."}))
        for who, decision, more in said:
            decide(team=team, by=person(who), reviewer=who, item=item, decision=decision, version=1, **more)
        single = item.batch.items.filter(quorum=1).select_related("batch").order_by("position")[0]
        decide(team=team, by=person(bob), reviewer=bob, item=single, decision="approve", version=1)
    return item


def look(page: Page, name: str) -> None:
    """The page fits, axe finds nothing, and it is kept where screenshots are wanted."""
    fits(page)
    found = Axe().run(page).response["violations"]
    assert not found, [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found]
    if os.environ.get("HINDSIGHT_SCREENSHOTS"):
        page.screenshot(path=SCREENSHOTS / f"opinions-{name}.png", full_page=True)


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_a_disagreement_is_settled_and_rows_are_demoted_together(differs, alice, visit, size, scheme) -> None:
    page = visit(alice, "/review/conflicts/", viewport=SIZES[size], color_scheme=scheme)
    look(page, f"list-{size}-{scheme}")
    page.get_by_role("link", name="Settle").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    look(page, f"settle-{size}-{scheme}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Settled. Both opinions are kept beside it.")).to_be_visible()
    batch = f"/review/batches/{differs.batch.week}/"
    page.goto(batch)
    look(page, f"table-{size}-{scheme}")
    with team_transaction(differs.team):
        waiting = ReviewItem.objects.filter(state="pending", quorum=1).order_by("position")[:2]
        chosen = [str(item.pk) for item in waiting]
    for ident in chosen:
        page.locator(f'input[value="{ident}"]').check()
    page.get_by_role("button", name="Demote", exact=True).click()
    expect(page.get_by_role("heading", name="Demote: 2 memories")).to_be_visible()
    look(page, f"bulk-{size}-{scheme}")
    page.get_by_label("Why?").select_option("trivial")
    page.get_by_role("button", name="Demote", exact=True).click()
    expect(page.get_by_text("Demoted 2 of 2.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Took back 2 of 2.")).to_be_visible()
    with team_transaction(differs.team):
        assert ReviewItem.objects.filter(pk__in=chosen, state="pending").count() == 2
        assert ReviewBatch.objects.count() == 1


@pytest.mark.parametrize(("size", "scheme"), [("wide", "dark"), ("narrow", "light")])
def test_an_edit_of_one_person_is_looked_at_once_more(differs, alice, bob, visit, size, scheme) -> None:
    with team_transaction(differs.team):
        item = ReviewItem.objects.filter(state="pending", quorum=1).select_related("batch").first()
        words = {"content": "Nothing of the kind holds any more: ask accounting before you do it."}
        decide(team=item.team, by=person(bob), reviewer=bob, item=item, decision="edit", version=1, **words)
    page = visit(alice, "/review/", viewport=SIZES[size], color_scheme=scheme)
    look(page, f"home-edited-{size}-{scheme}")
    page.get_by_role("link", name="that one person changed").click()
    expect(page.get_by_role("heading", name="Changed by one person")).to_be_visible()
    look(page, f"edited-{size}-{scheme}")
    page.get_by_role("link", name="Look at").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    expect(page.get_by_text("by bob@acme.test")).to_be_visible()
    look(page, f"edited-item-{size}-{scheme}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Memory ")).to_be_visible()
    page.goto("/review/conflicts/")
    expect(page.get_by_role("heading", name="Changed by one person")).to_be_hidden()
    with team_transaction(differs.team):
        assert ReviewItem.objects.get(pk=item.pk).outcome == "edit"


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_the_page_of_a_memory_that_is_still_to_be_judged(differs, alice, visit, size, scheme) -> None:
    with team_transaction(differs.team):
        batch = ReviewBatch.objects.get()
        ReviewBatch.objects.update(population={**batch.population, "canary": {"eligible": 1, "drawn": 1}})
        item = ReviewItem.objects.filter(state="pending", quorum=1).first()
    page = visit(alice, f"/memories/{item.memory_id}/", viewport=SIZES[size], color_scheme=scheme)
    look(page, f"sampled-{size}-{scheme}")
    page.goto("/memories/?status=any")
    expect(page.get_by_text("that you are still to judge")).to_be_visible()
    look(page, f"left-out-{size}-{scheme}")
    page.goto(f"/memories/{item.memory_id}/")
    page.get_by_role("link", name="Judge it").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
