"""Deleting what a team's policy does not keep: old traces, receipts, and notes of mails that were sent."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from django.db.models import Q

from hindsight_site.accounts import audit
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import receipt_purging, team_policy
from reflection.actions import delete_trace
from reflection.models import Trace
from reflection.review import mail_purging

logger = logging.getLogger(__name__)

BY = audit.system("retention")
TURN = 60.0  # seconds of an hour for all teams; the next hour goes on
TRACES, RECEIPTS, MAILS = 20, 500, 500  # deleted in one transaction


def purge(now: datetime, *, turn: float = TURN) -> str:
    """Delete what is too old in every team, as far as the time goes. Returns a line that says how much."""
    until = time.monotonic() + turn
    gone: Counter[str] = Counter()
    for team in Team.objects.filter(suspended_at=None).order_by("?"):  # so that no team always comes last
        try:
            _purge(team, now, until, gone)
        except Exception:  # one team's trouble must not keep what others want gone
            logger.exception("what is too old was not deleted", extra={"team": str(team.pk)})
            gone["failed"] += 1
    told = f"{gone['traces']} traces, {gone['receipts']} receipts and {gone['mails']} notes of mails deleted"
    return f"{told}; {gone['failed']} teams failed" if gone["failed"] else told


def _purge(team: Team, now: datetime, until: float, gone: Counter[str]) -> None:
    with team_transaction(team):
        keep = team_policy.of(team).keep
    kinds: tuple[tuple[str, Callable[[], int]], ...] = (
        ("traces", lambda: _traces(team, now - keep.traces) if keep.traces else 0),
        ("receipts", lambda: _receipts(team, now - keep.receipts) if keep.receipts else 0),
        ("mails", lambda: _mails(team, now - mail_purging.KEPT)),
    )
    for kind, some in kinds:
        while time.monotonic() < until and (done := some()):
            gone[kind] += done


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


def _mails(team: Team, before: datetime) -> int:
    with team_transaction(team):
        return mail_purging.purge(team=team, by=BY, before=before, most=MAILS)
