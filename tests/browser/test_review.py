"""The review in a real browser: by keyboard alone, without scripts, small, in the dark, read by axe.

With HINDSIGHT_SCREENSHOTS=1 the pages are also kept as docs/screenshots/review-*.png.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Page, Route, expect

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, scopes
from memories.actions import Draft, EvidenceDraft
from memories.enums import Kind, Status
from memories.models import Memory
from reflection.actions import StepDraft
from reflection.enums import ItemState
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.sampling import open_batch
from tests import factories
from tests.browser.conftest import CHROMIUM, fits

SCREENSHOTS = Path(settings.BASE_DIR) / "docs" / "screenshots"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]

LESSONS = (
    (
        "A basic economy booking cannot be changed by itself: upgrade the cabin in the same call that moves "
        "the flights, and say the price difference before you do it.",
        "Basic economy flights cannot be modified. Cancel and rebook, or upgrade the cabin first.",
    ),
    (
        "A basic economy booking cannot be changed by itself: cancel and rebook it, and say the price "
        "difference before you do it.",
        "Cancel and rebook, or upgrade the cabin first.",
    ),
    ("退款只能退回原支付方式；用户要求退到别的信用卡时，先说明规则。", "退款只能退回原支付方式或礼品卡。"),
    (
        "The exporter takes the month as YYYY-MM since version 4.",
        "month must be given as YYYY-MM, got 'March'",
    ),
    (
        "The payments sandbox answers 429 after 20 calls a minute: wait for Retry-After.",
        "429 Too Many Requests",
    ),
    ("Ask for the reservation number first; names are not unique.", "three bookings under that name"),
)


@pytest.fixture
def batch(team: Team, agent: Agent) -> ReviewBatch:
    with team_transaction(team):
        for content, said in LESSONS:
            learn(agent, content, said)
        return open_batch(team=team, by=SYSTEM)


def learn(agent: Agent, content: str, said: str) -> Memory:
    """A trace in which a tool said it, and the memory that quotes it."""
    steps = (
        StepDraft(role="user", content="Please take care of this one for me.\nIt has been waiting since Monday."),
        StepDraft(role="tool", kind="tool_result", is_error=True, content=f'{{\n  "detail": "{said}"\n}}'),
    )
    trace, _ = factories.trace(agent, outcome="", task="Take care of a request", steps=steps)
    step = trace.steps.get(role="tool")
    start = step.text.index(said)
    end = start + len(said)
    quote = EvidenceDraft(trace.pk, step.pk, step.sequence, step.role, start, end, said)
    draft = Draft(content=content, kind=Kind.FACT, evidence=(quote,), source="reflection", distiller="rules")
    scope = scopes.private_of(agent.team, agent)
    return actions.remember(team=agent.team, by=SYSTEM, scope=scope, draft=draft, agent=agent).memory


@pytest.fixture
def visit(new_page) -> Callable[..., Page]:
    """`visit(user, path)` opens a page as that person; nothing but a refusal may reach its console."""

    def open_page(user: User, path: str = "/review/", **options) -> Page:
        page = new_page(user, but="status of 409", **options)
        page.goto(path)
        return page

    return open_page


def keep(page: Page, name: str) -> None:
    """Keep a picture of the page when asked to."""
    if os.environ.get("HINDSIGHT_SCREENSHOTS"):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"review-{name}.png")


def heading(page: Page, words: str) -> None:
    """Wait until this heading is there and, as after every step, in focus."""
    title = page.get_by_role("heading", level=1, name=words)
    expect(title).to_be_visible()
    expect(title).to_be_focused()


def decisions(batch: ReviewBatch) -> list[str]:
    with team_transaction(batch.team):
        standing = Verdict.objects.of(batch.team).filter(item__batch=batch, undone_at=None)
        return list(standing.order_by("created_at").values_list("decision", flat=True))


def pending(batch: ReviewBatch) -> int:
    with team_transaction(batch.team):
        return batch.items.filter(state=ItemState.PENDING).count()


def first(batch: ReviewBatch) -> str:
    """The address of the batch's first item in the table."""
    with team_transaction(batch.team):
        return f"/review/items/{batch.items.order_by('pk')[0].pk}/"


# --- By keyboard alone -----------------------------------------------------------------------------


