"""`manage.py demo`: every page that its guide names has something true to show, however often it runs."""

from __future__ import annotations

import re
import time
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from hindsight_site.accounts.models import AuditEvent, Membership, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.demo.asking import TASKS
from hindsight_site.demo.judging import COLLEAGUES
from hindsight_site.demo.knowing import STALE
from hindsight_site.demo_team import EMAIL
from memories.actions.settling import open_edges
from memories.enums import RecallStatus, ScopeKind, Status
from memories.lift import lifts
from memories.models import Feedback, Memory, QuarantineCase, Recall, Relation, Scope
from reflection.enums import ItemState
from reflection.models import ReviewBatch, ReviewItem, Trace, Verdict

pytestmark = pytest.mark.django_db
ROWS = (Scope, Memory, Relation, QuarantineCase, Trace, Recall, Feedback, ReviewBatch, Verdict, Membership, AuditEvent)


@pytest.fixture(autouse=True)
def data_dir(settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def run(*options: str) -> str:
    out = StringIO()
    call_command("demo", *options, stdout=out)
    return out.getvalue()


def rows(team: Team, *models) -> dict[str, int]:
    with team_transaction(team):
        return {model.__name__: model.objects.of(team).count() for model in models}


@pytest.fixture
def told() -> str:
    return run()


@pytest.fixture
def demo_team(told: str) -> Team:
    return Team.objects.get(name="Demo")


def test_two_colleagues_are_there_whom_nobody_can_be(demo_team) -> None:
    for email, name in COLLEAGUES:
        person = User.objects.get(email=email)
        assert (str(person), person.has_usable_password()) == (name, False)
        with team_transaction(demo_team):
            assert Membership.objects.of(demo_team).get(user=person).role == "reviewer"
            assert AuditEvent.objects.of(demo_team).filter(verb="member.added", detail__user=person.pk).count() == 1


def test_facts_that_cannot_both_hold_stand_in_a_shared_scope(demo_team) -> None:
    with team_transaction(demo_team):
        assert set(Scope.objects.of(demo_team).values_list("slug", "kind")) == {
            ("private-demo-agent", ScopeKind.PRIVATE), ("team", ScopeKind.SHARED), ("playbook", ScopeKind.SHARED),
        }  # fmt: skip
        edge = open_edges(demo_team).get()
        assert {edge.source.scope.slug, edge.target.scope.slug} == {"playbook"}
        assert {edge.source.structure["object"], edge.target.structure["object"]} == {"5432", "5433"}


def test_what_a_tool_planted_is_held_back(demo_team) -> None:
    with team_transaction(demo_team):
        held = Memory.objects.of(demo_team).filter(status=Status.QUARANTINED)
        assert any("ignore all previous instructions" in memory.content for memory in held)
        assert QuarantineCase.objects.of(demo_team).count() == held.count() == 2


def test_recalls_have_an_end_and_lessons_a_lift(demo_team) -> None:
    with team_transaction(demo_team):
        recalls = Recall.objects.of(demo_team)
        assert recalls.count() == len(TASKS)
        assert recalls.filter(status=RecallStatus.NO_MATCH).count() == 2
        exporting = Memory.objects.of(demo_team).get(content__startswith="export_invoices takes month")
        lift = lifts(demo_team, [exporting.pk])[exporting.pk]
        assert lift.value == 1.0
        assert exporting.reuse_success_count == 1


def test_part_of_the_sample_is_judged_and_part_is_left(demo_team) -> None:
    with team_transaction(demo_team):
        assert Memory.objects.of(demo_team).get(content=STALE).status == Status.DEMOTED
        items = ReviewItem.objects.of(demo_team)
        states = list(items.values_list("state", flat=True))
        assert states.count(ItemState.DECIDED) == 5
        assert states.count(ItemState.CONFLICTED) == 1
        assert states.count(ItemState.PENDING) >= 5
        assert items.filter(state=ItemState.PENDING, verdicts__undone_at=None, verdicts__isnull=False).count() == 1
        by = set(Verdict.objects.of(demo_team).values_list("reviewer__email", flat=True))
        assert by == {email for email, _ in COLLEAGUES}, "no word is put into the mouth of whoever signs in"


def test_each_page_of_the_guide_is_there_and_has_something(told, demo_team) -> None:
    client = Client()
    client.force_login(User.objects.get(email=EMAIL))
    guide = re.findall(r"^  https?://[^/]+(/\S*)  +\S", told, re.M)
    assert {"/", "/review/", "/review/conflicts/", "/conflicts/", "/quarantine/", "/recalls/"} <= set(guide)
    pages = {path: client.get(path) for path in guide}
    assert {path: page.status_code for path, page in pages.items()} == dict.fromkeys(guide, 200)
    seen = {path: page.content.decode() for path, page in pages.items()}
    assert "Kim (demo)" in seen["/review/conflicts/"]
    assert "listens on port" in seen["/conflicts/"]
    assert "ignore all previous instructions" in seen["/quarantine/"]
    assert "capital of Australia" in seen["/recalls/"]
    assert "反馈" in seen["/traces/"]


def test_a_second_run_changes_nothing(told, demo_team) -> None:
    before = rows(demo_team, *ROWS)
    again = run()
    assert "loaded already" in again
    assert rows(demo_team, *ROWS) == before


def test_once_more_adds_traces_and_recalls_and_no_second_of_anything_else(demo_team) -> None:
    once = (Scope, Memory, Relation, QuarantineCase, ReviewBatch, Verdict, Membership)
    before, seen = rows(demo_team, *once), rows(demo_team, Trace, Recall)
    run("--again")
    assert rows(demo_team, *once) == before
    assert rows(demo_team, Trace, Recall) == {name: 2 * count for name, count in seen.items()}


def test_it_takes_seconds() -> None:
    started = time.process_time()
    run()
    assert time.process_time() - started < 20
