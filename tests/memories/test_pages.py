"""The pages of memories: what they show, what they change, and what they keep from other teams."""

from __future__ import annotations

import uuid

import pytest
from django.urls import reverse

from hindsight_site.accounts.audit import SYSTEM
from memories import actions
from memories.actions import EvidenceDraft
from memories.enums import Kind, Status, Tier
from memories.models import Memory, Recall, RecallHit
from tests import factories

FACT = "The invoices of March are exported with the month as 2026-03."


@pytest.fixture
def memory(agent) -> Memory:
    return factories.memory(agent, FACT)


def page_of(memory: Memory, name: str = "memory", *more: str) -> str:
    return reverse(name, args=[memory.pk, *more])


def test_the_list_shows_live_memories_and_finds_words(browse, alice, agent, memory):
    factories.memory(agent, "An old habit that was given up.", status=Status.ARCHIVED)
    page = browse(alice).get(reverse("memories")).content.decode()
    assert FACT in page
    assert "given up" not in page
    found = browse(alice).get(reverse("memories"), {"q": "INVOICES"}).content.decode()
    assert "<mark>invoices</mark>" in found
    assert "Nothing matches" in browse(alice).get(reverse("memories"), {"q": "harbour"}).content.decode()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"status": "archived"}, {"archived"}),
        ({"status": "any"}, {"plain", "archived", "lesson"}),
        ({"kind": "experience"}, {"lesson"}),
        ({"tier": "semantic"}, {"lesson"}),
        ({"needs_review": "1"}, {"plain"}),
        ({"agent": "coder"}, {"plain", "lesson"}),
        ({"agent": "nobody"}, set()),
        ({"scope": "private-coder"}, {"plain", "lesson"}),
    ],
)
def test_each_filter_narrows_the_list(browse, alice, agent, query, shown):
    plain = factories.memory(agent, "word plain here")
    Memory.objects.filter(pk=plain.pk).update(needs_review=True)
    factories.memory(agent, "word archived here", status=Status.ARCHIVED)
    factories.memory(agent, "word lesson here", kind=Kind.EXPERIENCE, tier=Tier.SEMANTIC)
    rows = browse(alice).get(reverse("memories"), query).context["page"].rows
    assert {row.content.split()[1] for row in rows} == shown


def test_pages_of_the_list_meet_without_gap_or_double(browse, alice, agent):
    for number in range(95):
        factories.memory(agent, f"Locker {number} holds the parcel of customer number {number * 7}.")
    client, url, seen = browse(alice), reverse("memories"), []
    pages = []
    while url:
        page = client.get(url).context["page"]
        pages.append([row.pk for row in page.rows])
        seen += pages[-1]
        older, url = page, reverse("memories") + page.older if page.older else ""
    assert len(seen) == len(set(seen)) == 95
    back = client.get(reverse("memories") + older.newer).context["page"]
    assert [row.pk for row in back.rows] == pages[-2]


def test_a_forged_cursor_is_the_first_page(browse, alice, memory):
    for cursor in ("x", "2026-01-01_zz", "2026-01-01T00:00:00_" + uuid.uuid4().hex):
        assert FACT in browse(alice).get(reverse("memories"), {"before": cursor}).content.decode()


def test_the_page_of_a_memory_shows_quotes_with_the_way_to_their_step(browse, alice, agent):
    trace, _ = factories.trace(agent)
    step = trace.steps.get(sequence=2)
    quote = EvidenceDraft(
        trace_id=trace.pk,
        step_id=step.pk,
        step_sequence=2,
        role=step.role,
        start=0,
        end=20,
        quote=step.text[:20],
    )
    memory = factories.memory(agent, FACT, evidence=(quote,))
    page = browse(alice).get(page_of(memory)).content.decode()
    assert f"<mark>{step.text[:20]}</mark>" in page
    assert f"{reverse('trace', args=[trace.pk])}?step=2#step-2" in page
    actions.clear_evidence_of_trace(team=agent.team, trace_id=trace.pk)
    assert "was deleted" in browse(alice).get(page_of(memory)).content.decode()


