"""The pages of the review: what each role sees and may do, one step at a time, without a script."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, scopes
from memories.actions import Draft, EvidenceDraft
from memories.enums import Kind, Status
from memories.models import Memory
from reflection.enums import Decision, ItemState
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.sampling import open_batch
from reflection.review.turns import claim
from reflection.review.verdicts import decide
from tests import factories

HOME = "/review/"


@pytest.fixture
def batch(team: Team, agent) -> ReviewBatch:
    for n in range(3):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}")
    return open_batch(team=team, by=SYSTEM)


@pytest.fixture
def item(batch: ReviewBatch) -> ReviewItem:
    return batch.items.order_by("position")[0]


def url(name: str, item: ReviewItem) -> str:
    return reverse(f"review-{name}", args=[item.pk])


def send(client: Client, item: ReviewItem, decision: str, **more):
    with team_transaction(item.team):
        version = ReviewItem.objects.get(pk=item.pk).version
    form = {"decision": decision, "version": version, **more}
    return client.post(url("decide", item), form)


def text(response) -> str:
    """The page as a reader meets it: no tags, white space folded."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def state_of(item: ReviewItem) -> str:
    with team_transaction(item.team):
        return ReviewItem.objects.get(pk=item.pk).state


# --- Who may ---------------------------------------------------------------------------------------


def test_without_signing_in_there_is_only_the_way_in(batch, item) -> None:
    for address in (HOME, url("item", item), reverse("review-batch", args=[batch.week])):
        response = Client().get(address)
        assert response.status_code == 302
        assert response["Location"].startswith("/login/")


def test_a_viewer_reads_and_does_nothing(batch, item, carol: User, browse) -> None:
    client = browse(carol)
    for address in (HOME, url("item", item), reverse("review-batch", args=[batch.week])):
        response = client.get(address)
        assert response.status_code == 200
        assert b'name="decision" value="approve"' not in response.content
    assert "your role (Viewer) does not judge" in text(client.get(url("item", item)))
    for response in (
        send(client, item, "approve"),
        client.post(url("undo", item)),
        client.post(reverse("review-next")),
        client.post(reverse("review-open")),
    ):
        assert response.status_code == 403
    assert state_of(item) == ItemState.PENDING


def test_another_team_finds_nothing(batch, item, mallory: User, browse) -> None:
    client = browse(mallory)
    assert client.get(url("item", item)).status_code == 404
    assert client.get(reverse("review-batch", args=[batch.week])).status_code == 404
    assert send(client, item, "demote", reason="").status_code == 404
    assert client.post(url("undo", item)).status_code == 404
    assert batch.week not in text(client.get(HOME))
    assert state_of(item) == ItemState.PENDING


def test_only_who_manages_opens_a_batch_early(team: Team, agent, alice: User, bob: User, browse) -> None:
    factories.memory(agent)
    assert browse(bob).post(reverse("review-open")).status_code == 403
    assert "Draw it now" not in text(browse(bob).get(HOME))
    assert "Draw it now" in text(browse(alice).get(HOME))
    response = browse(alice).post(reverse("review-open"))
    assert (response.status_code, response["Location"]) == (303, HOME)
    assert ReviewBatch.objects.of(team).count() == 1


@pytest.mark.parametrize("name", ["review-decide", "review-undo"])
def test_nothing_happens_on_a_get(item, bob: User, browse, name) -> None:
    assert browse(bob).get(reverse(name, args=[item.pk])).status_code == 405


def test_a_form_without_its_token_is_refused(item, bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)
    assert send(client, item, "approve").status_code == 403
    assert state_of(item) == ItemState.PENDING


# --- Home ------------------------------------------------------------------------------------------


def test_home_of_a_new_team_shows_how_to_begin(team: Team, alice: User, browse) -> None:
    page = browse(alice).get(HOME)
    assert "Nothing to review yet" in text(page)
    assert reverse("connect") in page.content.decode()


def test_home_explains_traces_without_memories(team: Team, agent, alice: User, browse) -> None:
    trace, _ = factories.trace(agent)
    page = browse(alice).get(HOME)
    assert "Traces came in, but nothing is remembered yet" in text(page)
    assert reverse("trace", args=[trace.pk]) in page.content.decode()


