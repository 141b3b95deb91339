"""What runs by the clock. The table here is the truth; the database's rows are made to match it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone
from django_q.models import Schedule

# Marks the rows that are ours. An operator's own schedules keep their names and are left alone.
PREFIX = "hindsight: "

_LOCK = 0x68736E64  # "hsnd": two processes that sync at once do it one after the other


@dataclass(frozen=True, slots=True)
class Every:
    """Run the function at the dotted path `task`, without arguments, every `minutes` minutes."""

    name: str
    task: str
    minutes: int


SCHEDULES = (
    Every("job sweep", "reflection.tasks.sweep_jobs", minutes=1),
    Every("review batches", "reflection.tasks.open_batches", minutes=60),
    Every("signing keys", "hindsight_site.accounts.signing_keys.rotate", minutes=30 * 24 * 60),
)


@dataclass(frozen=True, slots=True)
class Synced:
    """How many rows a sync created, changed and removed."""

    created: int
    changed: int
    removed: int


def sync(schedules: tuple[Every, ...] = SCHEDULES) -> Synced:
    """Make the database's schedules match `schedules`. What has not changed keeps its next run."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        rows = {row.name: row for row in Schedule.objects.filter(name__startswith=PREFIX)}
        wanted = {PREFIX + schedule.name: schedule for schedule in schedules}
        created = [_new(name, wanted[name]) for name in wanted.keys() - rows.keys()]
        Schedule.objects.bulk_create(created)
        changed = sum(_change(rows[name], wanted[name]) for name in wanted.keys() & rows.keys())
        removed = [row.pk for name, row in rows.items() if name not in wanted]
        Schedule.objects.filter(pk__in=removed).delete()
    return Synced(len(created), changed, len(removed))


def _new(name: str, schedule: Every) -> Schedule:
    return Schedule(
        name=name,
        func=schedule.task,
        schedule_type=Schedule.MINUTES,
        minutes=schedule.minutes,
        repeats=-1,  # for ever
        next_run=_first_run(schedule),
    )


def _change(row: Schedule, schedule: Every) -> bool:
    """Correct a row that differs from its schedule, and say whether it did."""
    now = (row.func, row.schedule_type, row.minutes, row.repeats)
    wanted = (schedule.task, Schedule.MINUTES, schedule.minutes, -1)
    if now == wanted:
        return False
    row.func, row.schedule_type, row.minutes, row.repeats = wanted
    row.next_run = _first_run(schedule)
    row.save()
    return True


def _first_run(schedule: Every) -> datetime:
    """A minute from now at the latest, so that a daily task does not wait for a day after an install."""
    return timezone.now() + timedelta(minutes=min(schedule.minutes, 1))