def test_a_whole_batch_by_keyboard(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob)
    page.get_by_role("button", name="Start reviewing").press("Enter")
    heading(page, "Memory 1 of 6")
    expect(page.locator("html")).to_have_attribute("data-keys", "on")  # the script listens now
    page.keyboard.press("a")
    heading(page, "Memory 2 of 6")
    expect(page.get_by_role("status").filter(has_text="Approved")).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Why demote it?")).to_be_visible()
    page.keyboard.press("2")
    heading(page, "Memory 3 of 6")
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Demote without a reason")).to_be_focused()
    page.keyboard.press("Enter")
    heading(page, "Memory 4 of 6")
    page.keyboard.press("u")
    heading(page, "Memory 3 of 6")
    page.keyboard.press("e")
    editor = page.get_by_label("What it should say")
    expect(editor).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" Always: a, d, e, s and f are letters here.")
    expect(page.locator("#change ins").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    heading(page, "Memory 4 of 6")
    page.keyboard.press("s")
    heading(page, "Memory 4 of 6")
    page.keyboard.press("f")
    heading(page, "Memory 5 of 6")
    page.keyboard.press("ArrowRight")
    heading(page, "Memory 6 of 6")
    page.keyboard.press("k")
    heading(page, "Memory 5 of 6")
    page.keyboard.press("a")
    heading(page, "Memory 6 of 6")
    page.keyboard.press("a")
    expect(page.get_by_text("All done for this week.")).to_be_visible()
    assert decisions(batch) == ["approve", "demote", "edit", "sensitive", "approve", "approve"]
    with team_transaction(batch.team):
        assert Verdict.objects.of(batch.team).get(decision="demote", undone_at=None).reason == "wrong"
        edited = Memory.objects.of(batch.team).get(content__endswith="are letters here.")
        assert edited.status == Status.ACTIVE


def test_keys_open_the_trace_and_go_back(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, first(batch))
    page.keyboard.press("o")
    page.wait_for_url("**/traces/**")
    page.go_back()
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Why demote it?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    assert pending(batch) == 6


def test_keys_keep_out_of_the_way(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, first(batch))
    here = page.url
    for chord in ("Control+Shift+a", "Alt+d", "Meta+e"):
        page.keyboard.press(chord)
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', repeat: true, bubbles: true}))")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("d")
    keep(page, "keys")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.url == here
    assert pending(batch) == 6


def test_shortcuts_can_be_switched_off_for_good(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, first(batch))
    expect(page.locator(".decide kbd").first).to_be_visible()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Use shortcuts on this device").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator(".decide kbd").first).to_be_hidden()
    page.keyboard.press("a")
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    assert pending(batch) == 6
    page.keyboard.press("?")
    page.get_by_label("Use shortcuts on this device").check()
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    heading(page, "Memory 2 of 6")


def test_a_key_while_a_decision_is_on_its_way_hits_nothing(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, first(batch))
    sent = []

    def slowly(route: Route) -> None:
        sent.append(route.request.post_data)
        page.wait_for_timeout(300)
        route.continue_()

    page.route("**/decide/", slowly)
    page.keyboard.press("a")
    page.keyboard.press("a")
    page.keyboard.press("s")
    heading(page, "Memory 2 of 6")
    assert len(sent) == 1
    assert decisions(batch) == ["approve"]


# --- Without scripts -------------------------------------------------------------------------------


def test_a_whole_batch_without_scripts(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, java_script_enabled=False)
    page.get_by_role("button", name="Start reviewing").click()
    heading(page, "Memory 1 of 6")
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_hidden()
    expect(page.locator(".decide kbd").first).to_be_hidden()
    page.get_by_role("button", name="Approve").click()
    heading(page, "Memory 2 of 6")
    page.get_by_role("button", name="Undo").click()
    heading(page, "Memory 1 of 6")
    page.get_by_role("button", name="Demote", exact=True).click()
    page.get_by_label("Note for your team").fill("It moved in May.")
    page.get_by_role("button", name="Wrong or outdated").click()
    heading(page, "Memory 2 of 6")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("What it should say").fill("Said better by hand.")
    page.get_by_role("button", name="Save as revision and approve").click()
    heading(page, "Memory 3 of 6")
    for n in (4, 5, 6):
        page.get_by_role("button", name="Approve").click()
        heading(page, f"Memory {n} of 6")
    page.get_by_role("button", name="Sensitive").click()
    expect(page.get_by_text("All done for this week.")).to_be_visible()
    assert decisions(batch) == ["demote", "edit", "approve", "approve", "approve", "sensitive"]
    with team_transaction(batch.team):
        assert Verdict.objects.of(batch.team).get(decision="demote").note == "It moved in May."


# --- Every size and colour, read by axe ------------------------------------------------------------

SIZES = {
    "wide": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}


def lesson(batch: ReviewBatch) -> ReviewItem:
    with team_transaction(batch.team):
        return batch.items.select_related("batch", "memory").get(
            memory__content__contains="upgrade the cabin in the same call"
        )


def addresses(batch: ReviewBatch) -> dict[str, str]:
    one = f"/review/items/{lesson(batch).pk}/"
    return {
        "home": "/review/",
        "item": one,
        "reason": f"{one}?ask=reason",
        "edit": f"{one}?ask=edit",
        "batch": f"/review/batches/{batch.week}/",
    }


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_page_is_readable(batch: ReviewBatch, bob: User, visit, size: str, colours: str) -> None:
    page = visit(bob, color_scheme=colours, **SIZES[size])
    for name, address in addresses(batch).items():
        page.goto(address)
        fits(page)
        found = Axe().run(page).response["violations"]
        serious = [f"{v['id']}: {v['help']}" for v in found if v["impact"] in ("serious", "critical")]
        assert serious == [], name
        keep(page, f"{name}-{size}-{colours}")


def test_the_outcome_and_the_undo_are_readable_too(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, f"/review/items/{lesson(batch).pk}/", **SIZES["wide"])
    page.keyboard.press("e")
    page.get_by_label("What it should say").fill(lesson(batch).memory.content.replace("say", "tell"))
    page.get_by_role("button", name="Save as revision and approve").click()
    heading(page, "Memory 2 of 6")
    keep(page, "saved-wide-light")
    page.keyboard.press("k")
    heading(page, "Memory 1 of 6")
    expect(page.get_by_text("Confidence now")).to_be_visible()
    found = Axe().run(page).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
    keep(page, "outcome-wide-light")


def test_the_decision_is_in_reach_of_a_thumb(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, f"/review/items/{lesson(batch).pk}/", **SIZES["phone"])
    for name in ("Approve", "Demote", "Edit", "Can’t tell", "Sensitive"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert box["height"] >= 44, name
        assert box["y"] > 740 / 2, f"{name} is in the lower half"
        assert box["y"] + box["height"] <= 740, f"{name} is on the screen"
    bar = page.locator(".decide").bounding_box()
    assert bar is not None
    assert bar["height"] < 740 / 5, "the bar leaves the screen to the memory"


def test_nothing_hides_beneath_the_bar(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, f"/review/items/{lesson(batch).pk}/", **SIZES["phone"])
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last = page.locator("#use").locator("..").bounding_box()
    bar = page.locator(".decide").bounding_box()
    assert last is not None
    assert bar is not None
    assert last["y"] + last["height"] <= bar["y"]


def test_at_400_percent_the_bar_gives_way(batch: ReviewBatch, bob: User, visit) -> None:
    page = visit(bob, f"/review/items/{lesson(batch).pk}/", viewport={"width": 320, "height": 256})
    assert page.evaluate("getComputedStyle(document.querySelector('.decide')).position") == "static"
    fits(page)


def test_two_reviewers_in_two_browsers(batch: ReviewBatch, alice: User, bob: User, visit) -> None:
    address = f"/review/items/{lesson(batch).pk}/"
    first, second = visit(bob, address), visit(alice, address)
    first.keyboard.press("a")
    heading(first, "Memory 2 of 6")
    second.get_by_role("button", name="Sensitive").click()
    expect(second.get_by_text("decided this already: approved.")).to_be_visible()
    second.get_by_role("button", name="Keep that and go on").click()
    # The first reviewer has the next one open; in the second one's order that may be theirs too.
    expect(second.get_by_role("heading", level=1, name=re.compile("Memory [23] of 6"))).to_be_focused()
    assert decisions(batch) == ["approve"]
