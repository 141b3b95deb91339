"""Who works on a row that is a job: claimed by compare-and-set, kept by a lease, guarded by a fencing token.

A worker that dies stops renewing; after the lease another may claim. The fence grows at each claim, so
a worker that was only slow cannot write over its successor. The rows have the fields `status` ("queued",
"running", or an end), `attempts`, `fence`, `lease_until`, `run_after` and `started_at`.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction

QUEUED, RUNNING = "queued", "running"
CLOCKS_DIFFER = timedelta(minutes=1)  # between machines that keep time
STUCK_AFTER = timedelta(minutes=10)  # the sweep has looked ten times by then
LONGEST_TURN = timedelta(hours=1)  # the queue ends a long task by then (Q_CLUSTER)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to finish one row, as long as `fence` is the newest. `lease` is renewed while it is worked on."""

    model: type[models.Model]
    team: Team
    row_id: uuid.UUID
    fence: int
    lease: timedelta

    @property
    def rows(self) -> QuerySet[Any]:
        """The row as a query that finds it only while it is ours."""
        return _rows(self.model, self.team, self.row_id).filter(fence=self.fence, status=RUNNING)


class LeaseLost(Exception):
    """Another worker has claimed the row meanwhile: drop what was done."""


def claim(
    model: type[models.Model], team: Team, row_id: uuid.UUID, *, lease: timedelta, max_attempts: int
) -> Claim | None:
    """Claim a row that is due, or whose worker stopped renewing. None: somebody else has it, or it has ended."""
    now = timezone.now()
    due = Q(status=QUEUED) & (Q(run_after__lte=now) | _from_ahead("created_at", now))
    with team_transaction(team):
        row = _rows(model, team, row_id)
        fence = row.values_list("fence", flat=True).first()
        if fence is None:
            return None
        won = row.filter(due | _abandoned(now), fence=fence, attempts__lt=max_attempts).update(
            status=RUNNING,
            fence=fence + 1,
            attempts=F("attempts") + 1,  # at the claim, so that a death counts
            lease_until=now + lease,
            started_at=now,
        )
    return Claim(model, team, row_id, fence + 1, lease) if won else None


def held(claim: Claim) -> Any:
    """Lock the row for writing the result. Call inside the transaction that writes. Raises `LeaseLost`."""
    row = claim.rows.select_for_update().first()
    if row is None:
        raise LeaseLost
    return row


def renew(claim: Claim) -> bool:
    """Extend the lease; False when it was lost."""
    with team_transaction(claim.team):
        return bool(claim.rows.update(lease_until=timezone.now() + claim.lease))


@contextmanager
def kept(claim: Claim) -> Iterator[None]:
    """Renew the lease in the background for as long as the work inside takes."""
    done = threading.Event()

    def renew_until_done() -> None:
        while not done.wait(claim.lease.total_seconds() / 3):
            if not renew(claim):
                break
        connection.close()  # this thread's own

    thread = threading.Thread(target=renew_until_done, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def lost(rows: QuerySet[Any], wake_up_lost_after: timedelta, oldest: datetime | None = None) -> QuerySet[Any]:
    """Those of `rows` whose wake-up or worker was lost.

    `oldest`: since when the oldest task waits in the queue; None: none does. What was due later has its wake-up
    behind that one, and another would only make the queue longer. But one of a clock that was ahead is seen by nobody.
    """
    now = timezone.now()
    due_long_since = Q(run_after__lt=min(now, oldest or now), created_at__lt=now - wake_up_lost_after)
    waiting = Q(status=QUEUED) & (due_long_since | _from_ahead("created_at", now))
    return rows.filter(waiting | _abandoned(now)).order_by("run_after")


def dead(rows: QuerySet[Any], max_attempts: int) -> QuerySet[Any]:
    """Those of `rows` whose worker died at every attempt: to be buried, visibly."""
    return rows.filter(status=RUNNING, lease_until__lt=timezone.now(), attempts__gte=max_attempts)


def stuck(rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    """Those of `rows`, all of one team, that somebody should look after: neither the queue nor the sweep does.

    Due long since while no row of the team was taken up; or at work without a lease, or longer than any turn takes.
    """
    long_ago = now - STUCK_AFTER
    hung = Q(status=RUNNING) & (Q(lease_until__lt=long_ago) | Q(started_at__lt=now - LONGEST_TURN))
    if rows.filter(started_at__gte=long_ago).exists():
        return rows.filter(hung)  # they wait for their turn: workers are there
    return rows.filter(hung | Q(status=QUEUED, run_after__lt=long_ago))


def _abandoned(now: datetime) -> Q:
    """Nobody renews it. Who claimed it by a clock that was ahead is not waited for: the fence keeps them out."""
    return Q(status=RUNNING) & (Q(lease_until__lt=now) | _from_ahead("started_at", now))


def _from_ahead(field: str, now: datetime) -> Q:
    """Written when the clock was ahead of what it is set to now: none of the row's times can be waited for."""
    return Q(**{f"{field}__gt": now + CLOCKS_DIFFER})


def _rows(model: type[models.Model], team: Team, row_id: uuid.UUID) -> QuerySet[Any]:
    return model._default_manager.filter(team_id=team.pk, pk=row_id)
