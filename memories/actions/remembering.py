"""Writing memories: one or many, merged into what is known already."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from hindsight_site.accounts import audit, quotas
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import FieldError, Invalid
from memories import contents, indexing
from memories.actions.changing import fingerprint
from memories.confidence import Belief, prior
from memories.enums import FailureClass, ReviewMode, Status, Tier, Trust
from memories.models import Evidence, Memory, Scope
from memories.policies import LIVE
from memories.policy import LIFE
from memories.sameness import same_conclusion


@dataclass(frozen=True, slots=True)
class EvidenceDraft:
    """A quote to keep beside a memory: `quote` is the step's text from `start` to `end`."""

    trace_id: uuid.UUID
    step_id: uuid.UUID
    step_sequence: int
    role: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be remembered. `trust` is set by the calling code, never from a payload."""

    content: str
    kind: str
    tier: str = Tier.EPISODIC
    structure: dict[str, Any] = field(default_factory=dict)
    confidence: float = 0.5
    trust: str = Trust.AGENT
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    failure_class: str = FailureClass.NONE
    importance: float = 0.5
    ttl_seconds: int | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    occurred_at: datetime | None = None
    actor: str = ""
    session_id: str = ""
    sequence: int | None = None
    source: str = "api"
    distiller: str = ""
    model: str = ""
    prompt_version: str = ""
    evidence: tuple[EvidenceDraft, ...] = ()
    quarantine_reason: str = ""  # set by screening: the memory waits for a person


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory that now holds it, and whether it was there before."""

    memory: Memory
    merged: bool


def remember(*, team: Team, by: Actor, scope: Scope, draft: Draft, agent: Agent | None = None) -> Remembered:
    """Write one memory, or confirm the one that says the same already. Raises `Invalid` or `OverQuota`."""
    return remember_many(team=team, by=by, scope=scope, drafts=[draft], agent=agent)[0]


@transaction.atomic
def remember_many(
    *, team: Team, by: Actor, scope: Scope, drafts: Sequence[Draft], agent: Agent | None = None
) -> list[Remembered]:
    """Write memories in order; all or none. Embeds them in one batch."""
    prepared = [_prepare(team, scope, agent, draft) for draft in drafts]
    embeddings = indexing.embed_memories([memory for memory, _ in prepared])
    _one_writer_at_a_time(scope)
    done = []
    for (memory, draft), embedding in zip(prepared, embeddings, strict=True):
        twin = _find_twin(team, memory, embedding)
        if twin is not None:
            done.append(
                Remembered(confirm(team=team, by=by, memory=twin, agent=agent, draft=draft), merged=True)
            )
        else:
            done.append(Remembered(_store(team, by, memory, draft, embedding), merged=False))
    return done


def check_draft(draft: Draft) -> None:
    """Raise `Invalid` for what cannot be remembered, before anything is written or embedded."""
    _check_times(draft)
    contents.text_fields(draft.content)
    contents.check_structure(draft.kind, draft.structure)
    contents.check_json_size("metadata", draft.metadata)
    contents.check_json_size("environment", draft.environment)


def _prepare(team: Team, scope: Scope, agent: Agent | None, draft: Draft) -> tuple[Memory, Draft]:
    """Build the unsaved memory; everything that can be refused is refused here."""
    check_draft(draft)
    belief = prior(draft.confidence, draft.trust)
    memory = Memory(
        team=team,
        scope=scope,
        agent=agent,
        kind=draft.kind,
        tier=draft.tier,
        **contents.text_fields(draft.content),
        structure=contents.check_structure(draft.kind, draft.structure),
        tags=list(draft.tags),
        metadata=draft.metadata,
        environment=draft.environment,
        failure_class=draft.failure_class,
        trust=draft.trust,
        importance=draft.importance,
        alpha=belief.alpha,
        beta=belief.beta,
        confidence=belief.mean,
        valid_from=draft.valid_from,
        valid_until=draft.valid_until,
        expires_at=_expiry(draft),
        occurred_at=draft.occurred_at,
        actor=draft.actor,
        session_id=draft.session_id,
        sequence=draft.sequence,
        source=draft.source,
        distiller=draft.distiller,
        model=draft.model,
        prompt_version=draft.prompt_version,
    )
    memory.status = _first_status(scope, memory, draft)
    # Unverified: a passing failure is never read as a fact, a held-back one waits for a person.
    memory.needs_review = memory.status != Status.ACTIVE
    return memory, draft


