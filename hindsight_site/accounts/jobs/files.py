"""Files of jobs: in the database in sealed chunks, so that every web process and every worker has them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from hindsight_site.accounts import sealing
from hindsight_site.accounts.enums import JOB_OPEN, ChunkRole
from hindsight_site.accounts.jobs.models import Job, JobChunk
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Invalid

CHUNK = 256 * 1024  # bytes before compression
MAX_LINE = 4 * 1024 * 1024  # above the largest row of an export


def put(job: Job, role: ChunkRole, number: int, data: bytes) -> None:
    """Store one chunk; the same number again replaces it."""
    purpose = _purpose(job, role, number)
    sealed = sealing.seal(zlib.compress(data, 6), team_id=job.team_id, purpose=purpose)
    JobChunk.objects.of(job.team).update_or_create(
        team=job.team,
        job=job,
        role=role,
        number=number,
        defaults={
            "data": sealed,
            "size": len(data),
            "expires_at": timezone.now() + timedelta(hours=settings.JOB_FILE_HOURS),
        },
    )


def get(job: Job, role: ChunkRole, number: int) -> bytes | None:
    """One chunk, or None behind the last. Raises `sealing.Unreadable`."""
    row = JobChunk.objects.of(job.team).filter(job=job, role=role, number=number).first()
    if row is None:
        return None
    purpose = _purpose(job, role, number)
    return zlib.decompress(sealing.unseal(bytes(row.data), team_id=job.team_id, purpose=purpose))


def read(job: Job, role: ChunkRole) -> Iterator[bytes]:
    """Yield the chunks in order, each read in a short transaction of its own: a slow reader holds nothing."""
    number = 0
    while True:
        with team_transaction(job.team):
            data = get(job, role, number)
        if data is None:
            return
        yield data
        number += 1


def lines(job: Job, role: ChunkRole) -> Iterator[bytes]:
    """Yield the lines of a file, without their ends."""
    return lines_of(read(job, role))


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text, without their ends, whatever chunks they lie across. Pure.

    Raises `Invalid` for a line that is too long to be held.
    """
    rest = b""
    for data in chunks:
        *whole, rest = (rest + data).split(b"\n")
        yield from whole
        if len(rest) > MAX_LINE:
            raise Invalid(f"A line of the file is over the limit of {MAX_LINE:,} bytes.")
    if rest:
        yield rest


def size(job: Job, role: ChunkRole) -> int:
    """Bytes of a file; 0 when there is none (any more)."""
    found = JobChunk.objects.of(job.team).filter(job=job, role=role, expires_at__gt=timezone.now())
    return found.aggregate(sum=Sum("size"))["sum"] or 0


def purge(team: Team) -> int:
    """Delete the chunks whose time is over, but for those that a job still works on. Returns how many."""
    over = JobChunk.objects.of(team).filter(expires_at__lte=timezone.now())
    return over.exclude(job__status__in=JOB_OPEN).delete()[0]


def _purpose(job: Job, role: ChunkRole, number: int) -> str:
    return f"{job.pk} {role.value} {number}"
