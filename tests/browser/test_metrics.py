"""The metrics of the review in a real browser: every size and colour, read by axe, nothing wider than the page.

With HINDSIGHT_SCREENSHOTS set to a folder the pages are kept there as pictures.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page, expect

from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.weeks import week_of
from tests import factories
from tests.browser.conftest import CHROMIUM, fits

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]
SIZES = {
    "wide": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}
# (weeks ago, approved, demoted, edited, prompt version): steady, too few, steady, then a new prompt and a drop.
PAST = (
    (11, 26, 3, 1, "distil-3"), (10, 27, 2, 1, "distil-3"), (9, 25, 4, 1, "distil-3"), (8, 6, 1, 1, "distil-3"),
    (7, 27, 2, 1, "distil-3"), (6, 26, 2, 2, "distil-3"), (5, 24, 4, 2, "distil-3"), (4, 28, 1, 1, "distil-3"),
    (3, 26, 3, 1, "distil-3"), (2, 23, 5, 2, "distil-4"), (1, 16, 11, 3, "distil-4"),
)  # fmt: skip
REASONS = ("trivial", "wrong", "trivial", "unsupported", "too_specific")


@pytest.fixture
def history(team: Team, agent: Agent, bob: User) -> None:
    """Eleven weeks of verdicts, written straight into the tables: a reviewer's work of three months."""
    memories = [factories.memory(agent, f"The port of service {n} is {8000 + n}.") for n in range(42)]
    with team_transaction(team):
        Memory.objects.filter(pk__in=[one.pk for one in memories[:12]]).update(prompt_version="distil-4", model="small")
        Memory.objects.filter(pk__in=[one.pk for one in memories[12:]]).update(prompt_version="distil-3", model="small")
        for ago, *counts, prompt in PAST:
            judge_week(team, bob, memories, ago, counts, prompt)


def judge_week(team: Team, bob: User, memories: list[Memory], ago: int, counts: list[int], prompt: str) -> None:
    at = timezone.now() - timedelta(weeks=ago)
    week = week_of(at, team.time_zone)
    decisions = [d for d, n in zip(("approve", "demote", "edit"), counts, strict=True) for _ in range(n)]
    batch = ReviewBatch.objects.create(
        team=team, week=week.name, opens_at=week.opens, closes_at=week.ends, seed="s", status="closed",
        population={"random": {"eligible": 90, "drawn": 30, "this_week": 30, "pools": [{"eligible": 90 + 5 * ago}]}},
    )  # fmt: skip
    chosen = memories if prompt == "distil-4" else memories[12:]
    for position, (decision, memory) in enumerate(zip(decisions, chosen, strict=False)):
        item = ReviewItem.objects.create(
            team=team, batch=batch, memory=memory, memory_revision=1, stratum="random", inclusion_probability=0.3,
            position=position, state="decided",
        )  # fmt: skip
        Verdict.objects.create(
            team=team, item=item, reviewer=bob, decision=decision, memory_revision=1, before={"revision": 1},
            reason=REASONS[position % len(REASONS)] if decision == "demote" else "",
            created_at=week.opens + timedelta(hours=30),
        )  # fmt: skip


def keep(page: Page, name: str) -> None:
    """Keep a picture of the whole page when asked to."""
    if folder := os.environ.get("HINDSIGHT_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def is_readable(page: Page) -> None:
    """Axe finds nothing serious, and nothing is wider than the window."""
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], found
    fits(page)


@pytest.mark.parametrize(("size", "colours"), [("wide", "light"), ("phone", "dark")])
def test_the_metrics_are_readable(history, bob, visit, size: str, colours: str) -> None:
    page = visit(bob, "/review/metrics/?by=prompt", color_scheme=colours, **SIZES[size])
    expect(page.get_by_text("is out of control")).to_be_visible()
    is_readable(page)
    keep(page, f"metrics-{size}-{colours}")
    page.get_by_text("Numbers").first.click()
    expect(page.get_by_role("region", name="Acceptance by week, as a table")).to_be_visible()
    is_readable(page)


def test_the_metrics_work_without_scripts(history, bob, visit) -> None:
    page = visit(bob, "/review/metrics/", java_script_enabled=False)
    page.get_by_label("Split by").select_option("kind")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="Fact").click()
    expect(page.get_by_text("only kind Fact")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV of Acceptance by week").click()
    assert "Accepted" in download.value.path().read_text(encoding="utf-8").splitlines()[0]