def test_home_says_when_the_next_sample_is_drawn(team: Team, agent, bob: User, browse) -> None:
    Team.objects.filter(pk=team.pk).update(time_zone="Europe/Paris")
    factories.memory(agent)
    page = text(browse(bob).get(HOME))
    assert re.search(r"drawn on Monday \d+ \w+, 06:00 Europe/Paris", page)


def test_home_of_a_running_week(batch, item, bob: User, browse) -> None:
    client = browse(bob)
    send(client, item, "approve")
    page = text(client.get(HOME))
    assert "1 of 3 decided" in page
    assert "Continue reviewing" in page
    assert "about 1 minute left" in page
    assert re.search(r"closes Sunday \d+ \w+, 23:59 UTC", page)
    assert "1 by bob@acme.test" in page
    assert "A quiet week" not in page


def test_home_when_all_is_done(batch, bob: User, browse) -> None:
    client = browse(bob)
    first, second, third = batch.items.all()
    send(client, first, "approve")
    send(client, second, "demote", reason="wrong")
    response = send(client, third, "edit", content="Said better.")
    assert response["Location"] == HOME
    page = text(client.get(HOME))
    assert "All done for this week. 1 approved, 1 demoted, 1 edited. The next sample is drawn on Monday " in page
    assert "nothing judged" not in page, "this week was"
    assert page.count("counts a week once it has ended") == 2
    assert "Continue reviewing" not in page


def test_home_tells_of_what_is_left_to_others(batch, alice: User, bob: User, browse) -> None:
    first, second, third = batch.items.all()
    for _ in range(2):
        send(browse(alice), first, "cannot_tell")
    send(browse(alice), third, "approve")
    ReviewItem.objects.filter(pk=second.pk).update(claimed_by=None)
    assert claim(batch.team, bob, second)
    page = text(browse(alice).get(HOME))
    assert "Nothing for you right now: 1 is open on a colleague’s screen, 1 is for somebody else" in page


def test_rates_of_earlier_weeks_show_their_band_and_their_doubt(batch, team, bob: User, browse) -> None:
    for n, (approved, demoted) in enumerate([(27, 3), (5, 1)]):
        past = ReviewBatch.objects.create(
            team=team,
            week=f"2020-W0{n + 1}",
            opens_at=timezone.now() - timedelta(days=14 + n),
            closes_at=timezone.now() - timedelta(days=7 + n),
            seed="0" * 64,
        )
        memories = list(Memory.objects.of(team))
        for at, decision in enumerate([Decision.APPROVE] * approved + [Decision.DEMOTE] * demoted):
            memory = memories[at] if at < len(memories) else factories.memory(memories[0].agent, f"{at} {uuid.uuid4()}")
            memories = memories if at < len(memories) else [*memories, memory]
            judged = ReviewItem.objects.create(
                team=team,
                batch=past,
                memory=memory,
                memory_revision=1,
                stratum="random",
                inclusion_probability=1,
                position=at,
                state=ItemState.DECIDED,
                outcome=decision,
            )
            Verdict.objects.create(team=team, item=judged, reviewer=bob, decision=decision, memory_revision=1)
    page = text(browse(bob).get(HOME)).replace("\u202f", " ")
    assert "Accepted in week 1 of 2020 90 % 74 % to 97 %, 30 judged" in page
    assert "n = 6, too few" in page
    assert "Accepted over 2 weeks 89 % 75 % to 96 %, 36 judged" in page


# --- One memory ------------------------------------------------------------------------------------


@pytest.fixture
def told(team: Team, agent) -> ReviewItem:
    """A low-confidence memory of a model, with a quote from a trace, sampled."""
    trace, _ = factories.trace(agent)
    step = trace.steps.get(is_error=True)
    start = step.text.index("month must be given as YYYY-MM")
    quote = EvidenceDraft(trace.pk, step.pk, step.sequence, step.role, start, start + 30, step.text[start : start + 30])
    draft = Draft(
        content="Give the month as YYYY-MM, never <b>by name</b>.",
        kind=Kind.FACT,
        confidence=0.2,
        evidence=(quote,),
        source="reflection",
        distiller="model",
        model="oracle-9",
        prompt_version="p-17",
    )
    actions.remember(team=team, by=SYSTEM, scope=scopes.private_of(team, agent), draft=draft, agent=agent)
    return open_batch(team=team, by=SYSTEM).items.get()