STRUCTURES = [
    (Kind.FACT, {"subject": "month", "predicate": "is written as", "object": "YYYY-MM"}, "is written as"),
    (Kind.PREFERENCE, {"holder": "Mia", "preference": "aisle seats", "strength": 0.8}, "aisle seats"),
    (Kind.RELATION, {"subject": "cancel", "relation": "needs", "object": "details"}, "needs"),
    (
        Kind.EXPERIENCE,
        {"situation": {"text": "exporting"}, "lesson": "Write the month as a number.", "not_when": "weekly"},
        "Not when weekly",
    ),
    (
        Kind.TASK,
        {"task_goal": "Export", "failure_steps": [{"step": "First try", "reason": "bad month"}]},
        "bad month",
    ),
]


@pytest.mark.parametrize(("kind", "structure", "shown"), STRUCTURES)
def test_each_kind_shows_its_structure_readably(browse, alice, agent, kind, structure, shown):
    memory = factories.memory(agent, FACT, kind=kind, structure=structure)
    page = browse(alice).get(page_of(memory)).content.decode()
    assert shown in page
    assert "{&#x27;" not in page


def test_demoting_gives_a_reason_and_can_be_undone(browse, bob, memory):
    client = browse(bob)
    answer = client.post(page_of(memory, "memory_act", "demote"), {"reason": "wrong"})
    assert (answer.status_code, answer.url) == (302, page_of(memory))
    page = client.get(page_of(memory)).content.decode()
    memory.refresh_from_db()
    assert memory.status == Status.DEMOTED
    assert page_of(memory, "memory_undo") in page
    client.post(page_of(memory, "memory_undo"))
    memory.refresh_from_db()
    assert memory.status == Status.ACTIVE
    assert memory.confidence == pytest.approx(0.5)


def test_an_undo_after_somebody_elses_change_changes_nothing(browse, bob, alice, memory):
    client = browse(bob)
    client.post(page_of(memory, "memory_act", "archive"))
    browse(alice).post(page_of(memory, "memory_act", "restore"))
    client.post(page_of(memory, "memory_undo"))
    memory.refresh_from_db()
    assert memory.status == Status.ACTIVE
    assert "has changed since" in client.get(page_of(memory)).content.decode()


def test_an_undo_twice_is_refused_kindly(browse, bob, memory):
    client = browse(bob)
    client.post(page_of(memory, "memory_act", "pin"))
    client.post(page_of(memory, "memory_undo"))
    client.post(page_of(memory, "memory_undo"))
    memory.refresh_from_db()
    assert not memory.pinned


@pytest.mark.parametrize(
    ("verb", "start", "end"),
    [
        ("approve", Status.CANDIDATE, Status.ACTIVE),
        ("archive", Status.ACTIVE, Status.ARCHIVED),
        ("restore", Status.ARCHIVED, Status.ACTIVE),
        ("release", Status.QUARANTINED, Status.CANDIDATE),
        ("reject", Status.QUARANTINED, Status.REJECTED),
    ],
)
def test_each_verb_moves_the_memory_and_is_offered(browse, bob, agent, verb, start, end):
    memory = factories.memory(agent, FACT, status=start)
    client = browse(bob)
    assert page_of(memory, "memory_act", verb) in client.get(page_of(memory)).content.decode()
    client.post(page_of(memory, "memory_act", verb))
    memory.refresh_from_db()
    assert memory.status == end


def test_what_the_state_does_not_allow_is_said_and_not_done(browse, bob, agent):
    memory = factories.memory(agent, FACT, status=Status.REJECTED)
    client = browse(bob)
    client.post(page_of(memory, "memory_act", "approve"))
    memory.refresh_from_db()
    assert memory.status == Status.REJECTED
    assert "cannot become active" in client.get(page_of(memory)).content.decode()


