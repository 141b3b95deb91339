"""Telling an engine beside PostgreSQL what became of vectors: noted with the change, carried over after its commit.

A note says which memory, not what: it is read when it is carried over, so there is no old content that could come
late. One at a time carries over for a team. It claims a batch for `CLAIM`, which is longer than its requests may
take, so that one that died or hangs cannot write after the next one did (docs/adr/0014).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from hindsight_site.accounts.enums import DeletionState
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Team, TeamDeletion
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue
from memories.models import VectorChange
from memories.search import engines, vectors
from memories.search.engines import Engine, EngineError, Point
from memories.search.engines.calls import guarded
from memories.search.engines.pgvector import STAMP

logger = logging.getLogger(__name__)

CARRY_OVER = "memories.tasks.carry_vectors_over"
BATCH = 200  # memories of one claim
CLAIM = timedelta(minutes=2)
LOOK_AGAIN_SECONDS = 0.5  # when another one holds the claim
LATEST_SEND_SECONDS = 30.0  # after its claim; what is slower lets go, and a request's time-out still fits in


def note(team_id: uuid.UUID, memory_ids: Sequence[uuid.UUID], *, wake: bool = True) -> None:
    """Note in this transaction that these memories' vectors changed, and wake a worker. Nothing for pgvector."""
    if not memory_ids or not engines.is_external():
        return
    is_first = wake and not VectorChange.objects.filter(team_id=team_id, claim=None).exists()
    VectorChange.objects.bulk_create([VectorChange(team_id=team_id, memory_id=memory) for memory in set(memory_ids)])
    if is_first:  # who noted the one before has woken a worker, or the sweep will
        enqueue(CARRY_OVER, team_id)


def is_waiting(team: Team) -> bool:
    """Whether a team has notes that nobody has taken."""
    with team_transaction(team):
        return VectorChange.objects.of(team).filter(claim=None).exists()


def carry_over(team: Team, engine: Engine, *, seconds: float) -> int:
    """Carry over what is noted, for at most `seconds`, and return how many memories that were.

    Ends early when another one is at it, or was and failed. Raises `EngineError`; what was not written stays
    noted, and free again after `CLAIM`.
    """
    until, done = time.monotonic() + seconds, 0
    while time.monotonic() < until and (claimed := _claim(team)):
        began = time.monotonic()
        guarded(lambda: _write(team, engine, _read(team, claimed.memory_ids), began))  # noqa: B023 - called at once
        with team_transaction(team):
            VectorChange.objects.of(team).filter(claim=claimed.claim).delete()
        done += len(claimed.memory_ids)
    return done


def tell_now(team: Team, *, seconds: float) -> int:
    """Carry over what is noted without waiting for a worker, and return how many memories are left after `seconds`.

    Waits for another one that is at it. Call outside of a transaction.
    """
    if not engines.is_external():
        return 0
    until = time.monotonic() + seconds
    while True:
        with team_transaction(team):
            left = VectorChange.objects.of(team).count()
        if not left or time.monotonic() > until:
            return left
        try:
            if not carry_over(team, engines.current(), seconds=until - time.monotonic()):
                time.sleep(LOOK_AGAIN_SECONDS)
        except EngineError as error:
            logger.warning("vectors not carried over: %s", error)
            return left


@dataclass(frozen=True, slots=True)
class _Claimed:
    claim: uuid.UUID
    memory_ids: list[uuid.UUID]

    def __bool__(self) -> bool:
        return bool(self.memory_ids)


def _claim(team: Team) -> _Claimed:
    """Take the oldest notes, unless somebody holds some of this team's."""
    claim = new_id()
    with team_transaction(team), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('vectors ' || %s, 0))", [str(team.pk)])
        cursor.execute(
            """
            UPDATE memories_vectorchange SET claim = %(claim)s, claimed_until = clock_timestamp() + %(term)s
            WHERE team_id = %(team)s
              AND id IN (SELECT id FROM memories_vectorchange WHERE team_id = %(team)s ORDER BY id LIMIT %(batch)s)
              AND NOT EXISTS (
                  SELECT 1 FROM memories_vectorchange
                  WHERE team_id = %(team)s AND claimed_until > clock_timestamp()
              )
            RETURNING memory_id
            """,
            {"claim": claim, "term": CLAIM, "team": team.pk, "batch": BATCH},
        )
        return _Claimed(claim, sorted({memory for (memory,) in cursor.fetchall()}))


@dataclass(frozen=True, slots=True)
class _Truth:
    """What PostgreSQL holds of some memories now: the points by model. Who is in none is to go."""

    memory_ids: Sequence[uuid.UUID]
    points: dict[str, list[Point]]


def _read(team: Team, memory_ids: Sequence[uuid.UUID]) -> _Truth:
    with team_transaction(team), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT v.model_id, v.memory_id, v.scope_id, v.status, {STAMP}, halfvec_send(v.embedding)"  # noqa: S608
            " FROM memories_memoryvector v WHERE v.team_id = %s AND v.memory_id = ANY(%s)",
            [team.pk, list(memory_ids)],
        )
        rows = cursor.fetchall()
    points: dict[str, list[Point]] = {}
    for model, memory, scope, status, stamp, raw in rows:
        points.setdefault(model, []).append(Point(memory, scope, status, stamp, vectors.decode([raw])[0]))
    return _Truth(memory_ids, points)


def _write(team: Team, engine: Engine, truth: _Truth, began: float) -> None:
    for model in sorted({*engine.models(), *truth.points}):
        points = truth.points.get(model, [])
        held = {point.memory_id for point in points}
        if time.monotonic() - began > LATEST_SEND_SECONDS:
            raise EngineError("The vector index is too slow: a batch was let go before it was written.")
        if points:
            engine.upsert(team_id=team.pk, model_id=model, points=points)
        if gone := [memory for memory in truth.memory_ids if memory not in held]:
            engine.delete(team_id=team.pk, model_id=model, memory_ids=gone)


def wake_lost() -> int:
    """Wake a worker for every team with notes that nobody holds; returns how many."""
    woken = 0
    for team in Team.objects.filter(suspended_at=None):
        with team_transaction(team):
            rows = VectorChange.objects.of(team)
            if rows.exists() and not rows.filter(claimed_until__gt=Now()).exists():
                enqueue(CARRY_OVER, team.pk)
                woken += 1
    return woken


def forget_deleted_teams(engine: Engine, *, within: timedelta) -> int:
    """Remove what an engine still holds of teams deleted in that time; returns of how many. Raises `EngineError`.

    The record of a deletion outlives its team, so one that the engine missed is caught up with.
    """
    gone = 0
    deleted = TeamDeletion.objects.filter(state=DeletionState.DONE, finished_at__gt=timezone.now() - within)
    for team_id in deleted.values_list("team_id", flat=True):
        if any(True for model in engine.models() for _ in engine.scan(team_id=team_id, model_id=model)):
            engine.forget_team(team_id=team_id)
            gone += 1
    return gone