def test_the_page_shows_the_memory_and_the_quote_in_its_step(told, bob: User, browse) -> None:
    page = browse(bob).get(url("item", told))
    assert "Memory 1 of 1" in text(page)
    assert "never &lt;b&gt;by name&lt;/b&gt;." in page.content.decode()
    assert "<mark>month must be given as YYYY-MM</mark>" in page.content.decode()
    assert "Error:" in text(page), "with what stood around it"
    assert reverse("trace", args=[told.memory.evidence.get().trace_id]) in page.content.decode()


def test_before_the_decision_the_page_is_blind(told, bob: User, browse) -> None:
    page = text(browse(bob).get(url("item", told)))
    for giveaway in ("Confidence", "confidence", "oracle-9", "p-17", "Random sample", "Drawn as"):
        assert giveaway not in page


def test_after_the_decision_it_tells_what_the_machine_thought(told, bob: User, browse) -> None:
    client = browse(bob)
    send(client, told, "demote", reason="unsupported", note="It says more than the error does.")
    page = text(client.get(url("item", told)))
    for fact in (
        "Demoted",
        "by you",
        "Unsupported by its evidence",
        "It says more",
        "Confidence",
        "oracle-9",
        "p-17",
    ):
        assert fact in page


def test_a_deleted_trace_is_said_so(told, bob: User, browse) -> None:
    actions.clear_evidence_of_trace(team=told.team, trace_id=told.memory.evidence.get().trace_id)
    assert "The trace this rested on was deleted" in text(browse(bob).get(url("item", told)))


def test_a_near_duplicate_stands_beside_it(team: Team, agent, bob: User, browse) -> None:
    factories.memory(agent, "The export takes the month as YYYY-MM.", kind=Kind.FACT)
    factories.memory(agent, "The export takes the month by name.", kind=Kind.FACT)
    item = open_batch(team=team, by=SYSTEM).items.first()
    page = browse(bob).get(url("item", item))
    assert "<del>" in page.content.decode()
    assert "Demote as a duplicate" in text(page)
    response = send(browse(bob), item, "demote", reason="duplicate")
    assert response.status_code == 303
    assert Verdict.objects.of(team).get().reason == "duplicate"


def test_a_memory_without_quotes_warns(item, bob: User, browse) -> None:
    page = text(browse(bob).get(url("item", item)))
    assert "There is no quote to check it against: it was written directly" in page


def test_a_forgotten_memory_is_shown_as_void(item, bob: User, browse) -> None:
    actions.forget(team=item.team, by=SYSTEM, memory=item.memory)
    page = browse(bob).get(url("item", item))
    assert "was forgotten after it was drawn" in text(page)
    assert b'value="approve"' not in page.content
    assert state_of(item) == ItemState.VOID
    assert "of 2 decided, 1 void" in text(browse(bob).get(HOME))


def test_a_verdict_outlives_its_memory(item, bob: User, browse) -> None:
    client = browse(bob)
    send(client, item, "demote", reason="wrong")
    actions.forget(team=item.team, by=SYSTEM, memory=Memory.objects.get(pk=item.memory_id))
    page = text(client.get(url("item", item)))
    assert "was forgotten after it was drawn" in page
    assert "left out of the rates" not in page
    assert "Wrong or outdated" in page
    assert state_of(item) == ItemState.DECIDED


def test_ones_own_memory_is_for_somebody_else(team: Team, agent, bob: User, browse) -> None:
    scope = scopes.private_of(team, agent)
    draft = Draft(content="Bob's own rule.", kind=Kind.FACT)
    actions.remember(team=team, by=person(bob), scope=scope, draft=draft)
    item = open_batch(team=team, by=SYSTEM).items.get()
    assert "You wrote this memory yourself" in text(browse(bob).get(url("item", item)))
    assert send(browse(bob), item, "approve").status_code == 403


def test_no_page_needs_an_inline_script_or_style(told, batch, bob: User, browse) -> None:
    client = browse(bob)
    addresses = [HOME, reverse("review-batch", args=[batch.week])]
    addresses += [url("item", told) + query for query in ("", "?ask=reason", "?ask=edit")]
    for address in addresses:
        page = client.get(address).content.decode()
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?! src=)|javascript:", page), address


