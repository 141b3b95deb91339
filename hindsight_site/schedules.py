"""What runs by the clock. The table here is the truth; the database's rows are made to match it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django_q.models import Schedule

# Marks the rows that are ours. An operator's own schedules keep their names and are left alone.
PREFIX = "hindsight: "

_LOCK = 0x68736E64  # "hsnd": two processes that sync at once do it one after the other


@dataclass(frozen=True, slots=True)
class Every:
    """Run the function at the dotted path `task`, without arguments, every `minutes` minutes.

    The first time within a minute. Up to three weeks: the queue keeps the number in two bytes.
    """

    name: str
    task: str
    minutes: int

    def __post_init__(self) -> None:
        if not 1 <= self.minutes < 2**15:
            raise ValueError(f"{self.name}: {self.minutes} minutes cannot be kept; use At for rare tasks")


@dataclass(frozen=True, slots=True)
class At:
    """Run the function at the dotted path `task`, without arguments, at the times of a cron expression, UTC."""

    name: str
    task: str
    cron: str


SCHEDULES = (
    Every("webhooks", "hindsight_site.accounts.tasks.sweep_webhooks", minutes=1),
    Every("job sweep", "reflection.tasks.sweep_jobs", minutes=1),
    Every("review batches", "reflection.tasks.open_batches", minutes=60),
    Every("review mails", "reflection.tasks.queue_review_mails", minutes=30),
    Every("rules of life", "memories.tasks.sweep", minutes=60),
    Every("retention", "reflection.tasks.purge_old", minutes=60),
    Every("vector indexes", "memories.tasks.sync_vector_indexes", minutes=60),
    Every("vector changes", "memories.tasks.sweep_vector_changes", minutes=1),
    Every("vectors of deleted teams", "memories.tasks.forget_vectors_of_deleted_teams", minutes=10),
    Every("team deletions", "hindsight_site.accounts.tasks.resume_deletions", minutes=5),
    Every("rate limit buckets", "hindsight_site.accounts.tasks.tidy_buckets", minutes=24 * 60),
    Every("idempotency keys", "hindsight_site.accounts.tasks.purge_kept_answers", minutes=60),
    At("integrity check", "reflection.tasks.check_invariants", cron="41 2 * * *"),  # nightly
    At("consolidation", "reflection.tasks.consolidate", cron="23 4 * * 1"),  # weekly, before the week's review
    At("signing keys", "hindsight_site.accounts.signing_keys.rotate", cron="17 3 1 * *"),  # monthly
)


@dataclass(frozen=True, slots=True)
class Synced:
    """How many rows a sync created, changed and removed."""

    created: int
    changed: int
    removed: int


def sync(schedules: tuple[Every | At, ...] = SCHEDULES) -> Synced:
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


def _new(name: str, schedule: Every | At) -> Schedule:
    row = Schedule(name=name, **_fields(schedule))
    _plan(row)
    return row


def _change(row: Schedule, schedule: Every | At) -> bool:
    """Correct a row that differs from its schedule, or went astray, and say whether it did."""
    wanted = _fields(schedule)
    if all(getattr(row, field) == value for field, value in wanted.items()) and not _is_astray(row, schedule):
        return False
    for field, value in wanted.items():
        setattr(row, field, value)
    _plan(row)
    row.save()
    return True


def _is_astray(row: Schedule, schedule: Every | At) -> bool:
    """Whether it is planned later than its rhythm allows: the clock was ahead when it last ran, and was set back."""
    if isinstance(schedule, At) or row.next_run is None:
        return False
    return row.next_run > timezone.now() + timedelta(minutes=max(schedule.minutes, 2))


def _fields(schedule: Every | At) -> dict[str, Any]:
    """What the queue's row says of a schedule."""
    common = {"func": schedule.task, "repeats": -1}  # for ever
    if isinstance(schedule, At):
        return {**common, "schedule_type": Schedule.CRON, "minutes": None, "cron": schedule.cron}
    return {**common, "schedule_type": Schedule.MINUTES, "minutes": schedule.minutes, "cron": None}


def _plan(row: Schedule) -> None:
    """Set the first run: a rhythm begins at once, so that a daily task does not wait a day after an install."""
    row.next_run = timezone.now()
    if row.schedule_type == Schedule.CRON:
        row.next_run = row.calculate_next_run()
    else:
        row.next_run += timedelta(minutes=1)
