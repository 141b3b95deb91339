"""Ways that somebody new takes: an agent's first call arrives, an answer is traced to its origin and put right."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from hindsight_site.accounts.tenancy import team_transaction
from memories.actions import EvidenceDraft
from memories.models import Recall
from tests import factories
from tests.browser.conftest import CHROMIUM, fits

SAID = "Never refund more than 500.00 without a supervisor."

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]


@pytest.fixture
def recall_id(agent, api) -> str:
    """A recall of a week ago that handed out one memory with a quote."""
    trace, _ = factories.trace(agent)
    with team_transaction(agent.team):
        step = trace.steps.get(sequence=2)
    quote = EvidenceDraft(
        trace_id=trace.pk, step_id=step.pk, step_sequence=2, role=step.role, start=0, end=20, quote=step.text[:20]
    )
    factories.memory(agent, SAID, evidence=(quote,))
    asked = {"query": "may a damaged parcel be paid back?", "min_relevance": 0}
    recall_id = api.post("/api/v1/recall", asked).json()["recall_id"]
    with team_transaction(agent.team):
        recall = Recall.objects.of(agent.team).get(pk=recall_id)
        Recall.objects.of(agent.team).filter(pk=recall_id).update(created_at=recall.created_at - timedelta(days=7))
    return recall_id


def readable(page: Page) -> None:
    """At both widths and in both colours it fits, and axe finds nothing."""
    for width in (1280, 360):
        for colours in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=colours)
            fits(page)
            assert [hit["id"] for hit in Axe().run(page).response["violations"]] == [], (page.url, width, colours)
    page.set_viewport_size({"width": 1280, "height": 900})


def apart(page: Page) -> None:
    """No two fields of a filter lie over each other."""
    boxes = [field.bounding_box() for field in page.locator(".filters :is(input:not([type=hidden]), select)").all()]
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            above = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            assert beside or above, (one, other)


def test_the_first_call_is_seen_without_reloading(visit, alice, agent) -> None:
    page = visit(alice, reverse("connect_agent", args=["coder"]))
    expect(page.locator(".lights .light[data-on]")).to_have_count(0)
    with team_transaction(agent.team):
        client = factories.api_client(agent.team, agent)
    page.reload()  # the token is on the page, and was never used
    expect(page.get_by_role("cell", name="never")).to_be_visible()
    page.get_by_label("Name of the token").fill("half typed")
    assert client.get("/api/v1/me").status_code == 200
    expect(page.locator(".lights .light[data-on]")).to_have_count(1, timeout=8000)
    expect(page.get_by_role("cell", name="never")).to_have_count(0)
    expect(page.get_by_label("Name of the token")).to_have_value("half typed")
    readable(page)


def test_without_scripts_there_is_a_link_to_look_again(visit, alice, agent) -> None:
    page = visit(alice, reverse("connect_agent", args=["coder"]), java_script_enabled=False)
    factories.api_client(agent.team, agent).get("/api/v1/me")
    page.get_by_role("link", name="Look again").click()
    expect(page.locator(".lights .light[data-on]")).to_have_count(1)


def test_from_what_an_agent_was_told_to_where_it_came_from_and_back_to_right(visit, bob, recall_id) -> None:
    page = visit(bob, reverse("overview"))
    page.get_by_role("navigation").get_by_role("link", name="Recalls").first.click()
    page.get_by_label("Search").fill("supervisor refund")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("mark")).to_have_count(2)
    apart(page)
    readable(page)
    page.get_by_role("link", name="may a damaged parcel be paid back?").click()
    expect(page.get_by_text("Where it came from (1 quote)")).to_be_visible()
    readable(page)
    page.get_by_role("link", name="Read in the trace").click()
    expect(page.locator("#step-2")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Correct it").click()
    page.get_by_label("The memory").fill(SAID.replace("500", "750"))
    expect(page.locator("#change ins")).to_have_text("750.00")
    readable(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").get_by_text("Saved: agents are told this from now on.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("article .words")).to_have_text(SAID)