# --- Deciding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"decision": "approve"}, Status.ACTIVE),
        ({"decision": "demote", "reason": ""}, Status.DEMOTED),
        ({"decision": "demote", "reason": "trivial", "note": "So what?"}, Status.DEMOTED),
        ({"decision": "edit", "content": "Said\r\nbetter."}, Status.ACTIVE),
        ({"decision": "sensitive"}, Status.QUARANTINED),
        ({"decision": "cannot_tell"}, Status.ACTIVE),
    ],
)
def test_each_decision_goes_on_to_the_next_memory(item, bob: User, browse, form, status) -> None:
    response = send(browse(bob), item, **form)
    assert response.status_code == 303
    following = ReviewItem.objects.get(pk=response["Location"].rstrip("/").split("/")[-1])
    assert following.pk != item.pk
    assert following.claimed_by == bob
    memory = Memory.objects.get(pk=item.memory_id)
    assert memory.status == status
    if form["decision"] == "edit":
        assert memory.content == "Said\nbetter."


@pytest.mark.parametrize(("decision", "ask"), [("demote", "reason"), ("edit", "edit")])
def test_a_decision_that_needs_more_asks_in_a_second_step(item, bob: User, browse, decision, ask) -> None:
    client = browse(bob)
    response = send(client, item, decision)
    assert (response.status_code, response["Location"]) == (303, url("item", item) + f"?ask={ask}")
    assert not Verdict.objects.of(item.team).exists()
    page = client.get(response["Location"])
    assert f'name="decision" value="{decision}"' in page.content.decode()
    assert ("Wrong or outdated" in text(page)) == (ask == "reason")


def test_a_refused_edit_keeps_what_was_typed(item, bob: User, browse) -> None:
    response = send(browse(bob), item, "edit", content="  ")
    assert response.status_code == 422
    assert "must not be empty" in text(response)
    response = send(browse(bob), item, "edit", content="x" * 9000)
    assert response.status_code == 422
    assert "x" * 9000 in response.content.decode()
    assert state_of(item) == ItemState.PENDING


@pytest.mark.parametrize("form", [{"decision": "like"}, {"decision": ""}, {"decision": "demote", "reason": "ugly"}])
def test_nonsense_is_refused_and_explained(item, bob: User, browse, form) -> None:
    response = send(browse(bob), item, **form)
    assert response.status_code == 422
    assert "must be one of" in text(response)


def test_the_same_form_sent_twice_is_one_verdict(item, bob: User, browse) -> None:
    client = browse(bob)
    for _ in range(2):
        assert send(client, item, "approve", version=1).status_code == 303
    assert Verdict.objects.of(item.team).count() == 1


def test_the_second_reviewer_hears_who_was_first(item, alice: User, bob: User, browse) -> None:
    send(browse(bob), item, "approve")
    response = send(browse(alice), item, "demote", reason="wrong", version=1)
    assert response.status_code == 409
    assert "bob@acme.test decided this already: approved." in text(response)
    assert "Keep that and go on" in text(response)
    assert Memory.objects.get(pk=item.memory_id).status == Status.ACTIVE


@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 30])
def test_a_mangled_version_decides_nothing(item, bob: User, browse, version) -> None:
    response = send(browse(bob), item, "approve", version=version)
    assert response.status_code == 409
    assert "moved on while you looked" in text(response)


def test_a_closed_week_is_read_only(batch, item, bob: User, browse) -> None:
    ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=timezone.now())
    client = browse(bob)
    assert "is closed; its verdicts stand" in text(client.get(url("item", item)))
    response = send(client, item, "approve")
    assert response.status_code == 409
    assert state_of(item) == ItemState.PENDING


# --- Undo ------------------------------------------------------------------------------------------


def test_the_next_page_offers_to_take_the_last_decision_back(item, bob: User, browse) -> None:
    client = browse(bob)
    following = send(client, item, "demote", reason="wrong")["Location"]
    page = client.get(following)
    assert re.search(r"Demoted Memory 1 .* Undo", text(page))
    assert f'action="{url("undo", item)}"' in page.content.decode()
    response = client.post(url("undo", item))
    assert (response.status_code, response["Location"]) == (303, url("item", item))
    assert "Taken back" in text(client.get(response["Location"]))
    assert Memory.objects.get(pk=item.memory_id).status == Status.ACTIVE
    assert state_of(item) == ItemState.PENDING


