"""The answers kept for an `Idempotency-Key`, which hold what was written: for a day, then they are removed."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

from django.utils import timezone

from hindsight_site.accounts.models import IdempotencyKey, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue

KEPT = timedelta(hours=24)
BATCH = 1_000  # rows a transaction
TURN = 45.0  # seconds before the worker is given back; the rest of the teams wait for the next turn
PURGE = "hindsight_site.accounts.tasks.purge_kept_answers"


def purge_team(team: Team, *, batch: int = BATCH, until: float | None = None) -> int:
    """Remove this team's answers that are older than `KEPT`, batch by batch; return how many.

    `until` is a time of `time.monotonic()` after which no further batch is begun.
    """
    old, removed = timezone.now() - KEPT, 0
    while True:
        with team_transaction(team):
            rows = IdempotencyKey.objects.of(team).filter(created_at__lt=old)
            oldest = list(rows.order_by("created_at").values_list("pk", flat=True)[:batch])
            # Nothing hangs on an answer: one DELETE, without Django's looking for what does.
            gone = IdempotencyKey.objects.of(team).filter(pk__in=oldest)._raw_delete("default") if oldest else 0
        removed += gone
        if len(oldest) < batch or (until is not None and time.monotonic() > until):
            return removed


def purge(after: uuid.UUID | None = None, *, turn: float = TURN, batch: int = BATCH) -> int:
    """Remove old answers, team by team in the order of their ids, from the one after `after` on.

    Returns how many were removed. When `turn` seconds are over a worker is woken for the teams that are left.
    """
    teams = Team.objects.order_by("pk")
    until, removed = time.monotonic() + turn, 0
    for team in (teams.filter(pk__gt=after) if after else teams).iterator():
        removed += purge_team(team, batch=batch, until=until)
        if time.monotonic() > until:
            enqueue(PURGE, team.pk)
            break
    return removed
