"""What must always hold: each check finds its breach and nothing else; repairs leave nothing to find."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hindsight_site import schedules
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import JobKind, JobStatus
from hindsight_site.accounts.jobs import running
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.enums import RelationKind, Status
from memories.models import Evidence, Memory, MemoryTerms, MemoryVector, Relation
from reflection.invariants.checks import CHECKS
from reflection.invariants.running import KEPT, check_team, look, request_all
from reflection.models import Trace
from reflection.tasks import HANDLERS
from tests import factories
from tests.reflection.test_erasing import resting_on

pytestmark = pytest.mark.django_db


@pytest.fixture
def lived(team, agent, api) -> dict[str, Any]:
    """A team in order: a trace, a memory that rests on it, one recalled and used, one forgotten."""
    trace, _ = factories.trace(agent)
    rests = resting_on(agent, "The invoice export wants the month as YYYY-MM.", trace)
    other = factories.memory(agent, "Invoices go out on Mondays.")
    gone = factories.memory(agent, "Gone for good.")
    found = api.post("/api/v1/recall", {"query": "which month does the export want?", "min_relevance": 0}).json()
    api.post("/api/v1/feedback", {"recall_id": found["recall_id"], "success": True})
    items = [{"memory": found["hits"][0]["memory"], "adopted": True, "success": True}]
    api.post("/api/v1/feedback", {"recall_id": found["recall_id"], "items": items})
    with team_transaction(team):
        actions.relate(team=team, by=SYSTEM, source=rests, target=other, kind=RelationKind.SUPPORTS)
        actions.forget(team=team, by=SYSTEM, memory=gone)
    return {"trace": trace, "rests": rests, "other": other, "gone": gone}


def rows(memory: Memory) -> Any:
    return Memory.objects.filter(pk=memory.pk)


def drop_search_rows(memory: Memory) -> None:
    MemoryVector.objects.filter(memory_id=memory.pk).delete()


def evidence_of_nothing(things: dict[str, Any]) -> None:
    Evidence.objects.filter(memory=things["rests"]).update(step_id=None)


BEFORE_YEAR_1 = datetime(1, 1, 1, tzinfo=timezone.get_fixed_timezone(14 * 60))
AFTER_YEAR_9999 = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.get_fixed_timezone(-14 * 60))
BREAKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "evidence_without_step": evidence_of_nothing,
    "quotes_of_removed_evidence": lambda t: Evidence.objects.update(removed_at=timezone.now(), step_id=uuid4()),
    "memories_without_search_rows": lambda t: drop_search_rows(t["other"]),
    "search_rows_of_gone_memories": lambda t: rows(t["other"]).update(status=Status.REJECTED),
    "search_rows_that_differ": lambda t: rows(t["other"]).update(status=Status.DEMOTED),
    "forgotten_with_remains": lambda t: rows(t["gone"]).update(actor="somebody"),
    "live_against_the_rules": lambda t: rows(t["other"]).update(tier="semantic", failure_class="transient"),
    "uncounted_recalls": lambda t: Memory.objects.filter(access_count__gt=0).update(access_count=0),
    "miscounted_feedback": lambda t: rows(t["other"]).update(reuse_count=7),
    "oversupported": lambda t: rows(t["rests"]).update(support_count=9),
    "confidence_off": lambda t: rows(t["other"]).update(confidence=0.123),
    "memories_with_unreadable_times": lambda t: rows(t["other"]).update(created_at=BEFORE_YEAR_1),
    "traces_with_unreadable_times": lambda t: Trace.objects.update(created_at=AFTER_YEAR_9999),
    "miscounted_steps": lambda t: Trace.objects.update(step_count=1),
}
# The database itself refuses these; the checks are there for a database that was restored by hand.
BY_CONSTRAINT = {"relations_across_teams", "search_rows_without_memory", "items_without_memory"}


def broken(team: Team) -> dict[str, int]:
    with team_transaction(team):
        return {check.name: count for check in CHECKS if (count := look(team, check).count)}


def test_every_check_is_tried() -> None:
    assert {check.name for check in CHECKS} == set(BREAKS) | BY_CONSTRAINT


def test_a_team_in_order_has_no_finding(team, lived) -> None:
    assert broken(team) == {}


@pytest.mark.parametrize("name", BREAKS)
def test_a_breach_is_found_and_mended(team, lived, name) -> None:
    with team_transaction(team):
        BREAKS[name](lived)
    assert name in broken(team)
    check = next(check for check in CHECKS if check.name == name)
    found = {finding.check.name: finding for finding in check_team(team, mend=True)}
    assert found[name].repaired == (found[name].count if check.is_repaired else 0)
    assert (name in broken(team)) is not check.is_repaired
    assert broken(team).keys() <= {name}, "mending one thing must not break another"


def test_without_mending_nothing_changes(team, lived) -> None:
    with team_transaction(team):
        drop_search_rows(lived["other"])
    list(check_team(team))
    assert broken(team) == {"memories_without_search_rows": 1}


def test_relations_are_kept_inside_the_team_by_the_database(team, lived, other_agent) -> None:
    from django.db import IntegrityError, transaction

    foreign = factories.memory(other_agent, "Rivals pay late.")
    with team_transaction(team):
        Relation.objects.filter(source=lived["rests"]).update(target_id=foreign.pk)
        assert "relations_across_teams" in {c.name for c in CHECKS if look(team, c).count}
        with pytest.raises(IntegrityError):
            connection.check_constraints()
        transaction.set_rollback(True)


def test_the_number_of_queries_does_not_grow(team, agent, lived) -> None:
    with team_transaction(team), CaptureQueriesContext(connection) as few:
        [look(team, check) for check in CHECKS]
    for number in range(30):
        factories.memory(agent, f"Invoice {number} goes out on a Monday.")
    with team_transaction(team), CaptureQueriesContext(connection) as more:
        [look(team, check) for check in CHECKS]
    assert len(few) == len(more) == len(CHECKS)


def test_another_teams_rows_are_neither_found_nor_mended(team, other_team, lived) -> None:
    with team_transaction(team):
        drop_search_rows(lived["other"])
    assert broken(other_team) == {}
    list(check_team(other_team, mend=True))
    assert broken(team) == {"memories_without_search_rows": 1}


# --- By command and by night ------------------------------------------------------------------------


def test_the_command(team, lived) -> None:
    out = StringIO()
    call_command("check_invariants", team=team.slug, stdout=out)
    assert out.getvalue() == f"1 teams, {len(CHECKS)} checks: 0 findings, 0 mended.\n"
    with team_transaction(team):
        drop_search_rows(lived["other"])
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_invariants", stdout=out)
    assert f"acme: 1 memories that can be recalled but not found ({lived['other'].pk})" in out.getvalue()
    call_command("check_invariants", "--repair", stdout=StringIO())
    with team_transaction(team):
        assert MemoryTerms.objects.filter(memory_id=lived["other"].pk).exists()


def test_nightly_for_every_team_and_told_on_the_overview(team, other_team, lived, alice, browse) -> None:
    assert any(getattr(s, "task", "") == "reflection.tasks.check_invariants" for s in schedules.SCHEDULES)
    with team_transaction(team):
        old = Job.objects.create(team=team, kind=JobKind.INVARIANTS, status=JobStatus.DONE)
        Job.objects.filter(pk=old.pk).update(created_at=timezone.now() - KEPT * 2)
        drop_search_rows(lived["other"])
    assert request_all() == 2
    assert request_all() == 0, "one at a time"
    with team_transaction(team):
        job = Job.objects.get()
    assert "Integrity" not in browse(alice).get("/").content.decode()
    assert running.run(team, job.pk, HANDLERS) == JobStatus.DONE
    with team_transaction(team):
        told = Job.objects.get().result
    assert told == {"checked": len(CHECKS), "findings": 1, "found": {"memories_without_search_rows": 1}}
    page = browse(alice).get("/").content.decode()
    assert "Integrity checked" in page
    assert "1 finding" in page
    assert f"/jobs/{job.pk}/" in page
