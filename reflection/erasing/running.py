"""The job of an erasure: plan, forget, delete, cut, and prove that nothing is left.

Everything is repeated from the plan on until nothing is found: what is written meanwhile, or what an
interrupted run left, is found by the next round.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import JOB_OPEN, ChunkRole, JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import JobChunk
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions as memory_actions
from memories import vector_outbox
from memories.actions.merging import take_out
from memories.enums import Status
from memories.models import Evidence, Feedback, Memory
from reflection import actions
from reflection.erasing import columns, cutting, planning
from reflection.erasing.needles import ERASED, compiled
from reflection.erasing.planning import Plan
from reflection.erasing.targets import Target
from reflection.models import Trace

MEMORIES, TRACES, ROWS = 50, 5, 200  # a batch
ROUNDS = 4
INDEX_SECONDS = 20.0  # that the vector index is waited for; a worker goes on where it is slower
REASON = "erased on request"


def run(work: Work) -> dict[str, Any]:
    """Erase what the sealed arguments name, and return counts by table; no text."""
    secret = work.secret
    target = Target(secret["kind"], tuple(secret["values"]))
    counts = Counter(work.cursor.get("counts", {}))
    by, left = _actor(work, target), dict[str, int]()
    for _ in range(ROUNDS):
        found = _read_plan(work, target)
        _erase(work, by, target, found, counts)
        left = _left(work, target)
        if not left:
            break
    _record(work, by, target, counts, left)
    told = {"erased": dict(+counts), "found_afterwards": sum(left.values()), **({"left_in": left} if left else {})}
    waiting = vector_outbox.tell_now(work.team, seconds=INDEX_SECONDS)
    return {**told, **({"waiting_for_vector_index": waiting} if waiting else {})}


def _actor(work: Work, target: Target) -> Actor:
    """Who asked; without a name where that is what is erased, so that the audit does not write it anew."""
    named = bool(target.needles) and compiled(target.needles).search(work.by.label)
    return replace(work.by, label=ERASED) if named else work.by


def _read_plan(work: Work, target: Target) -> Plan:
    work.plan(work.job.total, "looking for it in every table")
    with team_transaction(work.team):
        found = planning.plan(work.team, target)
        receipts = planning.recalls_of(work.team, target).count()
    tables = len(cutting.cut_tables()) if target.needles else 0
    ahead = len(found.memories) + len(found.traces) + len(found.losing_evidence) + receipts + tables
    work.plan(work.job.done + ahead, "erasing")
    return found


def _erase(work: Work, by: Actor, target: Target, found: Plan, counts: Counter[str]) -> None:
    for part in planning.chunks(found.memories, MEMORIES):
        with work.batch(len(part), doing="forgetting memories"):
            counts["memories"] += _forget(work, by, part)
            work.cursor["counts"] = dict(counts)
    for part in planning.chunks(found.losing_evidence, MEMORIES):
        with work.batch(len(part), doing="taking evidence out of memories that stay"):
            counts["quotes"] += _take_evidence(work, by, part, found.traces)
            work.cursor["counts"] = dict(counts)
    for part in planning.chunks(found.traces, TRACES):
        with work.batch(len(part), doing="deleting traces"):
            for trace in Trace.objects.of(work.team).filter(pk__in=part):
                actions.delete_trace(team=work.team, by=by, trace=trace)
                counts["traces"] += 1
            work.cursor["counts"] = dict(counts)
    _take_out_merges(work, target, counts)
    _take_off_session(work, target, counts)
    _empty_receipts(work, target, counts)
    if target.needles:
        _cut(work, target, counts)
    with work.batch(doing="deleting exports that may hold it"):
        for job in Job.objects.of(work.team).filter(kind=JobKind.EXPORT, status__in=JOB_OPEN):
            jobs.cancel(team=work.team, by=by, job=job)  # it may have written it already
        exports = JobChunk.objects.of(work.team).filter(role=ChunkRole.OUTPUT)
        counts["export_files"] += exports.values("job").distinct().count()
        exports.delete()
        work.cursor["counts"] = dict(counts)


def _forget(work: Work, by: Actor, ids: list[uuid.UUID]) -> int:
    memories = Memory.objects.of(work.team).filter(pk__in=ids).exclude(status=Status.FORGOTTEN)
    by_id = memories.in_bulk()
    for pk in (pk for pk in ids if pk in by_id):
        memory_actions.forget(team=work.team, by=by, memory=by_id[pk], reason=REASON)
    return len(by_id)


def _take_evidence(work: Work, by: Actor, ids: list[uuid.UUID], traces: tuple[uuid.UUID, ...]) -> int:
    """Memories that rest on other traces too lose these quotes, and the support that came with them."""
    quotes = Evidence.objects.of(work.team).filter(memory__in=ids, trace_id__in=traces)
    return sum(
        memory_actions.drop_evidence(
            team=work.team, by=by, memory=memory, evidence=quotes.filter(memory=memory), reason=REASON
        )
        for memory in Memory.objects.of(work.team).filter(pk__in=ids).order_by("pk")
    )


def _take_out_merges(work: Work, target: Target, counts: Counter[str]) -> None:
    while True:
        with work.batch(doing="taking out what was merged"):
            merges = list(planning.merges_of(work.team, target).order_by("pk")[:MEMORIES])
            for merge in merges:
                take_out(work.team, merge)
            counts["merges"] += len(merges)
            work.cursor["counts"] = dict(counts)
        if len(merges) < MEMORIES:
            return


def _take_off_session(work: Work, target: Target, counts: Counter[str]) -> None:
    """Memories of the session that others stand behind too stay, and are no session's any more."""
    while True:
        with work.batch(doing="taking the session off memories that stay"):
            ids = list(planning.named_by(work.team, target).order_by("pk").values_list("pk", flat=True)[:ROWS])
            Memory.objects.of(work.team).filter(pk__in=ids).update(session_id="", sequence=None)
            counts["memories_taken_off"] += len(ids)
            work.cursor["counts"] = dict(counts)
        if len(ids) < ROWS:
            return


