"""From a question to its answer's origin: finding a receipt by its words, and what it leads to."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import reverse

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.actions import EvidenceDraft
from memories.models import Memory, RecallHit
from tests import factories
from tests.factories import ApiClient

pytestmark = pytest.mark.django_db
SAID = "Never refund more than 500.00 without a supervisor."
SAYS_NOW = "Never refund more than 750.00 without a manager."
ASKED = "may a damaged parcel be paid back?"


def ask(client: ApiClient, query: str = ASKED) -> str:
    answer = client.post("/api/v1/recall", {"query": query, "min_relevance": 0})
    assert answer.json()["hits"], answer.content
    return answer.json()["recall_id"]


def correct(memory: Memory) -> None:
    with team_transaction(memory.team):
        memory.refresh_from_db()
        actions.revise(team=memory.team, by=SYSTEM, memory=memory, content=SAYS_NOW)


def listed(client: Client, **query: str) -> list[str]:
    return [str(row.pk) for row in client.get(reverse("recalls"), query).context["page"].rows]


@pytest.fixture
def memory(agent) -> Memory:
    return factories.memory(agent, SAID)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("parcel", True),
        ("PARCEL damaged", True),  # whatever the order and the case
        ("supervisor refund", True),
        ("supervisor parcel", False),  # one of the question, one of the answer: neither has both
        ("harbour", False),
    ],
)
def test_a_recall_is_found_by_what_was_asked_or_told(api, alice, browse, memory, words, found) -> None:
    recall_id = ask(api)
    assert listed(browse(alice), q=words) == ([recall_id] if found else [])


def test_it_is_found_by_what_was_told_then_and_shows_it(api, alice, browse, memory) -> None:
    recall_id = ask(api)
    correct(memory)
    assert listed(browse(alice), q="supervisor") == [recall_id]
    page = browse(alice).get(reverse("recalls"), {"q": "supervisor"}).content.decode()
    assert "more than 500.00 without a <mark>supervisor</mark>" in page
    assert "750.00" not in page


def test_another_teams_words_find_nothing(api, mallory, browse, memory) -> None:
    ask(api)
    assert listed(browse(mallory), q="supervisor") == []


def test_a_warning_comes_back_to_the_letter(api, memory) -> None:
    answer = api.post("/api/v1/recall", {"query": ASKED, "min_relevance": 0}).json()
    assert "[warning, private-coder]" in answer["context"]
    told = api.get(f"/api/v1/recalls/{answer['recall_id']}").json()
    assert (told["context"], told["context_exact"]) == (answer["context"], True)


def test_a_receipt_leads_to_the_step_it_was_learnt_from(api, alice, bob, carol, agent, browse) -> None:
    trace, _ = factories.trace(agent)
    step = trace.steps.get(sequence=2)
    words = step.text[:20]
    quote = EvidenceDraft(
        trace_id=trace.pk, step_id=step.pk, step_sequence=2, role=step.role, start=0, end=20, quote=words
    )
    memory = factories.memory(agent, SAID, evidence=(quote,))
    address = reverse("recall", args=[ask(api)])
    page = browse(alice).get(address).content.decode()
    assert "Where it came from (1 quote)" in page
    assert f"{reverse('trace', args=[trace.pk])}?step=2#step-2" in page
    correction = reverse("memory_edit", args=[memory.pk])
    assert correction in browse(bob).get(address).content.decode()
    assert correction not in browse(carol).get(address).content.decode(), "a viewer corrects nothing"
    correct(memory)
    assert correction not in browse(bob).get(address).content.decode(), "it does not say that any more"


def test_a_receipt_says_in_words_why_a_memory_was_chosen(api, alice, browse, memory) -> None:
    recall_id = ask(api, "without a supervisor, how much may be refunded?")
    page = browse(alice).get(reverse("recall", args=[recall_id])).content.decode()
    assert "of the question, rare words counting more" in page
    assert "<dt>Confidence</dt>" in page
    assert "<dt>Keyword</dt>" not in page, "that is told in words"
    with team_transaction(memory.team):
        RecallHit.objects.of(memory.team).update(parts={"keyword": 0.4})
    page = browse(alice).get(reverse("recall", args=[recall_id])).content.decode()
    assert "<dt>Keyword</dt>" in page, "an older receipt shows what it holds"


def test_a_memory_without_a_trace_says_so(api, alice, browse, memory) -> None:
    page = browse(alice).get(reverse("recall", args=[ask(api)])).content.decode()
    assert "it was written directly" in page
    assert str(uuid.UUID(int=0)) not in page
