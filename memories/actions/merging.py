"""The same said again: taken into the memory that says it, in a way that can be taken apart again."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Agent, Team
from memories import contents, indexing
from memories.actions.changing import fingerprint
from memories.actions.drafts import Draft, EvidenceDraft
from memories.actions.settling import settle_by_traces
from memories.confidence import Belief
from memories.models import Evidence, Memory, Merge
from memories.sources import source_of

MOMENTS = ("valid_from", "valid_until", "occurred_at")
# What a draft said, as JSON. Its evidence stays a row of its own; working memory is never merged.
SAID = (
    "content", "kind", "tier", "structure", "confidence", "trust", "tags", "metadata", "environment",
    "failure_class", "actor", "session_id", "source", "distiller", "model", "prompt_version", *MOMENTS,
)  # fmt: skip


@transaction.atomic
def confirm(
    *,
    team: Team,
    by: Actor,
    memory: Memory,
    draft: Draft,
    agent: Agent | None = None,
    origin_id: uuid.UUID | None = None,
) -> Memory:
    """The same was said again: add its evidence, and one support when the source is independent.

    Independent means a trace that is not among the evidence yet, nor tells the same as one that is. Said
    twice by one source it stays one support, so repetition never raises trust. `split` takes it apart again.
    `origin_id` is the private memory that is promoted into this one.
    """
    before = fingerprint(memory)
    rows = Evidence.objects.of(team).filter(memory=memory)
    known = list(rows.values_list("trace_id", "step_id", "start", "end"))
    heard = {source_of(*row) for row in rows.values_list("trace_id", "trace_digest")}
    fresh = {e.source for e in draft.evidence} - heard
    brought = [e for e in draft.evidence if (e.trace_id, e.step_id, e.start, e.end) not in set(known)]
    add_evidence(team, memory, brought)
    now = timezone.now()
    values: dict[str, Any] = {"updated_at": now, "renewed_at": now}  # said again is a sign of life
    newest = _newest_time(memory, draft)
    if newest is not None:
        values["occurred_at"] = newest
    if fresh:
        belief = Belief(memory.alpha, memory.beta).observe(success=True)
        values |= {
            "support_count": F("support_count") + 1,
            "alpha": belief.alpha,
            "beta": belief.beta,
            "confidence": belief.mean,
        }
    Memory.objects.of(team).filter(pk=memory.pk).update(**values)
    memory.refresh_from_db()
    if newest is not None:
        indexing.index(team, [memory])  # its date is among the words that find it
    _keep_what_was_said(team, memory, draft, agent, origin_id, brought, counted=bool(fresh))
    audit.record(
        team=team,
        by=by,
        verb="memory.confirmed",
        on=memory,
        before=before,
        after=fingerprint(memory),
        detail={
            "support": memory.support_count,
            "independent": bool(fresh),
            "agent": agent.slug if agent else "",
        },
    )
    if fresh:
        settle_by_traces(team=team, memory=memory)
    return memory


def _newest_time(memory: Memory, draft: Draft) -> datetime | None:
    """When it was said last, where that is later than what the memory tells. Nobody speaks from the future."""
    if draft.occurred_at is None or memory.sequence is not None:
        return None
    said_at = min(draft.occurred_at, timezone.now())
    return said_at if said_at > (memory.occurred_at or memory.created_at) else None


def _keep_what_was_said(
    team: Team,
    memory: Memory,
    draft: Draft,
    agent: Agent | None,
    origin_id: uuid.UUID | None,
    brought: Sequence[EvidenceDraft],
    *,
    counted: bool,
) -> None:
    """Keep what a split needs. The very same words without a quote of their own are nothing to bring back."""
    words = contents.fingerprint(draft.content)
    if not brought and origin_id is None:
        taken_in = Merge.objects.of(team).filter(memory=memory, fingerprint=words)
        if words == memory.fingerprint or taken_in.exists():
            return
    Merge.objects.create(
        team=team,
        memory=memory,
        agent=agent,
        origin_id=origin_id,
        trace_id=draft.evidence[0].trace_id if draft.evidence else None,
        fingerprint=words,
        said=said_by(draft),
        quotes=[[str(e.step_id), e.start, e.end] for e in brought],
        counted=counted,
    )


def said_by(draft: Draft) -> dict[str, Any]:
    """The fields of a draft as JSON values."""
    said = {name: getattr(draft, name) for name in SAID}
    moments = {name: said[name].isoformat() if said[name] else None for name in MOMENTS}
    return {**said, **moments, "tags": list(draft.tags)}


def draft_of(merge: Merge) -> Draft:
    """The draft that was taken in, without its evidence."""
    said = {name: value for name, value in merge.said.items() if name in SAID}
    moments = {name: parse_datetime(said[name]) if said.get(name) else None for name in MOMENTS}
    return Draft(**{**said, **moments, "tags": tuple(said["tags"])})


def add_evidence(team: Team, memory: Memory, drafts: Sequence[EvidenceDraft]) -> None:
    """Keep quotes beside a memory; one that is there already stays one."""
    rows = [
        Evidence(
            team=team,
            memory=memory,
            trace_id=e.trace_id,
            step_id=e.step_id,
            step_sequence=e.step_sequence,
            role=e.role,
            start=e.start,
            end=e.end,
            quote=e.quote,
            trace_digest=e.trace_digest,
            witness_id=e.witness_id,
        )
        for e in drafts
    ]
    Evidence.objects.bulk_create(rows, ignore_conflicts=True)


def quotes_of(merge: Merge) -> list[Evidence]:
    """The rows of evidence that a merge brought and that are still there."""
    wanted = {(step, start, end) for step, start, end in merge.quotes}
    rows = Evidence.objects.of(merge.team).filter(memory=merge.memory_id, step_id__in={step for step, _, _ in wanted})
    return [row for row in rows if (str(row.step_id), row.start, row.end) in wanted]


def take_out(team: Team, merge: Merge) -> None:
    """Take back what a merge counted, and the merge itself; its evidence is the caller's to move or delete."""
    if merge.counted:
        alpha, beta = Greatest(F("alpha") - 1, 0.0), F("beta")
        Memory.objects.of(team).filter(pk=merge.memory_id, alpha__gte=1).update(
            support_count=Greatest(F("support_count") - 1, 1), alpha=alpha, confidence=alpha / (alpha + beta)
        )
    merge.delete()


def withdraw_origin(*, team: Team, by: Actor, origin: Memory) -> None:
    """A private memory is being forgotten: what was merged from it into shared ones goes too."""
    for merge in Merge.objects.of(team).filter(origin_id=origin.pk).select_related("memory"):
        memory = merge.memory
        before = fingerprint(memory)
        dropped = Evidence.objects.of(team).filter(pk__in=[row.pk for row in quotes_of(merge)]).delete()[0]
        take_out(team, merge)
        memory.refresh_from_db()
        after = audit.fingerprint({"memory": fingerprint(memory), "quotes_dropped": dropped})
        detail = {"origin": str(origin.pk), "quotes": dropped, "support": memory.support_count}
        audit.record(
            team=team, by=by, verb="memory.origin_forgotten", on=memory, before=before, after=after, detail=detail
        )
