"""The hourly sweep: the rules of life over all of a team's memories, in bounded batches.

Each batch is one transaction, with its audit events and the run's progress in it: stopped anywhere, nothing
is half done, and the next run goes on. Two sweeps at once do no harm: rows are decided under their lock.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import team_policy
from memories.embeddings import EmbeddingError
from memories.enums import Rule, Status, Tier
from memories.lifecycle import capacity, rules
from memories.lifecycle.rules import Decision, Vitals
from memories.lifecycle.writing import COLUMNS, carry_out
from memories.models import Memory, SweepRun
from memories.policies import LIVE
from memories.policy import Life

logger = logging.getLogger(__name__)
BATCH = 1000  # memories in one transaction
KEPT = timedelta(days=30)  # how long the record of a run stays
_EVICTION = 0x65766963  # "evic", the class of the advisory lock
SCHEDULE = audit.system("rules of life")
Progress = Callable[[SweepRun], None]


@dataclass(frozen=True, slots=True)
class Row:
    """A memory as a sweep reads it."""

    id: uuid.UUID
    scope_id: uuid.UUID
    vitals: Vitals


@dataclass(slots=True)
class _Sweep:
    """What stays the same through one run."""

    team: Team
    by: Actor
    now: datetime
    life: Life
    run: SweepRun
    changed: Counter[str] = field(default_factory=Counter)


def sweep(
    *, team: Team, by: Actor = SCHEDULE, now: datetime | None = None, seconds: float | None = None,
    progress: Progress | None = None,
) -> SweepRun:  # fmt: skip
    """Apply the rules to `team` as of `now`. After `seconds` it stops between two batches, to be gone on with.

    A run that was interrupted is gone on with. Call it outside a transaction.
    """
    started = time.monotonic()
    at_work = _begin(team, by, now or timezone.now())
    for _ in _steps(at_work):
        if progress is not None:
            progress(at_work.run)
        if seconds is not None and time.monotonic() - started > seconds:
            return _end(at_work, paused=True)
    return _end(at_work, paused=False)


def _begin(team: Team, by: Actor, now: datetime) -> _Sweep:
    with team_transaction(team):
        policy = team_policy.of(team)
        SweepRun.objects.of(team).filter(created_at__lt=timezone.now() - KEPT).delete()
        run = _resumed(team) or SweepRun(team=team, total=to_examine(team, policy.life, now).count())
        run.actor_label, run.policy_version = by.label, policy.version
        run.save()
        return _Sweep(team, by, now, policy.life, run, Counter(run.changed))


def _resumed(team: Team) -> SweepRun | None:
    """The last run when it was stopped halfway, taken over by this caller alone."""
    last = SweepRun.objects.of(team).order_by("-created_at", "-id").first()
    if last is None or last.state not in ("paused", "interrupted"):
        return None
    as_seen = SweepRun.objects.of(team).filter(pk=last.pk, progress_at=last.progress_at, finished_at=None)
    if not as_seen.update(paused=False, progress_at=timezone.now()):
        return None
    last.refresh_from_db()
    return last


def to_examine(team: Team, life: Life, now: datetime) -> QuerySet[Memory]:
    """Everything live, and what was archived by the rule that may delete it and long enough ago."""
    long_ago = Q(
        status=Status.ARCHIVED, archived_by=Rule.EPISODE_IDLE, archived_at__lte=now - life.episodic_delete_after
    )
    return Memory.objects.of(team).filter(Q(status__in=LIVE) | long_ago)


def read(memories: QuerySet[Memory], after: uuid.UUID | None, size: int) -> list[Row]:
    """The next `size` memories in the order of their ids."""
    rest = memories.filter(pk__gt=after) if after else memories
    rows = rest.order_by("pk").values_list("id", "scope_id", *COLUMNS)[:size]
    return [Row(ident, scope, Vitals(*numbers)) for ident, scope, *numbers in rows]


def _steps(at_work: _Sweep) -> Iterator[None]:
    """Do one batch at a time."""
    while True:
        with team_transaction(at_work.team):
            rows = read(to_examine(at_work.team, at_work.life, at_work.now), at_work.run.cursor, BATCH)
            if not rows:
                break
            _examine(at_work, rows)
        yield
    with team_transaction(at_work.team):
        full = overfull(at_work.team, at_work.life)
    for scope in full:
        yield from _evict(at_work, scope)


def _examine(at_work: _Sweep, rows: list[Row]) -> None:
    life, now = at_work.life, at_work.now
    decisions = {row.id: decision for row in rows if (decision := rules.decide(row.vitals, life, now)) is not None}
    going = {ident for ident, decision in decisions.items() if decision.to == Status.FORGOTTEN}
    _carry_out(at_work, [ident for ident in decisions if ident not in going])
    try:
        with transaction.atomic():
            _carry_out(at_work, sorted(going))
    except EmbeddingError:  # the turn after one that goes is embedded anew
        logger.warning("forgetting waits for the next sweep: no embedder", exc_info=True)
    at_work.run.cursor = rows[-1].id
    at_work.run.examined += len(rows)
    at_work.run.spared += sum(rules.spared(row.vitals, life, now) is not None for row in rows)
    _save_progress(at_work)


def _carry_out(at_work: _Sweep, memory_ids: list[uuid.UUID]) -> None:
    at_work.changed += carry_out(
        team=at_work.team, by=at_work.by, memory_ids=memory_ids,
        decide=lambda vitals: rules.decide(vitals, at_work.life, at_work.now), now=at_work.now,
    )  # fmt: skip


def overfull(team: Team, life: Life) -> dict[uuid.UUID, int]:
    """The scopes that hold more live memories than they may, and by how many. Working memory does not count."""
    live = Memory.objects.of(team).filter(status__in=LIVE).exclude(tier=Tier.WORKING)
    counts = live.values_list("scope_id").annotate(n=Count("pk")).filter(n__gt=life.capacity).order_by("scope_id")
    return {scope: n - life.capacity for scope, n in counts}


def _evict(at_work: _Sweep, scope_id: uuid.UUID) -> Iterator[None]:
    team, life, now = at_work.team, at_work.life, at_work.now

    def decide(vitals: Vitals) -> Decision | None:
        return evicted(vitals) if capacity.can_give_way(vitals, life, now) else None

    while True:
        with team_transaction(team):
            _one_eviction_at_a_time(scope_id)
            excess = overfull(team, life).get(scope_id, 0)
            chosen = capacity.lowest(scores(team, scope_id, life, now), min(excess, BATCH))
            done = carry_out(team=team, by=at_work.by, memory_ids=chosen, decide=decide, now=now)
            at_work.changed += done
            _save_progress(at_work)
        yield
        if not done or excess <= BATCH:
            return


def _one_eviction_at_a_time(scope_id: uuid.UUID) -> None:
    """Two sweeps that count the same excess would take it away twice."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_EVICTION, (scope_id.int & 0xFFFFFFFF) - 2**31])