def test_editing_keeps_the_earlier_words(browse, bob, memory):
    client = browse(bob)
    changed = FACT.replace("March", "April")
    client.post(page_of(memory, "memory_edit"), {"content": changed, "revision": "1", "reason": "new month"})
    page = client.get(page_of(memory)).content.decode()
    assert "<del>March</del><ins>April</ins>" in page
    assert "new month" in page
    stale = client.post(page_of(memory, "memory_edit"), {"content": "mine", "revision": "1"})
    assert stale.status_code == 412
    assert "mine" in stale.content.decode()


def test_forgetting_wants_the_word_and_leaves_a_tombstone(browse, alice, memory):
    client = browse(alice)
    assert client.post(page_of(memory, "memory_forget"), {"confirm": "yes"}).status_code == 422
    memory.refresh_from_db()
    assert memory.content == FACT
    client.post(page_of(memory, "memory_forget"), {"confirm": " Forget "})
    page = client.get(page_of(memory)).content.decode()
    assert "tombstone" in page
    assert FACT not in page
    assert 'id="decide"' not in page


@pytest.mark.parametrize("name", ["memory_act", "memory_undo", "memory_edit", "memory_forget"])
def test_a_viewer_changes_nothing(browse, carol, memory, name):
    url = page_of(memory, name, "demote") if name == "memory_act" else page_of(memory, name)
    answer = browse(carol).post(url, {"content": "x", "confirm": "forget"})
    assert answer.status_code == 403
    memory.refresh_from_db()
    assert (memory.status, memory.content) == (Status.ACTIVE, FACT)
    assert 'id="decide"' not in browse(carol).get(page_of(memory)).content.decode()


@pytest.mark.parametrize("name", ["memory", "memory_edit", "memory_forget"])
def test_another_team_finds_nothing(browse, mallory, memory, name):
    assert browse(mallory).get(page_of(memory, name)).status_code == 404
    assert FACT not in browse(mallory).get(reverse("memories")).content.decode()


def test_another_team_changes_nothing(browse, mallory, memory):
    assert browse(mallory).post(page_of(memory, "memory_act", "demote")).status_code == 404
    memory.refresh_from_db()
    assert memory.status == Status.ACTIVE


def test_content_is_shown_as_text_never_as_markup(browse, alice, agent):
    memory = factories.memory(agent, "Say <script>alert(1)</script> & <b>bold</b> to scripts.")
    for url in (page_of(memory), reverse("memories"), reverse("memories") + "?q=script"):
        page = browse(alice).get(url).content.decode()
        assert "<script>alert" not in page
        assert "<b>" not in page


def test_the_pages_take_a_constant_number_of_queries(browse, alice, agent, django_assert_max_num_queries):
    memory = factories.memory(agent, FACT)
    for number in range(30):
        other = factories.memory(agent, f"Locker {number} belongs to customer {number * 3}.")
        actions.relate(team=agent.team, by=SYSTEM, source=memory, target=other, kind="supports")
        recall = Recall.objects.create(team=agent.team, agent=agent, query="lockers", status="matched")
        RecallHit.objects.create(
            team=agent.team, recall=recall, memory=memory, revision=1, rank=1, score=0.5, relevance=0.5
        )
    client = browse(alice)
    with django_assert_max_num_queries(19):  # 18 and the savepoint of the test itself
        client.get(page_of(memory))
    with django_assert_max_num_queries(11):
        client.get(reverse("memories"))


def test_an_earlier_revision_can_be_said_again(browse, bob, carol, agent) -> None:
    memory = factories.memory(
        agent, "Use the blue queue.", kind="experience", structure={"lesson": "Use the blue queue."}
    )
    client = browse(bob)
    client.post(reverse("memory_edit", args=[memory.pk]), {"content": "Use the red queue.", "revision": 1})
    memory.refresh_from_db()
    assert memory.structure["lesson"] == "Use the red queue.", "the lesson is not left behind"
    back = reverse("memory_rollback", args=[memory.pk, 1])
    assert back in client.get(reverse("memory", args=[memory.pk])).content.decode()
    assert browse(carol).post(back).status_code == 403
    assert client.post(back).status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.revision) == ("Use the blue queue.", 3)
    assert client.post(reverse("memory_rollback", args=[memory.pk, 99])).status_code == 404
