"""The one browser that the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from hindsight_site.accounts.models import User

CHROMIUM = Path("/usr/bin/chromium")


def hear_complaints(page: Page, complaints: list[str], *, but: str = "") -> None:
    """Put into `complaints` whatever the page's scripts and console complain of, except what holds `but`."""

    def listen(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not (but and but in said.text):
            complaints.append(said.text)

    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", listen)


def fits(page: Page) -> None:
    """Nothing on the page is wider than its window.

    Asked again for a while: a page just followed to may not have a document yet, a window just resized its width.
    From here and not in the page, whose policy allows no polling script.
    """
    page.wait_for_load_state("load")
    for _ in range(50):
        over = page.locator("html").evaluate("page => page.scrollWidth - innerWidth")
        if over <= 0:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{page.url} is {over} pixels wider than its window")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Playwright keeps an event loop in this thread; the database is used beside it, never inside it.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def new_page(chromium: Browser, live_server, browse) -> Iterator[Callable[..., Page]]:
    """`new_page(user, but=…, **options)` is a page of a new browser in which that person is signed in (None: nobody).

    Nothing may reach its console, except what holds `but`.
    """
    complaints: list[str] = []
    contexts = []

    def make(user: User | None, *, but: str = "", **options) -> Page:
        options = {"reduced_motion": "reduce", **options}  # no transition to wait for
        context = chromium.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        if user is not None:
            session = browse(user).cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        page = context.new_page()
        hear_complaints(page, complaints, but=but)
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def visit(new_page) -> Callable[..., Page]:
    """`visit(user, path, **options)` opens a page as that person; nothing may reach its console."""

    def open_page(user: User, path: str, **options) -> Page:
        page = new_page(user, **options)
        page.goto(path)
        return page

    return open_page
