"""How much a team may keep and use up: live memories, traces a day, model tokens a month.

Two ways of counting. What is spent and never comes back (traces, model tokens) is added up in `TeamUsage`,
in the transaction that spends it. What is there (live memories) grows and shrinks on many paths, so it is
counted where it stands, and the count is kept for a minute. docs/adr/0006 has the figures.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Team, TeamUsage
from hindsight_site.refusals import Refused

SLOTS = 16  # rows that one count is spread over
COUNT_KEPT_SECONDS = 60.0
REFUSAL_KEPT_SECONDS = 5.0  # a refusal rests on a newer count, so that making room helps soon
SWEEP_SECONDS = 3_600  # the hourly sweep archives, and so may make room

ADD = """
INSERT INTO accounts_teamusage AS usage (id, team_id, kind, period, slot, amount)
VALUES (%s, %s, %s, %s, pg_backend_pid() %% %s, %s)
ON CONFLICT (team_id, kind, period, slot) DO UPDATE SET amount = usage.amount + EXCLUDED.amount
"""


class OverQuota(Refused):
    """The team has used up a quota. `wait`: seconds after which there may be room again."""

    status = 429
    code = "quota_exceeded"

    def __init__(self, message: str, *, wait: int) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of one thing is used. `limit` 0: no limit. `resets_at`: when `used` is zero again, if ever."""

    name: str
    used: int
    limit: int
    resets_at: datetime | None = None

    @property
    def share(self) -> float | None:
        """The part that is used, 0..1 or a little more; None without a limit."""
        return self.used / self.limit if self.limit else None


@dataclass(frozen=True, slots=True)
class _Counted:
    amount: int
    at: float  # monotonic seconds


_live: dict[uuid.UUID, _Counted] = {}  # live memories by team, as this process last counted them


def period_of(kind: Spent, at: datetime) -> tuple[date, datetime]:
    """Return the period that `at` falls into, and the moment at which the next one begins."""
    day = at.astimezone(UTC).date()
    if kind == Spent.TRACES:
        return day, _midnight(day + timedelta(days=1))
    first = day.replace(day=1)
    return first, _midnight((first + timedelta(days=31)).replace(day=1))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def spend(team: Team, kind: Spent, amount: int) -> None:
    """Add to what was spent. Part of the caller's transaction: what is rolled back was not spent."""
    if amount <= 0:
        return
    period, _ = period_of(kind, timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(ADD, [new_id(), team.pk, kind.value, period, SLOTS, amount])


def spent(team: Team, kind: Spent) -> int:
    """What was spent in the present period."""
    period, _ = period_of(kind, timezone.now())
    rows = TeamUsage.objects.of(team).filter(kind=kind, period=period)
    return rows.aggregate(total=Sum("amount"))["total"] or 0


def by_month(team: Team, kind: Spent, months: int) -> dict[date, int]:
    """What was spent in each of the last `months` months, by the first day of the month; none: left out."""
    this_month = timezone.now().astimezone(UTC).date().replace(day=1)
    since = this_month
    for _ in range(months - 1):
        since = (since - timedelta(days=1)).replace(day=1)
    rows = TeamUsage.objects.of(team).filter(kind=kind, period__gte=since).values_list("period")
    return dict(rows.annotate(total=Sum("amount")).order_by("-period"))


def traces_today(team: Team) -> Quota:
    _, resets_at = period_of(Spent.TRACES, timezone.now())
    return Quota("traces_today", spent(team, Spent.TRACES), settings.QUOTA_TRACES_A_DAY, resets_at)


def model_tokens_this_month(team: Team) -> Quota:
    _, resets_at = period_of(Spent.MODEL_TOKENS, timezone.now())
    return Quota(
        "model_tokens_this_month", spent(team, Spent.MODEL_TOKENS), settings.QUOTA_MODEL_TOKENS_A_MONTH, resets_at
    )


def memories(live: int) -> Quota:
    return Quota("memories", live, settings.QUOTA_MEMORIES)


def check_trace(team: Team) -> None:
    """Raise `OverQuota` when the team has recorded all the traces of a day. Calls at once may pass together."""
    if not settings.QUOTA_TRACES_A_DAY:
        return
    quota = traces_today(team)
    if quota.used >= quota.limit:
        assert quota.resets_at is not None  # noqa: S101 - a day ends
        raise OverQuota(
            f"This team has recorded {quota.used:,} traces today, and may record {quota.limit:,} a day (UTC).",
            wait=max(1, int((quota.resets_at - timezone.now()).total_seconds()) + 1),
        )


def model_tokens_are_used_up(team: Team) -> bool:
    """Whether no model may be called any more this month. A run that has begun is not cut short."""
    if not settings.QUOTA_MODEL_TOKENS_A_MONTH:
        return False
    return spent(team, Spent.MODEL_TOKENS) >= settings.QUOTA_MODEL_TOKENS_A_MONTH


def check_memory(team: Team, count: Callable[[], int]) -> None:
    """Make room for one more live memory, or raise `OverQuota`. `count` counts those there are, in the database.

    The count is kept for a minute, with what this process writes added; other processes' writes are seen with
    the next count. Before a refusal the memories are counted anew.
    """
    limit = settings.QUOTA_MEMORIES
    if not limit:
        return
    known, now = _live.get(team.pk), time.monotonic()
    kept = REFUSAL_KEPT_SECONDS if known and known.amount >= limit else COUNT_KEPT_SECONDS
    if known is None or now - known.at > kept:
        known = _Counted(count(), now)
    if known.amount >= limit:
        _live[team.pk] = known
        raise OverQuota(
            f"This team has {known.amount:,} live memories, and may have {limit:,}. Archive or forget some.",
            wait=SWEEP_SECONDS,
        )
    # A write that is rolled back stays counted until the next count: too many rather than too few.
    _live[team.pk] = _Counted(known.amount + 1, known.at)


def forget_counts() -> None:
    """Count anew at the next write."""
    _live.clear()
