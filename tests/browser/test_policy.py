"""Pages that we did not write every line of (admin, API reference), and the audit, under our policy, in a real browser.

With HINDSIGHT_SCREENSHOTS_OF_POLICY=<folder> pictures of the pages are kept there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Browser, Page, Request, expect

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import User
from hindsight_site.accounts.tenancy import team_transaction
from memories.actions import revise
from memories.models import Memory
from tests import factories
from tests.browser.conftest import CHROMIUM, fits, hear_complaints

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]


@pytest.fixture
def visit(chromium: Browser, live_server, browse) -> Iterator[Callable[..., Page]]:
    """`visit(user, path)` opens a page as that person. No complaint, and no request elsewhere, is let pass."""
    complaints: list[str] = []
    contexts = []

    def watch(request: Request) -> None:
        if not request.url.startswith((live_server.url, "data:", "blob:")):
            complaints.append(f"asked another host: {request.url}")

    def open_page(user: User, path: str, **options) -> Page:
        context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce", **options)
        contexts.append(context)
        session = browse(user).cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        page = context.new_page()
        hear_complaints(page, complaints)
        page.on("request", watch)
        page.goto(path, wait_until="networkidle")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def keep(page: Page, name: str) -> None:
    """Keep a picture of the page when asked to."""
    if folder := os.environ.get("HINDSIGHT_SCREENSHOTS_OF_POLICY"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture
def staff(alice: User) -> User:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    return alice


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("index", "/admin/"),
        ("list", "/admin/memories/memory/"),
        ("add", "/admin/accounts/user/add/"),
        ("team", "/admin/accounts/team/"),
        ("schedule", "/admin/django_q/schedule/add/"),
    ],
)
def test_the_admin_works_under_the_policy(name, path, staff, agent, visit) -> None:
    factories.memory(agent)
    page = visit(staff, path)
    expect(page.locator("#site-name, #branding").first).to_be_visible()
    # The theme switch is a script of the admin: it works where scripts from us may run.
    before = page.locator("html").get_attribute("data-theme")
    page.locator("button.theme-toggle:visible").first.click()
    assert page.locator("html").get_attribute("data-theme") != before
    keep(page, f"admin-{name}")


def test_staff_change_a_person_in_the_admin(staff, bob, visit) -> None:
    page = visit(staff, f"/admin/accounts/user/{bob.pk}/change/")
    page.get_by_label("First name").fill("Robert")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    keep(page, "admin-changed")


def test_the_api_reference_works_under_the_policy(alice, visit) -> None:
    page = visit(alice, "/api/v1/docs")
    expect(page.get_by_role("heading", name="Hindsight").first).to_be_visible()
    page.locator("#operations-recall-recall").click()
    expect(page.get_by_text("Find the memories that matter for a task").first).to_be_visible()
    expect(page.get_by_text("best_relevance").first).to_be_visible()
    keep(page, "docs")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_audit_reads_well(alice, team, agent, visit, width, scheme) -> None:
    factories.memory(agent)
    with team_transaction(team):
        memory = factories.memory(agent, "Ask for the reservation number first.")
    page = visit(alice, "/audit/", viewport={"width": width, "height": 800}, color_scheme=scheme)
    expect(page.get_by_role("heading", level=1, name="Audit")).to_be_visible()
    page.get_by_text("Details").first.click()
    keep(page, f"audit-{width}-{scheme}")
    fits(page)
    found = Axe().run(page)
    assert found.response["violations"] == [], found.generate_report()
    page.get_by_label("Its id").fill(str(memory.pk))
    page.get_by_label("What", exact=True).select_option("memory.remembered")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("What", exact=True)).to_have_value("memory.remembered")
    page.locator("tbody").get_by_role("link", name="memory", exact=True).click()
    expect(page).to_have_url(re.compile(f"/memories/{memory.pk}/"))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light")])
def test_receipts_read_well(alice, team, agent, visit, width, scheme) -> None:
    memory = factories.memory(agent, "Ask for the reservation number before you look for the booking.")
    factories.memory(agent, "A booking is changed on the website; the phone line only cancels. " * 12)
    client = factories.api_client(team, agent)
    asked = {"query": "how do I look for a booking?", "min_relevance": 0, "session_id": "call with jane@example.com"}
    found = client.post("/api/v1/recall", asked).json()
    client.post("/api/v1/feedback", {"recall_id": found["recall_id"], "success": True})
    with team_transaction(team):
        revise(team=team, by=SYSTEM, memory=Memory.objects.get(pk=memory.pk), content="Ask for the name first.")
    page = visit(alice, "/recalls/", viewport={"width": width, "height": 800}, color_scheme=scheme)
    for name in ("recalls", "receipt"):
        fits(page)
        violations = Axe().run(page)
        assert violations.response["violations"] == [], violations.generate_report()
        keep(page, f"{name}-{width}-{scheme}")
        if name == "recalls":
            page.get_by_role("link", name="how do I look for a booking?").click()
            expect(page).to_have_url(re.compile(r"/recalls/[0-9a-f-]+/"))
    page.get_by_role("link", name="Open the memory").first.click()
    expect(page).to_have_url(re.compile(r"/memories/[0-9a-f-]+/"))
