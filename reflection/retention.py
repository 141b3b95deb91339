"""Deleting traces and receipts that are older than a team's policy keeps them."""

from __future__ import annotations

import time
from datetime import datetime

from django.db.models import Q

from hindsight_site.accounts import audit
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import receipt_purging, team_policy
from reflection.actions import delete_trace
from reflection.models import Trace

BY = audit.system("retention")
TURN = 60.0  # seconds of an hour for all teams; the next hour goes on
TRACES, RECEIPTS = 20, 500  # deleted in one transaction


def purge(now: datetime, *, turn: float = TURN) -> str:
    """Delete what is too old in every team, as far as the time goes. Returns a line that says how much."""
    until = time.monotonic() + turn
    traces = gone = 0
    for team in Team.objects.filter(suspended_at=None).order_by("?"):  # so that no team always comes last
        with team_transaction(team):
            keep = team_policy.of(team).keep
        while keep.traces and time.monotonic() < until and (done := _traces(team, now - keep.traces)):
            traces += done
        while keep.receipts and time.monotonic() < until and (done := _receipts(team, now - keep.receipts)):
            gone += done
    return f"{traces} traces and {gone} receipts deleted"


def _traces(team: Team, before: datetime) -> int:
    with team_transaction(team):
        ended = Q(ended_at=None) | Q(ended_at__lt=before)
        old = Trace.objects.of(team).filter(ended, created_at__lt=before).order_by("created_at", "pk")
        found = list(old.select_for_update(skip_locked=True)[:TRACES])
        for trace in found:
            delete_trace(team=team, by=BY, trace=trace)
    return len(found)


def _receipts(team: Team, before: datetime) -> int:
    with team_transaction(team):
        return receipt_purging.purge(team=team, by=BY, before=before, most=RECEIPTS)
