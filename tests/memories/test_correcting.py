"""Putting a memory right on its page: seen against its quotes, taken back with one click, and without a stale rest."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from memories.enums import Kind
from memories.models import Memory
from tests import factories

pytestmark = pytest.mark.django_db
SAID = "Refunds above 500.00 need a supervisor."
RIGHT = "Refunds above 750.00 need a supervisor."
PARTS = {"subject": "refunds", "predicate": "need a supervisor above"}
OLDER = "what stands beside it here is as it was before"


def edit(client, memory: Memory, content: str) -> str:
    """Save a text on the edit page; return the page that follows."""
    memory.refresh_from_db()
    form = {"content": content, "revision": memory.revision, "reason": ""}
    return client.post(reverse("memory_edit", args=[memory.pk]), form, follow=True).content.decode()


def test_a_correction_is_taken_back_with_one_click(browse, bob, agent) -> None:
    memory = factories.memory(agent, SAID)
    page = edit(browse(bob), memory, RIGHT)
    back = reverse("memory_rollback", args=[memory.pk, 1])
    assert re.search(rf'Saved: agents are told this.*?action="{back}".*?Undo', page, re.DOTALL)
    browse(bob).post(back)
    memory.refresh_from_db()
    assert (memory.content, memory.revision) == (SAID, 3)


def test_saving_the_same_words_says_that_nothing_was_changed(browse, bob, agent) -> None:
    memory = factories.memory(agent, SAID)
    page = edit(browse(bob), memory, f"  {SAID} ")
    assert "Nothing was changed" in page
    assert "Undo" not in page


def test_the_page_says_when_the_parts_are_older_than_the_text(browse, bob, agent) -> None:
    parts = {"lesson": SAID, "applies_when": "the amount is above 500.00"}
    memory = factories.memory(agent, SAID, kind=Kind.EXPERIENCE, structure=parts)
    client = browse(bob)
    assert OLDER not in client.get(reverse("memory", args=[memory.pk])).content.decode()
    assert OLDER in edit(client, memory, RIGHT)
    assert OLDER not in edit(client, memory, SAID), "text and parts agree again"


def test_parts_that_were_put_right_too_are_not_older(browse, bob, agent, team) -> None:
    memory = factories.memory(agent, SAID, kind=Kind.FACT, structure=PARTS | {"object": "500.00"})
    client = factories.api_client(team, agent)
    body = {"content": RIGHT, "structure": PARTS | {"object": "750.00"}}
    assert client.patch(f"/api/v1/memories/{memory.pk}", body).status_code == 200
    memory.refresh_from_db()
    assert memory.revision == 2
    assert OLDER not in browse(bob).get(reverse("memory", args=[memory.pk])).content.decode()


def test_a_memory_is_found_by_words_that_do_not_stand_together(browse, alice, agent) -> None:
    memory = factories.memory(agent, SAID)
    rows = browse(alice).get(reverse("memories"), {"q": "supervisor refunds"}).context["page"].rows
    assert [row.pk for row in rows] == [memory.pk]
    assert not browse(alice).get(reverse("memories"), {"q": "supervisor harbour"}).context["page"].rows


def test_who_may_not_edit_is_not_offered_it(browse, bob, carol, agent) -> None:
    memory = factories.memory(agent, SAID)
    link = f'href="{reverse("memory_edit", args=[memory.pk])}"'
    page = reverse("memory", args=[memory.pk])
    assert link in browse(bob).get(page).content.decode()
    assert link not in browse(carol).get(page).content.decode()