def _empty_receipts(work: Work, target: Target, counts: Counter[str]) -> None:
    """What the agent or the session asked, and what it noted. The rows stay: counters are made of them."""
    while True:
        with work.batch(doing="emptying receipts"):
            counts["stored_answers"] += planning.answers_of(work.team, target).delete()[0]
            ids = list(planning.recalls_of(work.team, target).values_list("pk", flat=True)[:ROWS])
            planning.recalls_of(work.team, target).filter(pk__in=ids).update(query="", session_id="", options={})
            Feedback.objects.of(work.team).filter(recall__in=ids).exclude(note="").update(note="")
            counts["receipts"] += len(ids)
            work.job.done += len(ids)
            work.cursor["counts"] = dict(counts)
        if len(ids) < ROWS:
            return


def _cut(work: Work, target: Target, counts: Counter[str]) -> None:
    for model in cutting.cut_tables():
        name, after = str(model._meta.verbose_name_plural), None
        while True:
            with work.batch(doing=f"looking through {name}"):
                ids = cutting.cut(model, work.team, target.needles, ROWS, after)
                if ids:
                    counts[name.replace(" ", "_") + "_cut"] += len(ids)
                work.job.done += len(ids) < ROWS
                work.cursor["counts"] = dict(counts)
            if len(ids) < ROWS:
                break
            after = ids[-1]


def _left(work: Work, target: Target) -> dict[str, int]:
    """What is still found: a text by a search over every table, what has an id by its id."""
    with team_transaction(work.team):
        found = planning.plan(work.team, target)
        left = {"memories": len(found.memories), "traces": len(found.traces), **planning.hanging(work.team, target)}
        if target.needles:
            left |= columns.where_found(work.team, target.needles)
    return {name: count for name, count in left.items() if count}


def _record(work: Work, by: Actor, target: Target, counts: Counter[str], left: dict[str, int]) -> None:
    detail = {
        "target": target.kind,
        "fingerprint": target.fingerprint,
        **+counts,
        "found_afterwards": sum(left.values()),
    }
    with team_transaction(work.team):
        after = audit.fingerprint(detail)
        audit.record(team=work.team, by=by, verb="data.erased", on=work.job, after=after, detail=detail)
