"""Running a job: claim, work in batches and turns, end. What a kind of job does is handed in as a function.

A turn lasts about `TURN` seconds, so that no worker is held for long and none outlives the queue's time-out;
the job goes on in the next one from its `cursor`. Every batch is one transaction that holds the fence.
"""

from __future__ import annotations

import copy
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models.functions import Coalesce
from django.utils import timezone

from hindsight_site.accounts import audit, leases, sealing
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import JobKind, JobStatus, WebhookEvent
from hindsight_site.accounts.jobs import actions
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.leases import Claim, LeaseLost
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks.emitting import emit
from hindsight_site.queue import enqueue
from hindsight_site.refusals import Refused

logger = logging.getLogger(__name__)
TURN = 45.0  # seconds of work before the worker is given back
BACKOFF = (timedelta(seconds=10), timedelta(minutes=1))

Handler = Callable[["Work"], dict[str, Any]]  # does the work and returns the job's result


class Cancelled(Exception):
    """Somebody asked for the job to stop."""


class TurnOver(Exception):
    """This turn's time is used up; the next goes on from the cursor."""


class Work:
    """A claimed job in the hands of its handler."""

    def __init__(self, claim: Claim, job: Job, until: float) -> None:
        self.claim = claim
        self.team = claim.team
        self.job = job
        self.cursor: dict[str, Any] = job.cursor
        self._until = until

    @property
    def by(self) -> Actor:
        """Who asked, as the actor of what the job does."""
        if self.job.person is not None:
            return audit.person(self.job.person)
        if self.job.token is not None:
            return audit.token_actor(self.job.token)
        return audit.system(self.job.get_kind_display().lower())

    @property
    def secret(self) -> dict[str, Any]:
        """The sealed arguments."""
        opened = sealing.unseal(bytes(self.job.sealed or b""), team_id=self.team.pk, purpose=actions.SEALED_ARGUMENTS)
        return json.loads(opened)

    def plan(self, total: int, doing: str) -> None:
        """Say how much there is to do, in what unit `batch` counts, and what is done now. Counts nothing yet."""
        with self._guarded():
            self.claim.rows.update(total=total, doing=doing, done=min(self.job.done, total))
        self.job.total, self.job.doing = total, doing

    @contextmanager
    def batch(self, done: int = 0, cursor: Mapping[str, Any] | None = None, doing: str | None = None) -> Iterator[None]:
        """One transaction of the work, with the fence held. Commits the progress with it.

        Change `cursor` in place inside it: it is read when the work of the batch is done. Raises `LeaseLost`
        or `Cancelled` before the batch. When the turn's time is up, raises `TurnOver` after a committed batch
        that got on, which is one that changed the cursor: so every turn gets on, however long it looks around.
        """
        before = copy.deepcopy(self.cursor)
        with self._guarded():
            yield
            self.job.done += done
            self.job.doing = self.job.doing if doing is None else doing
            self.cursor = self.cursor if cursor is None else dict(cursor)
            self.claim.rows.update(
                done=self.job.done,
                doing=self.job.doing,
                cursor=self.cursor,
                lease_until=timezone.now() + self.claim.lease,
            )
        if time.monotonic() > self._until and self.cursor != before:
            raise TurnOver

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with team_transaction(self.team):
            if leases.held(self.claim).cancel_requested_at is not None:
                raise Cancelled
            yield


def run(team: Team, job_id: uuid.UUID, handlers: Mapping[str, Handler], *, turn: float = TURN) -> str:
    """Work on a job for about `turn` seconds and return its state, or "" when it is not ours to work on.

    Safe to call at any time and twice at once.
    """
    claim = leases.claim(
        Job,
        team,
        job_id,
        lease=timedelta(seconds=settings.JOB_LEASE_SECONDS),
        max_attempts=settings.JOB_MAX_ATTEMPTS,
    )
    if claim is None:
        return ""
    try:
        with leases.kept(claim):
            job = _begin(claim)
            result = handlers[job.kind](Work(claim, job, time.monotonic() + turn))
            return _end(claim, JobStatus.DONE, result=result)
    except LeaseLost:
        logger.warning("lease lost", extra={"job": str(job_id)})
        return ""
    except Cancelled:
        return _end_quietly(claim, JobStatus.CANCELLED)
    except TurnOver:
        return _again(claim, timedelta(0), attempts=0)  # it gets on: only failures in a row count
    except Refused as refusal:
        return _end_quietly(claim, JobStatus.FAILED, error=refusal.message)
    except Exception as error:
        # The message of an unexpected error can hold memory text: the log gets the stack, the row the name.
        logger.exception("job failed", extra={"job": str(job_id)})
        return _failed(claim, f"Unexpected {type(error).__name__}; see the log.")


def _begin(claim: Claim) -> Job:
    with team_transaction(claim.team):
        claim.rows.update(begun_at=Coalesce("begun_at", timezone.now()))
        job = claim.rows.select_related("person", "token__agent", "team").first()
    if job is None:
        raise LeaseLost
    return job


def _failed(claim: Claim, message: str) -> str:
    try:
        with team_transaction(claim.team):
            attempts = leases.held(claim).attempts
        if attempts < settings.JOB_MAX_ATTEMPTS:
            return _again(claim, BACKOFF[min(attempts, len(BACKOFF)) - 1], message)
    except LeaseLost:
        return ""
    return _end_quietly(claim, JobStatus.FAILED, error=message)


def _again(claim: Claim, pause: timedelta, error: str = "", **fields: int) -> str:
    with team_transaction(claim.team):
        after = timezone.now() + pause
        queued = {"status": JobStatus.QUEUED, "lease_until": None, "run_after": after, "error": error[:500]}
        freed = claim.rows.update(**queued, **fields)
        if freed and not pause:
            enqueue(actions.RUN_JOB, claim.team.pk, claim.row_id)  # a paused one is woken by the sweep
    return JobStatus.QUEUED if freed else ""


def _end(claim: Claim, status: JobStatus, result: dict[str, Any] | None = None, error: str = "") -> str:
    """Write the end under the fence. Raises `LeaseLost`."""
    with team_transaction(claim.team):
        end(leases.held(claim), status, result=result, error=error)
    return status


def _end_quietly(claim: Claim, status: JobStatus, error: str = "") -> str:
    try:
        return _end(claim, status, error=error)
    except LeaseLost:
        return ""


def end(job: Job, status: JobStatus, *, result: dict[str, Any] | None = None, error: str = "") -> None:
    """Put a locked job into its end state; sealed arguments go, and so do files that serve nobody any more."""
    now = timezone.now()
    job.status, job.error, job.finished_at, job.lease_until = status, error[:500], now, None
    job.sealed, job.cursor = None, {}
    if status == JobStatus.DONE:
        job.result, job.done, job.doing = result or {}, job.total or job.done, ""
    job.save()
    if status != JobStatus.DONE or job.kind == JobKind.IMPORT:
        actions.drop_files(job)
    before = audit.fingerprint({"job": job.pk, "status": JobStatus.RUNNING})
    after = audit.fingerprint({"job": job.pk, "status": status, "result": job.result})
    told = {"job": str(job.pk), "kind": job.kind, "status": str(status)}
    emit(job.team, WebhookEvent.JOB_FINISHED, told)
    by = audit.system("jobs")
    audit.record(
        team=job.team, by=by, verb=f"job.{status}", on=job, before=before, after=after, detail={"kind": job.kind}
    )
