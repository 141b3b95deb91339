"""Who works on a reflection: claimed by compare-and-set, kept by a lease, guarded by a fencing token.

A worker that dies stops renewing; after the lease another may claim. The fence grows at each claim, so
a worker that was only slow cannot write over its successor.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from reflection.enums import ReflectionStatus
from reflection.models import Reflection


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to finish one reflection, as long as `fence` is the newest."""

    team: Team
    reflection_id: uuid.UUID
    fence: int


class LeaseLost(Exception):
    """Another worker has claimed the reflection meanwhile: drop what was done."""


def claim(team: Team, reflection_id: uuid.UUID) -> Claim | None:
    """Claim a reflection that is due, or whose worker stopped renewing. None: somebody else has it."""
    now = timezone.now()
    due = Q(status=ReflectionStatus.QUEUED, run_after__lte=now)
    abandoned = Q(status=ReflectionStatus.RUNNING, lease_until__lt=now)
    with team_transaction(team):
        fence = Reflection.objects.of(team).filter(pk=reflection_id).values_list("fence", flat=True).first()
        if fence is None:
            return None
        won = (
            Reflection.objects.of(team)
            .filter(
                due | abandoned, pk=reflection_id, fence=fence, attempts__lt=settings.REFLECTION_MAX_ATTEMPTS
            )
            .update(
                status=ReflectionStatus.RUNNING,
                fence=fence + 1,
                attempts=F("attempts") + 1,  # at the claim, so that a death counts
                lease_until=now + timedelta(seconds=settings.REFLECTION_LEASE_SECONDS),
                started_at=now,
            )
        )
    return Claim(team, reflection_id, fence + 1) if won else None


def held(claim: Claim) -> Reflection:
    """Lock the row for writing the result. Call inside the transaction that writes. Raises `LeaseLost`."""
    reflection = (
        Reflection.objects.of(claim.team)
        .select_for_update()
        .filter(pk=claim.reflection_id, fence=claim.fence, status=ReflectionStatus.RUNNING)
        .first()
    )
    if reflection is None:
        raise LeaseLost
    return reflection


def renew(claim: Claim) -> bool:
    """Extend the lease; False when it was lost."""
    until = timezone.now() + timedelta(seconds=settings.REFLECTION_LEASE_SECONDS)
    with team_transaction(claim.team):
        return bool(
            Reflection.objects.of(claim.team)
            .filter(pk=claim.reflection_id, fence=claim.fence, status=ReflectionStatus.RUNNING)
            .update(lease_until=until)
        )


@contextmanager
def kept(claim: Claim) -> Iterator[None]:
    """Renew the lease in the background for as long as the work inside takes."""
    done = threading.Event()

    def renew_until_done() -> None:
        while not done.wait(settings.REFLECTION_LEASE_SECONDS / 3):
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