def test_an_undo_that_is_not_theirs_says_so(item, alice: User, bob: User, browse) -> None:
    send(browse(bob), item, "approve")
    response = browse(alice).post(url("undo", item), follow=True)
    assert "You have not decided this one" in text(response)
    assert state_of(item) == ItemState.DECIDED


# --- Turns -----------------------------------------------------------------------------------------


def test_two_people_who_continue_get_different_memories(batch, alice: User, bob: User, browse) -> None:
    addresses = {browse(reviewer).post(reverse("review-next"))["Location"] for reviewer in (alice, bob)}
    assert len(addresses) == 2


def test_a_direct_link_claims_nothing_and_a_visit_renews(item, alice: User, bob: User, browse) -> None:
    browse(bob).get(url("item", item))
    assert ReviewItem.objects.get(pk=item.pk).claimed_by is None
    nearly_over = timezone.now() + timedelta(seconds=5)
    ReviewItem.objects.filter(pk=item.pk).update(claimed_by=bob, claimed_until=nearly_over)
    assert "bob@acme.test has this one open" in text(browse(alice).get(url("item", item)))
    browse(bob).get(url("item", item))
    assert ReviewItem.objects.get(pk=item.pk).claimed_until > nearly_over + timedelta(minutes=9)


# --- The batch as a table --------------------------------------------------------------------------


def test_the_table_filters_by_decision_kind_and_person(batch, alice: User, bob: User, browse) -> None:
    first, second, third = batch.items.all()
    send(browse(alice), first, "approve")
    send(browse(bob), second, "demote", reason="wrong")
    address = reverse("review-batch", args=[batch.week])

    def shown(query: str) -> set[uuid.UUID]:
        page = browse(bob).get(address + query).content.decode()
        return {item.pk for item in (first, second, third) if url("item", item) in page}

    assert shown("") == {first.pk, second.pk, third.pk}
    assert shown("?decision=demote") == {second.pk}
    assert shown("?decision=pending") == {third.pk}
    assert shown(f"?reviewer={alice.pk}") == {first.pk}
    assert shown("?kind=preference") == set()
    assert shown("?decision=nonsense&kind=fact") == set()


def test_the_table_keeps_why_an_open_one_was_drawn(told, bob: User, browse) -> None:
    address = reverse("review-batch", args=[told.batch.week])
    page = text(browse(bob).get(address))
    assert "Why a memory was drawn is shown once it is decided" in page
    before = page.count("Random sample")
    send(browse(bob), told, "approve")
    assert text(browse(bob).get(address)).count("Random sample") == before + 1


def test_the_table_keeps_what_a_colleague_could_not_tell(batch, item, alice, bob: User, browse) -> None:
    send(browse(alice), item, "cannot_tell")
    address = reverse("review-batch", args=[batch.week])
    assert "alice@acme.test" not in text(browse(bob).get(address)).split("Decided by")[1].split("When")[1]
    ReviewBatch.objects.filter(pk=batch.pk).update(status="closed")
    assert "alice@acme.test" in text(browse(bob).get(address)).split("Decided by")[1].split("When")[1]


# --- Queries ---------------------------------------------------------------------------------------


def test_the_number_of_queries_does_not_grow(team: Team, agent, alice: User, bob: User, browse) -> None:
    def fill(n: int) -> ReviewBatch:
        ReviewBatch.objects.of(team).delete()
        for _ in range(n):
            factories.memory(agent, f"Rule: {uuid.uuid4()}")
        batch = open_batch(team=team, by=SYSTEM)
        for item, reviewer in zip(batch.items.all()[: n // 2], [alice, bob] * n, strict=False):
            decide(team=team, by=person(reviewer), reviewer=reviewer, item=item, decision="approve", version=1)
        return batch

    def count(batch: ReviewBatch) -> list[int]:
        client = browse(bob)
        item = batch.items.filter(state=ItemState.PENDING).first()
        client.get(url("item", item))
        counts = []
        for address in (HOME, url("item", item), reverse("review-batch", args=[batch.week])):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert client.get(address).status_code == 200
            counts.append(len(queries))
        return counts

    small = count(fill(4))
    assert count(fill(26)) == small
    assert max(small) <= 25