def _check_times(draft: Draft) -> None:
    for name in ("valid_from", "valid_until", "occurred_at"):
        value = getattr(draft, name)
        if value is not None and timezone.is_naive(value):
            message = "needs a time zone, such as 2026-03-02T09:00:00Z."
            raise Invalid(f"{name} {message}", errors=(FieldError(name, message, "naive_time"),))
    if draft.valid_from and draft.valid_until and draft.valid_from >= draft.valid_until:
        message = "must lie after valid_from."
        raise Invalid(f"valid_until {message}", errors=(FieldError("valid_until", message),))


def _expiry(draft: Draft) -> datetime | None:
    if draft.ttl_seconds is not None:
        return timezone.now() + timedelta(seconds=draft.ttl_seconds)
    return timezone.now() + LIFE.working_ttl if draft.tier == Tier.WORKING else None


def _first_status(scope: Scope, memory: Memory, draft: Draft) -> str:
    if draft.quarantine_reason:
        return Status.QUARANTINED
    low = memory.confidence < LIFE.low_confidence
    gated = scope.review_mode == ReviewMode.GATE_ALL or (
        scope.review_mode == ReviewMode.GATE_LOW_CONFIDENCE and low
    )
    return Status.CANDIDATE if gated and memory.trust != Trust.HUMAN else Status.ACTIVE


def _one_writer_at_a_time(scope: Scope) -> None:
    """Two writers of one scope take turns, so that the same words said twice at once become one memory."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [scope.pk.int >> 65])


def live_count(team: Team) -> int:
    """How many memories of a team can be recalled by default: what its quota counts."""
    return Memory.objects.of(team).filter(status__in=LIVE).count()


def _find_twin(team: Team, memory: Memory, embedding: np.ndarray) -> Memory | None:
    """The live memory of the same kind in the same scope that says the same, if there is one."""
    if memory.tier == Tier.WORKING or memory.status == Status.QUARANTINED:
        return None
    # Locked: what is found stays as it is until this transaction ends.
    alive = Memory.objects.of(team).filter(scope=memory.scope, kind=memory.kind, status__in=LIVE)
    alive = alive.select_for_update(no_key=True)
    # Turns of a conversation are told apart by their place, however alike their words.
    alive = alive.filter(session_id=memory.session_id) if memory.sequence is not None else alive
    exact = (
        alive.filter(fingerprint=memory.fingerprint, sequence=memory.sequence).order_by("created_at").first()
    )
    if exact is not None or memory.sequence is not None:
        return exact
    near = indexing.nearest(team, [memory.scope_id], embedding, limit=5)
    close = [hit.memory_id for hit in near if hit.cosine >= LIFE.merge_cosine]
    twins = {twin.pk: twin for twin in alive.filter(pk__in=close)}
    ranked = (twins[pk] for pk in close if pk in twins)
    return next((twin for twin in ranked if same_conclusion(twin.content, memory.content)), None)


def _store(team: Team, by: Actor, memory: Memory, draft: Draft, embedding: np.ndarray) -> Memory:
    quotas.check_memory(team, lambda: live_count(team))
    memory.save(force_insert=True)
    _add_evidence(team, memory, draft.evidence)
    indexing.index(team, [memory], np.asarray([embedding]))
    audit.record(
        team=team,
        by=by,
        verb="memory.remembered",
        on=memory,
        after=fingerprint(memory),
        detail={
            "kind": memory.kind,
            "tier": memory.tier,
            "status": memory.status,
            **({"reason": draft.quarantine_reason} if draft.quarantine_reason else {}),
        },
    )
    return memory


@transaction.atomic
def confirm(*, team: Team, by: Actor, memory: Memory, draft: Draft, agent: Agent | None = None) -> Memory:
    """The same was said again: add its evidence, and one support when the source is independent.

    Independent means a trace that is not among the evidence yet. Said twice by one source it stays
    one support, so repetition never raises trust.
    """
    known = set(Evidence.objects.of(team).filter(memory=memory).values_list("trace_id", flat=True))
    fresh = {e.trace_id for e in draft.evidence} - known
    before = fingerprint(memory)
    _add_evidence(team, memory, draft.evidence)
    values: dict[str, Any] = {"updated_at": timezone.now()}
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
    return memory


def _add_evidence(team: Team, memory: Memory, drafts: Sequence[EvidenceDraft]) -> None:
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
        )
        for e in drafts
    ]
    Evidence.objects.bulk_create(rows, ignore_conflicts=True)
