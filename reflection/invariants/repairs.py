"""Mending what a check found, where what is right follows from the other rows. Nothing that somebody said is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import AuditReason, Team
from memories import indexing, vector_outbox
from memories.models import Evidence, Memory, MemoryTerms, MemoryVector, Merge, QuarantineCase, Relation, Revision
from reflection.invariants.checks import Check
from reflection.models import Trace
from reflection.review.forgetting import forget_words

BATCH = 200


@transaction.atomic
def repair(*, team: Team, by: Actor, check: Check) -> int:
    """Mend one batch of what the check finds, and say how many rows. Call until it is 0."""
    rows = list(check.broken(team).order_by("pk")[:BATCH])
    if not rows or not check.is_repaired:
        return 0
    before = audit.fingerprint({"rows": [str(row.pk) for row in rows]})
    _REPAIRS[check.name](team, rows)
    detail = {"check": check.name, "rows": len(rows)}
    after = audit.fingerprint({**detail, "at": timezone.now()})
    audit.record(team=team, by=by, verb="integrity.repaired", on=team, before=before, after=after, detail=detail)
    return len(rows)


def _ids(rows: list[Any]) -> list[Any]:
    return [row.pk for row in rows]


def _empty_evidence(team: Team, rows: list[Any]) -> None:
    Evidence.objects.of(team).filter(pk__in=_ids(rows)).update(
        quote="", step_id=None, start=0, end=0, removed_at=timezone.now()
    )


def _index(team: Team, rows: list[Any]) -> None:
    indexing.index(team, rows)


def _drop_search_rows(team: Team, rows: list[Any]) -> None:
    indexing.drop_many(team, _ids(rows))


def _drop_orphans(team: Team, rows: list[Any]) -> None:
    indexing.drop_many(team, [row.memory_id for row in rows])


def _align_search_rows(team: Team, rows: list[Any]) -> None:
    for memory in rows:
        for table in (MemoryTerms, MemoryVector):
            said = {"status": memory.status, "scope_id": memory.scope_id}
            table.objects.of(team).filter(memory_id=memory.pk).update(**said)
    vector_outbox.note(team.pk, _ids(rows))


def _empty_tombstones(team: Team, rows: list[Any]) -> None:
    ids = _ids(rows)
    reasons = AuditReason.objects.of(team).filter(object_type="memory", object_id__in=[str(ident) for ident in ids])
    reasons.exclude(verb="memory.forgotten").delete()
    Evidence.objects.of(team).filter(memory__in=ids).delete()
    Revision.objects.of(team).filter(memory__in=ids).delete()
    Merge.objects.of(team).filter(memory__in=ids).delete()
    QuarantineCase.objects.of(team).filter(memory__in=ids).delete()
    Relation.objects.of(team).filter(source__in=ids).delete()
    Relation.objects.of(team).filter(target__in=ids).delete()
    forget_words(team=team, ids=ids)
    Memory.objects.of(team).filter(pk__in=ids).update(tags=[], metadata={}, environment={}, actor="", fingerprint="")


def _count_recalls(team: Team, rows: list[Any]) -> None:
    for memory in rows:
        Memory.objects.of(team).filter(pk=memory.pk).update(access_count=memory.n)


def _count_feedback(team: Team, rows: list[Any]) -> None:
    for memory in rows:
        counts = {"reuse_count": memory.judged, "reuse_success_count": memory.succeeded}
        Memory.objects.of(team).filter(pk=memory.pk).update(**counts)


def _compute_confidence(team: Team, rows: list[Any]) -> None:
    mean = F("alpha") / (F("alpha") + F("beta"))
    Memory.objects.of(team).filter(pk__in=_ids(rows)).update(confidence=mean)


def _count_steps(team: Team, rows: list[Any]) -> None:
    for trace in rows:
        Trace.objects.of(team).filter(pk=trace.pk).update(step_count=trace.n, tool_call_count=trace.calls)


_REPAIRS: dict[str, Callable[[Team, list[Any]], None]] = {
    "evidence_without_step": _empty_evidence,
    "quotes_of_removed_evidence": _empty_evidence,
    "memories_without_search_rows": _index,
    "search_rows_of_gone_memories": _drop_search_rows,
    "search_rows_without_memory": _drop_orphans,
    "search_rows_that_differ": _align_search_rows,
    "forgotten_with_remains": _empty_tombstones,
    "uncounted_recalls": _count_recalls,
    "miscounted_feedback": _count_feedback,
    "confidence_off": _compute_confidence,
    "miscounted_steps": _count_steps,
}
