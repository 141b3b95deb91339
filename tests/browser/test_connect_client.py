"""A person connects an MCP client in a real browser: the log-in, the page, and the way back to the client.

With HINDSIGHT_SCREENSHOTS_OF_CLIENTS=<folder> pictures of the pages are kept there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from hindsight_site.accounts.models import Membership
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories
from tests.accounts.oauth_steps import question, registered
from tests.browser.conftest import CHROMIUM, fits
from tests.factories import PASSWORD

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]
PICTURES = os.environ.get("HINDSIGHT_SCREENSHOTS_OF_CLIENTS", "")


class Callback(BaseHTTPRequestHandler):
    """The program that waits on loopback for the answer."""

    seen: list[str] = []  # noqa: RUF012 - emptied by the fixture

    def do_GET(self) -> None:
        if "favicon" not in self.path:
            self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"done.")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def callback() -> Iterator[str]:
    Callback.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/back"
    server.shutdown()
    server.server_close()


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def page(chromium: Browser, live_server, settings, complaints) -> Iterator[Page]:
    settings.SITE_URL = live_server.url
    context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce")
    opened = context.new_page()
    opened.on("console", lambda said: said.type in ("error", "warning") and complaints.append(said.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()


def address(redirect_uri: str) -> str:
    client_id = registered(redirect_uri, name="Desk assistant")
    return "/oauth/authorize?" + urlencode(question(client_id, redirect_uri=redirect_uri, scope="memory:read reflect"))


def log_in(page: Page, email: str) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()


def look(page: Page, name: str) -> None:
    """Check a page at both widths and in both colours; keep pictures when a folder is named."""
    for width in (1280, 360):
        for colours in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=colours)
            fits(page)
            found = [hit["id"] for hit in Axe().run(page).response["violations"]]
            assert found == [], (name, width, colours)
            if PICTURES:
                page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{colours}.png", full_page=True)


def test_allowing_leads_back_to_the_client(page, complaints, callback, agent, other_agent, alice) -> None:
    factories.agent(agent.team, "reviewer-bot")
    with team_transaction(other_agent.team):
        Membership.objects.create(team=other_agent.team, user=alice, role="viewer")
    page.goto(address(callback))
    log_in(page, alice.email)
    page.get_by_role("heading", name="Let Desk assistant work with Acme?").wait_for()
    look(page, "authorize")
    page.get_by_label("Team").select_option(label="Rival")
    page.get_by_role("button", name="Choose this team").click()
    page.get_by_role("heading", name="work with Rival?").wait_for()
    expect(page.get_by_text("what your role may not give")).to_have_count(1)
    look(page, "authorize-viewer")
    page.get_by_label("Team").select_option(label="Acme")
    page.get_by_role("button", name="Choose this team").press("Enter")
    page.get_by_label("Works as the agent").select_option(label="coder")
    page.get_by_role("button", name="Allow", exact=True).press("Enter")
    page.get_by_text("done.").wait_for()
    answer = parse_qs(urlsplit(Callback.seen[-1]).query)
    assert answer["state"] == ["s-1"]
    assert answer["code"][0].startswith("hsc_")
    assert complaints == []


def test_the_lists_of_connected_clients(page, agent, alice, bob) -> None:
    for person in (alice, bob):
        factories.connected_client(agent, person)
    page.goto("/account/")
    log_in(page, alice.email)
    page.get_by_role("heading", name="Connected clients").wait_for()
    look(page, "account")
    page.goto("/team/tokens/")
    expect(page.get_by_text("by bob@acme.test")).to_have_count(1)
    look(page, "team-tokens")
    page.locator("summary", has_text="Disconnect").first.click()
    page.get_by_role("button", name="Disconnect A client").click()
    page.get_by_text("A client is disconnected").wait_for()


def test_a_client_that_cannot_be_connected(page, agent, alice) -> None:
    page.goto("/oauth/authorize?client_id=made-up&redirect_uri=https://elsewhere.test")
    log_in(page, alice.email)
    page.get_by_role("heading", name="This client cannot be connected").wait_for()
    look(page, "authorize-refused")
