"""What a small screen and long names must not tear: stacked tables, notices, lists, boxes, targets for a thumb."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import pytest
from django.urls import reverse
from playwright.sync_api import Locator, Page

from hindsight_site.accounts import invitations, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from tests.browser.conftest import CHROMIUM, fits

SMALL = {"viewport": {"width": 360, "height": 740}}
THUMBED = {**SMALL, "has_touch": True, "is_mobile": True}  # a phone widens its window to what is too wide for it
THUMB = 44  # pixels: the least height of what is meant to be hit
LONG = "a.very.long.address.of.somebody.with.a.long.name@subdomain.of.a.very-long-company-name.example.test"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]


@pytest.fixture
def open_page(visit, alice: User) -> Callable[..., Page]:
    """`open_page(**options)` is a new browser in which alice is signed in, at the overview."""
    return partial(visit, alice, "/")


def box(of: Locator) -> dict[str, float]:
    found = of.bounding_box()
    assert found is not None
    return dict(found)


def add_webhook(page: Page) -> None:
    page.goto(reverse("webhooks"))
    page.get_by_label("Address").fill("https://hooks.example.com/a/rather/long/path/that/goes/on/and/on/0123456789")
    page.get_by_label("What it is for").fill("Tells the channel of the operations team")
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Add it").click()
    page.wait_for_load_state()


def test_a_cell_of_a_stacked_table_keeps_its_lines_below_each_other(agent: Agent, open_page) -> None:
    page = open_page(**SMALL)
    add_webhook(page)
    page.goto(reverse("webhooks"))
    link = box(page.locator("tbody th a"))
    about = box(page.get_by_text("Tells the channel of the operations team"))
    assert about["y"] >= link["y"] + link["height"] - 1


def test_a_word_in_a_stacked_table_is_not_broken(agent: Agent, open_page) -> None:
    page = open_page(**SMALL)
    add_webhook(page)
    page.goto(reverse("audit"))
    fits(page)
    what = page.locator("td[data-label='To what']").first
    word = what.evaluate(
        "cell => { const range = document.createRange(); range.selectNodeContents(cell.firstElementChild.matches('br')"
        " ? cell.firstChild : cell.firstElementChild); return range.getClientRects().length }"
    )
    assert word == 1, "the kind of a thing is one word and stands on one line"


def test_long_names_stay_inside_notices_and_lists(team: Team, agent: Agent, alice: User, open_page) -> None:
    with team_transaction(team):
        invited = invitations.invite(
            team=team, by=person(alice), email=LONG, role="viewer",
            allowed=permissions.ROLES_IN_GIFT["owner"], inviter=alice,
        )  # fmt: skip
        link = urlsplit(invitations.link(invited)).path
        Agent.objects.filter(pk=agent.pk).update(description="x" * 200)
    page = open_page(**SMALL)
    for address in (link, reverse("connect"), reverse("team")):
        page.goto(address)
        fits(page)


def test_a_box_stands_beside_the_first_line_of_what_it_says(agent: Agent, open_page) -> None:
    page = open_page(viewport={"width": 1280, "height": 800})
    page.goto(reverse("team_tokens"))
    choice = page.locator(".choice", has=page.locator("#acts-for-me"))
    tick, said = box(choice.locator("input")), box(choice.locator("label"))
    assert said["height"] > 2 * tick["height"], "the words take several lines, else this shows nothing"
    assert tick["y"] - said["y"] < 6


@pytest.mark.parametrize("name", ["overview", "review", "audit", "team", "team_tokens", "connect", "jobs", "policy"])
def test_what_is_to_be_hit_is_as_high_as_a_thumb(agent: Agent, open_page, name) -> None:
    page = open_page(**THUMBED)
    page.goto(reverse(name))
    for part in page.locator("main :is(button, a.btn, summary, select)").all():
        if part.is_visible():
            assert box(part)["height"] >= THUMB, part.inner_text()


def test_the_filters_of_the_audit_stand_in_one_line(agent: Agent, open_page) -> None:
    page = open_page(viewport={"width": 1280, "height": 800})
    page.goto(reverse("audit"))
    tops = {round(box(field)["y"]) for field in page.locator(".filters .field").all()}
    assert max(tops) - min(tops) < 10