def evicted(vitals: Vitals) -> Decision:
    """The decision that a memory gives way to others."""
    return Decision(Rule.FULL, "the scope is full", vitals.fades, vitals.weight, to=Status.ARCHIVED)


def scores(team: Team, scope_id: uuid.UUID, life: Life, now: datetime) -> Iterator[tuple[float, uuid.UUID]]:
    """The keeping score of everything in a scope that may be evicted."""
    live = Memory.objects.of(team).filter(scope_id=scope_id, status__in=LIVE)
    cursor: uuid.UUID | None = None
    while rows := read(live, cursor, BATCH):
        cursor = rows[-1].id
        for row in rows:
            if capacity.can_give_way(row.vitals, life, now):
                yield capacity.keeping_score(row.vitals, life, now), row.id


def _save_progress(at_work: _Sweep) -> None:
    run = at_work.run
    run.changed, run.progress_at = dict(at_work.changed), timezone.now()
    run.save(update_fields=["cursor", "examined", "spared", "changed", "progress_at"])


def _end(at_work: _Sweep, *, paused: bool) -> SweepRun:
    run = at_work.run
    with team_transaction(at_work.team):
        run.paused, run.progress_at = paused, timezone.now()
        run.finished_at = None if paused else run.progress_at
        run.save(update_fields=["paused", "finished_at", "progress_at"])
    return run
