"""The sweep: what it writes, in which bounds, interrupted and run again, twice at once, and only in its team."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import AuditEvent
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, tasks, team_policy
from memories.enums import FailureClass, Kind, Rule, Status, Tier
from memories.lifecycle import sweep as lifecycle
from memories.lifecycle.preview import preview
from memories.models import Evidence, Memory, Revision, SweepRun
from tests import factories
from tests.memories.lives import at, lives, search_statuses, state

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def ago(days: float) -> datetime:
    return NOW - days * DAY


@pytest.fixture
def mixed(agent) -> list[Memory]:
    """One memory for each rule, and some that stay."""
    return lives(agent, [
        at(ago(1)), at(ago(31)), at(ago(61)), at(ago(61), pinned=True),
        at(ago(1), confidence=0.1), at(ago(2), failure_class=FailureClass.TRANSIENT),
        at(ago(2), kind=Kind.EXPERIENCE, unused_streak=5),
        at(ago(2), kind=Kind.EXPERIENCE, reuse_count=6, reuse_success_count=1),
        at(ago(2), expires_at=ago(1)), at(ago(1), tier=Tier.WORKING, expires_at=ago(0.5)),
        at(ago(900), tier=Tier.SEMANTIC, kind=Kind.FACT),
        at(ago(400), status=Status.ARCHIVED, archived_at=ago(190), archived_by=Rule.EPISODE_IDLE),
        at(ago(400), status=Status.ARCHIVED, archived_at=ago(190)),
    ])  # fmt: skip


EXPECTED = {
    "idle": 1, "episode_idle": 1, "low_confidence": 1, "transient": 1, "unused": 1, "failing": 1, "expired": 1,
    "working_over": 1, "long_archived": 1,
}  # fmt: skip


def test_every_rule_is_carried_out_and_told(agent, mixed) -> None:
    run = lifecycle.sweep(team=agent.team, now=NOW)
    assert run.changed == EXPECTED
    assert (run.examined, run.total, run.spared, run.state) == (12, 12, 1, "finished")
    after = [state(agent)[str(memory.pk)] for memory in mixed]
    assert [row["status"] for row in after] == [
        "active", "active", "archived", "active", "archived", "active", "active", "active", "archived",
        "forgotten", "active", "forgotten", "archived",
    ]  # fmt: skip
    assert [row["weight"] for row in after][:8] == [1, 0.5, 1, 1, 1, 0.5, 0.9, 0.5]
    assert after[7]["needs_review"]
    assert [row["archived_by"] for row in after if row["status"] == "archived"] == [
        "episode_idle", "low_confidence", "expired", "",
    ]  # fmt: skip


def test_search_rows_follow(agent, mixed) -> None:
    lifecycle.sweep(team=agent.team, now=NOW)
    expected = {pk: row["status"] for pk, row in state(agent).items() if row["status"] != "forgotten"}
    for table in search_statuses(agent):
        assert table == expected


def test_every_change_leaves_one_event(agent, mixed) -> None:
    lifecycle.sweep(team=agent.team, now=NOW)
    with team_transaction(agent.team):
        events = list(AuditEvent.objects.of(agent.team).filter(actor_label="rules of life"))
    assert len(events) == sum(EXPECTED.values())
    assert all(len({event.before, event.after, ""}) == 3 for event in events)
    told = {event.object_id: event for event in events}
    faded = told[str(mixed[1].pk)]
    assert (faded.verb, faded.detail) == (
        "memory.faded", {"rule": "idle", "reason": "no hit for 31 days", "status": "active", "weight": 0.5},
    )  # fmt: skip
    assert told[str(mixed[7].pk)].verb == "memory.flagged"
    assert told[str(mixed[2].pk)].verb == "memory.archived"


def test_a_second_sweep_changes_nothing(agent, mixed) -> None:
    lifecycle.sweep(team=agent.team, now=NOW)
    before = state(agent)
    again = lifecycle.sweep(team=agent.team, now=NOW)
    assert again.changed == {}
    assert state(agent) == before
    later = lifecycle.sweep(team=agent.team, now=NOW + timedelta(hours=1))
    assert later.changed == {}


def test_interrupted_it_goes_on_where_it_stopped(agent, monkeypatch) -> None:
    monkeypatch.setattr(lifecycle, "BATCH", 4)
    lives(agent, [at(ago(61)) for _ in range(10)])
    first = lifecycle.sweep(team=agent.team, now=NOW, seconds=0)
    assert (first.state, first.examined, first.changed) == ("paused", 4, {"episode_idle": 4})
    second = lifecycle.sweep(team=agent.team, now=NOW)
    assert second.pk == first.pk
    assert (second.state, second.examined, second.changed) == ("finished", 10, {"episode_idle": 10})


def test_a_killed_run_is_taken_over_and_a_running_one_is_not(agent) -> None:
    with team_transaction(agent.team):
        killed = SweepRun.objects.create(team=agent.team, progress_at=timezone.now() - timedelta(hours=1))
    assert killed.state == "interrupted"
    assert lifecycle.sweep(team=agent.team, now=NOW).pk == killed.pk
    with team_transaction(agent.team):
        running = SweepRun.objects.create(team=agent.team)
    assert lifecycle.sweep(team=agent.team, now=NOW).pk != running.pk


def test_only_its_own_team(agent, other_agent, mixed) -> None:
    foreign = lives(other_agent, [at(ago(61))])
    lifecycle.sweep(team=agent.team, now=NOW)
    assert state(other_agent)[str(foreign[0].pk)]["status"] == "active"


def test_what_is_deleted_leaves_nothing_but_a_tombstone(agent) -> None:
    memory = factories.memory(agent, "The old locker was number seven.", kind=Kind.TASK)
    with team_transaction(agent.team):
        actions.revise(team=agent.team, by=SYSTEM, memory=memory, content="The old locker was number eight.")
        old = {"status": Status.ARCHIVED, "archived_at": ago(181), "archived_by": Rule.EPISODE_IDLE}
        Memory.objects.of(agent.team).filter(pk=memory.pk).update(created_at=ago(400), **old)
    assert lifecycle.sweep(team=agent.team, now=NOW).changed == {"long_archived": 1}
    with team_transaction(agent.team):
        memory.refresh_from_db()
        assert (memory.status, memory.content) == (Status.FORGOTTEN, "")
        assert not Revision.objects.of(agent.team).filter(memory=memory).exists()
        assert not Evidence.objects.of(agent.team).filter(memory=memory).exists()
    assert search_statuses(agent) == [{}, {}]


# --- Room ---------------------------------------------------------------------------------------------


def small(agent, **values) -> None:
    with team_transaction(agent.team):
        actions.change_policy(team=agent.team, by=SYSTEM, changes={"life.capacity": 10, **values})


def test_a_full_scope_lets_its_lowest_go(agent) -> None:
    small(agent)
    rows = [at(ago(1), confidence=0.4 + place / 100) for place in range(14)]
    rows[0]["pinned"] = True
    rows[1]["approved_at"] = ago(3)
    rows += [at(ago(0.1), tier=Tier.WORKING, expires_at=ago(-1), confidence=0.31)]
    made = lives(agent, rows)
    run = lifecycle.sweep(team=agent.team, now=NOW)
    assert run.changed == {"full": 4}
    after = state(agent)
    assert [place for place, memory in enumerate(made) if after[str(memory.pk)]["status"] == "archived"] == [2, 3, 4, 5]
    assert lifecycle.sweep(team=agent.team, now=NOW).changed == {}


def test_the_protected_may_overfill_a_scope(agent) -> None:
    small(agent)
    lives(agent, [at(ago(1), pinned=True) for _ in range(12)])
    assert lifecycle.sweep(team=agent.team, now=NOW).changed == {}


def test_room_is_made_in_batches(agent, monkeypatch) -> None:
    monkeypatch.setattr(lifecycle, "BATCH", 7)
    small(agent)
    lives(agent, [at(ago(1), confidence=0.5) for _ in range(40)])
    assert lifecycle.sweep(team=agent.team, now=NOW).changed == {"full": 30}


# --- Before it happens --------------------------------------------------------------------------------


def test_a_preview_tells_what_a_sweep_then_does(agent, mixed) -> None:
    small(agent)
    lives(agent, [at(ago(1), confidence=0.5, content=f"Filler {place}") for place in range(20)])
    before = state(agent)
    with team_transaction(agent.team):
        found = preview(team=agent.team, life=team_policy.of(agent.team).life, now=NOW)
    assert state(agent) == before
    run = lifecycle.sweep(team=agent.team, now=NOW)
    assert {effect.rule: effect.count for effect in found.effects} == run.changed
    assert run.changed["full"] > 0
    assert (found.examined, found.spared) == (run.examined, run.spared)
    example = next(effect for effect in found.effects if effect.rule == "idle").examples[0]
    assert (example.memory, example.reason) == (mixed[1].pk, "no hit for 31 days")


def test_a_preview_of_a_large_team_is_bounded(agent) -> None:
    lives(agent, [at(ago(61)) for _ in range(30)])
    with team_transaction(agent.team):
        found = preview(team=agent.team, life=team_policy.of(agent.team).life, now=NOW, most=10)
    assert (found.examined, found.total, found.changes) == (10, 30, 10)
    assert len(found.effects[0].examples) == 3


# --- Command and schedule -------------------------------------------------------------------------------


def test_the_command_previews_and_sweeps(agent, capsys) -> None:
    lives(agent, [at(timezone.now() - 61 * DAY) for _ in range(3)])
    call_command("sweep", "--team", agent.team.slug, "--dry-run")
    told = capsys.readouterr().out
    assert "acme: Episode without a hit: 3" in told
    assert "3 memories examined, 3 would change" in told
    assert Counter(row["status"] for row in state(agent).values()) == {"active": 3}
    call_command("sweep")
    assert "3 memories examined, 3 changed" in capsys.readouterr().out
    assert Counter(row["status"] for row in state(agent).values()) == {"archived": 3}


def test_a_team_that_fails_holds_no_other_up(agent, other_agent, capsys) -> None:
    """`acme` comes before `rival`, and its row cannot be read back: its time lies before the year 1."""
    unreadable = datetime(1, 1, 1, tzinfo=timezone.get_fixed_timezone(14 * 60))
    lives(agent, [at(timezone.now(), archived_at=unreadable)])
    lives(other_agent, [at(timezone.now() - 61 * DAY)])
    assert agent.team.slug < other_agent.team.slug
    for options in (["--dry-run"], []):
        with pytest.raises(CommandError, match=f"1 of 2 teams failed: {agent.team.slug}"):
            call_command("sweep", *options)
        assert "1 memories examined, 1 " in capsys.readouterr().out
    assert Counter(row["status"] for row in state(other_agent).values()) == {"archived": 1}


def test_the_schedule_sweeps_every_team(agent, other_agent, settings) -> None:
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "sync": False}
    lives(agent, [at(timezone.now() - 61 * DAY)])
    assert tasks.sweep() == "2 teams"
    assert tasks.sweep_team(str(agent.team.pk)) == "1 examined, 1 changed, finished"
    assert tasks.sweep_team("01900000-0000-7000-8000-000000000000") == "gone"


def test_a_batch_asks_the_database_little(agent) -> None:
    lives(agent, [at(ago(61)) for _ in range(300)])
    with CaptureQueriesContext(connection) as queries:
        lifecycle.sweep(team=agent.team, now=NOW)
    assert len(queries) < 60


# --- At the same time -----------------------------------------------------------------------------------


def together(*acts) -> list[BaseException]:
    """Run `acts` at once in threads of their own; return what they raised."""
    failures: list[BaseException] = []

    def run(act) -> None:
        try:
            act()
        except BaseException as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_do_no_harm(agent, monkeypatch) -> None:
    monkeypatch.setattr(lifecycle, "BATCH", 20)
    small(agent)
    lives(agent, [at(ago(61), confidence=0.5) for _ in range(60)] + [at(ago(1), confidence=0.5) for _ in range(60)])
    assert together(*[lambda: lifecycle.sweep(team=agent.team, now=NOW)] * 3) == []
    lifecycle.sweep(team=agent.team, now=NOW)  # what one of them had locked while another came by
    after = Counter((row["status"], row["archived_by"]) for row in state(agent).values())
    assert after == {("archived", "episode_idle"): 60, ("archived", "full"): 50, ("active", ""): 10}
    with team_transaction(agent.team):
        events = AuditEvent.objects.of(agent.team).filter(verb="memory.archived")
        assert events.count() == 110
        assert events.values("object_id").distinct().count() == 110


@pytest.mark.django_db(transaction=True)
def test_a_memory_that_somebody_writes_is_left_for_the_next_sweep(agent) -> None:
    busy, idle = lives(agent, [at(ago(61)), at(ago(61))])
    with team_transaction(agent.team):
        Memory.objects.of(agent.team).select_for_update().get(pk=busy.pk)
        assert together(lambda: lifecycle.sweep(team=agent.team, now=NOW)) == []
    after = state(agent)
    assert (after[str(busy.pk)]["status"], after[str(idle.pk)]["status"]) == ("active", "archived")
    assert lifecycle.sweep(team=agent.team, now=NOW).changed == {"episode_idle": 1}
