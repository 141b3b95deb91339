"""The schedules declared in code are the ones in the database."""

from __future__ import annotations

from datetime import timedelta
from pydoc import locate

import pytest
from django.core.management import call_command
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler

from hindsight_site import schedules
from hindsight_site.schedules import PREFIX, SCHEDULES, At, Every, Synced

pytestmark = pytest.mark.django_db

SWEEP = Every("sweep", "reflection.tasks.sweep_jobs", minutes=1)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.name)
def test_every_declared_task_exists(schedule: Every | At) -> None:
    assert callable(locate(schedule.task))


def test_names_are_unique() -> None:
    assert len({schedule.name for schedule in SCHEDULES}) == len(SCHEDULES)


def test_the_job_sweep_runs_each_minute_and_batches_are_opened_hourly() -> None:
    schedules.sync()
    rows = Schedule.objects.values_list("func", "schedule_type", "minutes", "repeats")
    assert ("reflection.tasks.sweep_jobs", Schedule.MINUTES, 1, -1) in rows
    assert ("reflection.tasks.open_batches", Schedule.MINUTES, 60, -1) in rows


def test_a_second_sync_changes_nothing() -> None:
    assert schedules.sync() == Synced(created=len(SCHEDULES), changed=0, removed=0)
    next_runs = list(Schedule.objects.order_by("pk").values_list("next_run", flat=True))
    assert schedules.sync() == Synced(created=0, changed=0, removed=0)
    assert list(Schedule.objects.order_by("pk").values_list("next_run", flat=True)) == next_runs


def test_a_changed_schedule_is_corrected_and_a_dropped_one_removed() -> None:
    schedules.sync((SWEEP, Every("old", "reflection.tasks.open_batches", minutes=5)))
    slower = Every("sweep", "reflection.tasks.sweep_jobs", minutes=10)
    assert schedules.sync((slower,)) == Synced(created=0, changed=1, removed=1)
    assert list(Schedule.objects.values_list("name", "minutes")) == [(PREFIX + "sweep", 10)]


def test_a_rhythm_that_went_astray_with_the_clock_is_planned_anew() -> None:
    schedules.sync((SWEEP,))
    Schedule.objects.update(next_run=timezone.now() + timedelta(hours=2))
    assert schedules.sync((SWEEP,)) == Synced(created=0, changed=1, removed=0)
    assert Schedule.objects.get().next_run <= timezone.now() + timedelta(minutes=1)


def test_a_rhythm_begins_within_a_minute_and_a_time_is_waited_for() -> None:
    new_year = At("fireworks", "reflection.tasks.sweep_jobs", cron="0 0 1 1 *")
    schedules.sync((Every("rare", "reflection.tasks.sweep_jobs", minutes=7 * 24 * 60), new_year))
    rare, rockets = Schedule.objects.order_by("-name")
    now = timezone.now()
    assert rare.next_run - now <= timedelta(minutes=1)
    assert rockets.next_run == now.replace(year=now.year + 1, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)


@pytest.mark.parametrize("minutes", [0, -1, 30 * 24 * 60])
def test_a_rhythm_that_cannot_be_kept_is_refused(minutes: int) -> None:
    with pytest.raises(ValueError, match="sweep: "):
        Every("sweep", "reflection.tasks.sweep_jobs", minutes=minutes)


def test_a_schedule_switched_off_by_hand_is_switched_on_again() -> None:
    schedules.sync((SWEEP,))
    Schedule.objects.update(repeats=0)
    assert schedules.sync((SWEEP,)).changed == 1
    assert Schedule.objects.get().repeats == -1


def test_an_operators_own_schedule_is_left_alone() -> None:
    own = Schedule.objects.create(name="my report", func="math.sqrt", schedule_type=Schedule.DAILY)
    schedules.sync((SWEEP,))
    schedules.sync(())
    assert list(Schedule.objects.all()) == [own]


@pytest.mark.django_db(transaction=True)  # the runner closes the connection it is given
def test_what_was_synced_fires_when_it_is_due() -> None:
    schedules.sync((SWEEP,))
    Schedule.objects.update(next_run=timezone.now() - timedelta(hours=3))
    scheduler()
    assert [task.func() for task in OrmQ.objects.all()] == ["reflection.tasks.sweep_jobs"]
    assert Schedule.objects.get().next_run > timezone.now()


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("sync_schedules")
    assert capsys.readouterr().out == f"{len(SCHEDULES)} schedules: {len(SCHEDULES)} created, 0 changed, 0 removed.\n"
