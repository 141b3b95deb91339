"""Long work in a real browser: erasing by keyboard and without scripts, small screens, the dark, read by axe.

With HINDSIGHT_SCREENSHOTS=1 the pages are also kept as docs/screenshots/jobs-*.png.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import JobKind, JobStatus
from hindsight_site.accounts.jobs import actions, running
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from reflection.tasks import HANDLERS
from tests import factories
from tests.browser.conftest import CHROMIUM, fits

SCREENSHOTS = Path(os.environ.get("HINDSIGHT_SCREENSHOTS_TO", settings.BASE_DIR / "docs" / "screenshots"))
SIZES = {"wide": (1280, 800), "small": (360, 740)}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]


@pytest.fixture
def open_page(visit, alice: User) -> Callable[..., Page]:
    """`open_page(**options)` is a new browser in which alice is signed in, at the overview."""
    return partial(visit, alice, "/")


def check(page: Page, name: str) -> None:
    """Nothing sticks out to the right, nobody is shut out; keep a picture when asked to."""
    fits(page)
    found = Axe().run(page)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    if os.environ.get("HINDSIGHT_SCREENSHOTS"):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"jobs-{name}.png", full_page=True)


@pytest.fixture
def at_work(team: Team, agent: Agent, alice: User) -> dict[str, Job]:
    """One job in every state that has a look of its own."""
    factories.memory(agent, "Quillfeather signs the invoices above ten thousand.")
    factories.trace(agent, task="Ring Quillfeather about the invoices")
    ago = timezone.now() - timedelta(minutes=3)
    states = {
        "running": (
            JobKind.EXPORT,
            {"status": JobStatus.RUNNING, "done": 420, "total": 1_000, "doing": "writing rows"},
        ),
        "failed": (
            JobKind.IMPORT,
            {"status": JobStatus.FAILED, "error": "This file cannot be read as any known format."},
        ),
        "cancelled": (JobKind.IMPORT, {"status": JobStatus.CANCELLED}),
        "checked": (JobKind.INVARIANTS, {"status": JobStatus.QUEUED}),
        "export": (JobKind.EXPORT, {"status": JobStatus.QUEUED}),
    }
    made = {}
    with team_transaction(team):
        for name, (kind, fields) in states.items():
            made[name] = actions.request(team=team, by=SYSTEM, kind=kind, person=alice)
            Job.objects.filter(pk=made[name].pk).update(begun_at=ago, **fields)
    for name in ("checked", "export"):
        running.run(team, made[name].pk, HANDLERS)
    return made


@pytest.mark.parametrize(("size", "colours"), [("wide", "light"), ("small", "dark")])
def test_pages_fit_and_can_be_read(at_work, open_page, size, colours) -> None:
    width, height = SIZES[size]
    page = open_page(viewport={"width": width, "height": height}, color_scheme=colours, java_script_enabled=True)
    for name in ("jobs", "erase", "export", "import", "overview"):
        page.goto(reverse(name))
        check(page, f"{name}-{size}-{colours}")
    for name, job in at_work.items():
        page.goto(reverse("job", args=[job.pk]))
        check(page, f"{name}-{size}-{colours}")
    page.goto(reverse("erase"))
    page.get_by_label("Known as").fill("Quillfeather")
    page.get_by_role("button", name="Show what would go").click()
    expect(page.get_by_role("heading", name="What would go")).to_be_visible()
    check(page, f"preview-{size}-{colours}")


def test_an_erasure_by_keyboard_without_scripts(at_work, team: Team, open_page) -> None:
    page = open_page(java_script_enabled=False)
    page.goto(reverse("erase"))
    page.get_by_label("What is to be erased").focus()
    page.keyboard.press("Tab")
    page.keyboard.type("Quillfeather")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_label("Type erase to confirm").focus()
    page.keyboard.type("erase")
    page.keyboard.press("Enter")
    expect(page.get_by_text("It waits for a worker.")).to_be_visible()
    with team_transaction(team):
        job = Job.objects.get(kind=JobKind.ERASURE)
    running.run(team, job.pk, HANDLERS)
    # The page looks again by itself.
    expect(page.get_by_role("heading", name="What it did")).to_be_visible(timeout=10_000)
    expect(page.get_by_text("Found afterwards")).to_be_visible()


def test_a_job_at_work_is_followed_with_scripts(at_work, team: Team, open_page) -> None:
    page = open_page()
    job = at_work["running"]
    page.goto(reverse("job", args=[job.pk]))
    expect(page.get_by_text("Writing rows: 420 of 1,000")).to_be_visible()
    with team_transaction(team):
        Job.objects.filter(pk=job.pk).update(done=900)
    expect(page.get_by_text("Writing rows: 900 of 1,000")).to_be_visible(timeout=10_000)
    with team_transaction(team):
        Job.objects.filter(pk=job.pk).update(status=JobStatus.FAILED, error="The disk is full.")
    expect(page.get_by_role("alert")).to_contain_text("The disk is full.", timeout=10_000)
