"""The pages of conflicts, quarantine and one memory: few queries however much there is, and what they say."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.actions import Draft
from memories.differences import Change, changes
from memories.enums import Kind
from memories.models import Memory
from tests import factories
from tests.memories.judging import fresh, say

pytestmark = pytest.mark.django_db
CITIES = ("Berlin", "Lisbon", "Porto", "Vienna", "Zurich", "Oslo", "Turin", "Ghent")


def contradictions(agent, cities) -> None:
    for place, city in enumerate(cities):
        say(agent, f"The default region of the {city} office is region-{place}-a.", by_trace=True)
        say(agent, f"The default region of the {city} office is region-{place}-b.", by_trace=True)


def queries_of(client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return len(seen)


def test_conflicts_take_few_queries_however_many(browse, bob, agent) -> None:
    contradictions(agent, CITIES[:1])
    client = browse(bob)
    few = queries_of(client, "/conflicts/")
    contradictions(agent, CITIES[1:])
    assert len(client.get("/conflicts/").context["conflicts"]) >= 8
    assert queries_of(client, "/conflicts/") == few <= 15


def test_quarantine_takes_few_queries_however_many(browse, bob, agent, team) -> None:
    def hold(number: int) -> None:
        memory = factories.memory(agent, f"Locker {number} holds the parcel of customer {number * 7}.")
        with team_transaction(team):
            actions.quarantine(team=team, by=SYSTEM, memory=memory, reason="looks odd")

    hold(1)
    client = browse(bob)
    few = queries_of(client, "/quarantine/")
    for number in range(2, 12):
        hold(number)
    assert queries_of(client, "/quarantine/") == few <= 15


def test_pages_of_conflicts_meet(browse, bob, agent) -> None:
    contradictions(agent, [f"{city} {side}" for city in CITIES for side in ("north", "south")])
    client, seen, query = browse(bob), [], "/conflicts/"
    while query:
        page = client.get(query).context["page"]
        seen += [row.pk for row in page.rows]
        query = f"/conflicts/{page.older}" if page.older else ""
    assert len(seen) == len(set(seen)) >= 16


def test_another_teams_conflicts_are_not_there(browse, mallory, agent) -> None:
    contradictions(agent, CITIES[:1])
    page = browse(mallory).get("/conflicts/").content.decode()
    assert "Nothing is contested" in page
    assert "region-0" not in page


def test_a_forged_decision_is_refused_in_words(browse, bob, agent) -> None:
    contradictions(agent, CITIES[:1])
    client = browse(bob)
    edge = client.get("/conflicts/").context["conflicts"][0]["edge"]
    for form in ({"decision": "burn"}, {}, {"decision": "both", "condition": " "}):
        answer = client.post(f"/conflicts/{edge.pk}/resolve/", form, follow=True)
        assert answer.status_code == 200
        assert "must" in answer.content.decode()
    assert len(client.get("/conflicts/").context["conflicts"]) == 1
    again = client.post(f"/conflicts/{edge.pk}/undo/", follow=True).content.decode()
    assert "there is nothing to undo" in again


def test_the_page_of_a_memory_shows_what_changed_beside_the_text(browse, bob, agent, team, alice) -> None:
    structure = {"subject": "Ada", "predicate": "works in", "object": "Berlin"}
    memory = say(agent, "Ada works in Berlin.", structure=structure, tags=("people",))
    with team_transaction(team):
        actions.revise(
            team=team,
            by=person(alice),
            memory=fresh(memory),
            content="Ada works in Porto.",
            structure={**structure, "object": "Porto"},
            tags=["people", "moved"],
        )
    page = browse(bob).get(f"/memories/{memory.pk}/").content.decode()
    assert "<del>Berlin</del><ins>Porto</ins>" in page
    assert "<dt>Object</dt>" in page
    assert "<dt>Tags</dt>" in page


def test_changes_name_nested_fields() -> None:
    before = {"situation": {"task_type": "refund"}, "lesson": "a", "gone": 1}
    after = {"situation": {"task_type": "search"}, "lesson": "a", "new": [1]}
    assert changes(before, after, ["x"], ["x"]) == [
        Change("gone", "1", ""),
        Change("new", "", "[1]"),
        Change("situation, task type", "refund", "search"),
    ]


def test_a_lesson_that_failed_first_and_worked_in_the_end_puzzles_nobody(browse, bob, agent, team) -> None:
    lesson = {"lesson": "Give the month as 2026-03.", "outcome": {"success": True}, "failure_class": "permanent"}
    draft = Draft(kind=Kind.EXPERIENCE, content="Give the month as 2026-03.", structure=lesson)
    with team_transaction(team):
        scope = Memory.objects.of(team).get(pk=factories.memory(agent).pk).scope
        memory = actions.remember(team=team, by=SYSTEM, scope=scope, draft=draft, agent=agent).memory
    page = browse(bob).get(f"/memories/{memory.pk}/").content.decode()
    assert "permanent failure" not in page
    assert "in the end, with this decision; before it, it failed in a way that trying again does not cure" in page
