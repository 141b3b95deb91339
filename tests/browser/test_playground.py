"""The playground, the navigation and the mails' pages in a real browser: scripts off, small, dark, read by axe.

With HINDSIGHT_SCREENSHOTS=1 the pages are also kept as docs/screenshots/playground-*.png.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Page, expect

from hindsight_site.accounts import mail_choices
from hindsight_site.accounts.enums import MailKind
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory, Recall
from tests import factories
from tests.browser.conftest import CHROMIUM, fits
from tests.factories import ApiClient

SCREENSHOTS = Path(os.environ.get("HINDSIGHT_SCREENSHOTS_TO", settings.BASE_DIR / "docs" / "screenshots"))
SAID = "Releases are deployed with make deploy after the staging check."
ASKED = "how are releases deployed?"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]


@pytest.fixture
def memories(agent) -> list[Memory]:
    factories.memory(agent, "Access tokens expire after 15 minutes.")
    factories.memory(agent, "Access tokens expire after 60 minutes.")
    return [factories.memory(agent, SAID), factories.memory(agent, "The deploy job needs AWS_PROFILE set.")]


@pytest.fixture
def visit(new_page) -> Callable[..., Page]:
    """`visit(user, path)` opens a page as that person (None: nobody); nothing but a refusal may reach its console."""

    def open_page(user: User | None, path: str, **options) -> Page:
        page = new_page(user, but="422", **options)
        page.goto(path)
        return page

    return open_page


def check(page: Page, name: str) -> None:
    fits(page)
    found = Axe().run(page)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    if os.environ.get("HINDSIGHT_SCREENSHOTS"):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"playground-{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "colours"), [(1280, "light"), (360, "dark")])
def test_pages_fit_and_can_be_read(visit, carol, memories, width, colours) -> None:
    page = visit(carol, reverse("playground"), viewport={"width": width, "height": 800}, color_scheme=colours)
    check(page, f"empty-{width}-{colours}")
    page.goto(f"{reverse('playground')}?q=how+are+releases+deployed&agent=coder&min_relevance=0")
    for summary in page.locator("#hits summary, #left-out summary, .numbers summary").all():
        summary.click()
    check(page, f"answer-{width}-{colours}")
    page.goto(f"{reverse('playground')}?q=the+king+of+France&agent=coder&min_relevance=0.99")
    expect(page.get_by_role("heading", name="No match, said plainly")).to_be_visible()
    check(page, f"no-match-{width}-{colours}")
    page.goto(f"{reverse('playground')}?q=x&agent=coder&k=99&environment=linux")
    check(page, f"refused-{width}-{colours}")
    page.goto(reverse("account"))
    check(page, f"account-{width}-{colours}")


def test_a_question_by_keyboard_without_scripts_leaves_no_receipt(visit, carol, team: Team, memories) -> None:
    page = visit(carol, reverse("playground"), java_script_enabled=False)
    page.get_by_label("Question").focus()
    page.keyboard.type(ASKED)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text(SAID).first).to_be_visible()
    expect(page).to_have_url(re.compile("q=how.are.releases.*agent=coder"))
    with team_transaction(team):
        assert not Recall.objects.of(team).exists()


def test_from_a_receipt_and_from_a_memory_it_is_one_click(visit, carol, memories, api: ApiClient) -> None:
    recall_id = api.post("/api/v1/recall", {"query": ASKED, "min_relevance": 0}).json()["recall_id"]
    page = visit(carol, reverse("recall", args=[recall_id]))
    page.get_by_role("link", name="Ask it again now").click()
    expect(page.get_by_role("heading", name="What the agent reads")).to_be_visible()
    expect(page.get_by_label("Question")).to_have_value(ASKED)
    page.goto(reverse("memory", args=[memories[0].pk]))
    page.get_by_role("link", name="Try it in the playground").click()
    expect(page.get_by_role("heading", name="Hits, best first")).to_be_visible()


def test_everything_is_reached_from_the_navigation(visit, alice, memories) -> None:
    page = visit(alice, reverse("memories"), viewport={"width": 1280, "height": 800})
    nav = page.get_by_role("navigation", name="Main")
    expect(nav.get_by_role("link", name="Conflicts 1 to settle")).to_be_visible()
    for name in ("Quarantine", "Recalls", "Playground"):
        nav.get_by_role("link", name=name).click()
        expect(page).to_have_url(re.compile(f"/{name.lower()}/$"))
        expect(nav.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")


def test_on_a_phone_the_rest_is_behind_more(visit, alice, memories) -> None:
    page = visit(alice, reverse("memories"), viewport={"width": 360, "height": 740}, java_script_enabled=False)
    nav = page.get_by_role("navigation", name="Main")
    expect(nav.get_by_role("link", name="Playground")).to_be_hidden()
    nav.get_by_text("More").click()
    fits(page)
    nav.get_by_role("link", name="Playground").click()
    expect(page.get_by_role("heading", name="Playground")).to_be_visible()


def test_a_mail_is_ended_without_logging_in(visit, alice) -> None:
    path = mail_choices.link(alice, MailKind.REVIEW_OPENED).removeprefix(settings.SITE_URL)
    page = visit(None, path, viewport={"width": 360, "height": 740}, java_script_enabled=False)
    page.get_by_role("button", name="Send me no more of these").click()
    expect(page.get_by_role("heading", name="You get no more of these")).to_be_visible()
    alice.refresh_from_db()
    assert alice.mails_off == [MailKind.REVIEW_OPENED]
