"""Looking for broken invariants: nightly as a job of each team, and by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.enums import JOB_OPEN, JobKind, JobStatus
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from reflection.invariants import vector_index
from reflection.invariants.checks import CHECKS, Check
from reflection.invariants.repairs import repair
from reflection.invariants.vector_index import IndexFinding

EXAMPLES = 5
INDEX_SECONDS = 40.0  # of a night to compare a team with the vector index; the command takes its time
KEPT = timedelta(days=90)  # how long the results of former nights stay
BY = audit.system("integrity check")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: how many rows, the ids of a few, and how many were mended."""

    check: Check
    count: int
    examples: tuple[uuid.UUID, ...] = ()
    repaired: int = 0


def look(team: Team, check: Check) -> Finding:
    """Count what breaks one invariant. Call inside the team's transaction."""
    broken = check.broken(team)
    count = broken.count()
    examples = tuple(broken.order_by("pk").values_list("pk", flat=True)[:EXAMPLES]) if count else ()
    return Finding(check, count, tuple(pk[-1] if isinstance(pk, tuple) else pk for pk in examples))


def check_team(team: Team, *, mend: bool = False) -> Iterator[Finding | IndexFinding]:
    """Go through all invariants of a team, each in a transaction of its own; mend what can be."""
    for check in CHECKS:
        with team_transaction(team):
            found = look(team, check)
        if not (mend and found.count and check.is_repaired):
            yield found
            continue
        mended = _mend(team, check, found.count)
        yield Finding(check, found.count, found.examples, mended)
    yield from vector_index.look(team, mend=mend, examples=EXAMPLES)


def _mend(team: Team, check: Check, count: int) -> int:
    """Mend batch by batch; stops when a batch mends nothing or as many as were found are done."""
    mended = 0
    while mended < count:
        with team_transaction(team):
            done = repair(team=team, by=BY, check=check)
        if not done:
            break
        mended += done
    return mended


def run(work: Work) -> dict[str, Any]:
    """The nightly job: every invariant, nothing changed."""
    work.plan(len(CHECKS), "checking")
    findings: dict[str, int] = dict(work.cursor.get("findings", {}))
    for place, check in enumerate(CHECKS):
        if place < work.cursor.get("place", 0):
            continue
        with work.batch(1, doing=f"looking for {check.says}"):
            if count := look(work.team, check).count:
                findings[check.name] = count
            work.cursor.update(place=place + 1, findings=findings)
    index = list(vector_index.look(work.team, mend=False, examples=0, seconds=INDEX_SECONDS))
    findings |= {finding.check.name: finding.count for finding in index if finding.count}
    return {"checked": len(CHECKS) + len(index), "findings": sum(findings.values()), "found": findings}


def request_all() -> int:
    """Ask for a check of every team that has none waiting. Returns how many; results of long ago go."""
    asked = 0
    for team in Team.objects.filter(suspended_at=None):
        with team_transaction(team):
            checks = Job.objects.of(team).filter(kind=JobKind.INVARIANTS)
            checks.filter(created_at__lt=timezone.now() - KEPT).exclude(status__in=JOB_OPEN).delete()
            if not checks.filter(status__in=JOB_OPEN).exists():
                jobs.request(team=team, by=BY, kind=JobKind.INVARIANTS)
                asked += 1
    return asked


def last_check(team: Team) -> Job | None:
    """The newest finished check of a team: what the overview tells."""
    done = Job.objects.of(team).filter(kind=JobKind.INVARIANTS, status=JobStatus.DONE)
    return done.order_by("-created_at").first()
