"""Writing memories: one or many, merged into what is known already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from hindsight_site.accounts import audit, quotas
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.inserting import insert
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import FieldError, Invalid
from memories import contents, indexing, team_policy
from memories.actions.changing import fingerprint
from memories.actions.conflicts import NEIGHBOURS, claim_of, notice, suspected
from memories.actions.drafts import Draft, EvidenceDraft, Remembered
from memories.actions.merging import add_evidence, confirm
from memories.actions.newcomers import newcomers
from memories.actions.quarantining import open_case
from memories.announcing import announce
from memories.confidence import prior
from memories.contradiction import contradiction
from memories.enums import Status, Tier, Trust
from memories.gating import holds_back
from memories.models import Memory, Scope
from memories.policies import LIVE
from memories.policy import Life
from memories.safety.sessions import stored_session_id
from memories.sameness import same_conclusion
from memories.search.vectors import VectorHit

LOOKED_AT = 100  # new memories whose neighbours are read at once: 2,000 texts at most

__all__ = ["Draft", "EvidenceDraft", "Remembered", "check_draft", "live_count", "remember", "remember_many"]


def remember(*, team: Team, by: Actor, scope: Scope, draft: Draft, agent: Agent | None = None) -> Remembered:
    """Write one memory, or confirm the one that says the same already. Raises `Invalid` or `OverQuota`."""
    return remember_many(team=team, by=by, scope=scope, drafts=[draft], agent=agent)[0]


@transaction.atomic
def remember_many(
    *, team: Team, by: Actor, scope: Scope, drafts: Sequence[Draft], agent: Agent | None = None
) -> list[Remembered]:
    """Write memories in order; all or none. Embedded in one batch, and those certainly new written in one."""
    life = team_policy.of(team).life
    prepared = [prepare(team, scope, agent, draft, life) for draft in drafts]
    embeddings = indexing.embed_memories([memory for memory, _ in prepared])
    _one_writer_at_a_time(scope)
    memories = [memory for memory, _ in prepared]
    news = newcomers(team, scope, memories, embeddings, life)
    done: list[Remembered] = []
    waiting: list[_New] = []
    for (memory, draft), embedding, near in zip(prepared, embeddings, news, strict=True):
        if near is not None:
            waiting.append(_New(memory, draft, embedding, near))
            done.append(Remembered(memory, merged=False))
            continue
        _store_all(team, by, waiting)
        waiting = []
        done.append(_remember_one(team, by, agent, memory, draft, embedding, life))
    _store_all(team, by, waiting)
    return done


@dataclass(frozen=True, slots=True)
class _New:
    memory: Memory
    draft: Draft
    embedding: np.ndarray
    near: list[VectorHit]


def _remember_one(
    team: Team, by: Actor, agent: Agent | None, memory: Memory, draft: Draft, embedding: np.ndarray, life: Life
) -> Remembered:
    near = _neighbours(team, memory, embedding)
    said_before = _is_said(team, memory)
    held = _held_back_before(team, memory) if said_before else None
    twin = held or _find_twin(team, memory, near, life, said_before=said_before)
    if twin is None:
        store(team, by, memory, draft, embedding)
        notice(team=team, by=by, memory=memory, near=near)
    elif held is None:
        confirm(team=team, by=by, memory=twin, agent=agent, draft=draft)
    return Remembered(twin or memory, merged=twin is not None)


def _store_all(team: Team, by: Actor, news: Sequence[_New]) -> None:
    """Write memories that have no twin: rows, search rows and audit in one statement each."""
    if not news:
        return
    for _ in news:
        quotas.check_memory(team, lambda: live_count(team))
    memories = [new.memory for new in news]
    insert(memories)
    for new in news:
        if new.draft.evidence:
            add_evidence(team, new.memory, new.draft.evidence)
    indexing.index(team, memories, np.array([new.embedding for new in news]), are_new=True)
    audit.record_many(team=team, by=by, changes=[_remembered(new.memory, new.draft) for new in news])
    for start in range(0, len(news), LOOKED_AT):
        some = news[start : start + LOOKED_AT]
        for new, against in zip(some, suspected(team, [(new.memory, new.near) for new in some]), strict=True):
            _tell(team, by, new.memory, new.draft)
            if against:
                notice(team=team, by=by, memory=new.memory, near=against)


def check_draft(draft: Draft) -> None:
    """Raise `Invalid` for what cannot be remembered, before anything is written or embedded."""
    _check_times(draft)
    contents.text_fields(draft.content)
    contents.check_structure(draft.kind, draft.structure)
    contents.check_json_size("metadata", draft.metadata)
    contents.check_json_size("environment", draft.environment)


def prepare(team: Team, scope: Scope, agent: Agent | None, draft: Draft, life: Life) -> tuple[Memory, Draft]:
    """Build the unsaved memory; everything that can be refused is refused here."""
    check_draft(draft)
    draft = replace(draft, session_id=stored_session_id(draft.session_id))
    belief = prior(draft.confidence, draft.trust, life)
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
        support_count=max(1, len({quote.source for quote in draft.evidence})),
        alpha=belief.alpha,
        beta=belief.beta,
        confidence=belief.mean,
        valid_from=draft.valid_from,
        valid_until=draft.valid_until,
        expires_at=_expiry(draft, life),
        occurred_at=draft.occurred_at,
        actor=draft.actor,
        session_id=draft.session_id,
        sequence=draft.sequence,
        source=draft.source,
        distiller=draft.distiller,
        model=draft.model,
        prompt_version=draft.prompt_version,
    )
    memory.status = _first_status(scope, memory, draft, life)
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


def _expiry(draft: Draft, life: Life) -> datetime | None:
    if draft.ttl_seconds is not None:
        return timezone.now() + timedelta(seconds=draft.ttl_seconds)
    return timezone.now() + life.working_ttl if draft.tier == Tier.WORKING else None


def _first_status(scope: Scope, memory: Memory, draft: Draft, life: Life) -> str:
    if draft.quarantine_reason:
        return Status.QUARANTINED
    if draft.proposed:
        return Status.CANDIDATE
    gated = memory.trust != Trust.HUMAN and holds_back(scope, memory.confidence, life)
    return Status.CANDIDATE if gated else Status.ACTIVE


def _one_writer_at_a_time(scope: Scope) -> None:
    """Two writers of one scope take turns, so that the same words said twice at once become one memory."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [scope.pk.int >> 65])


def live_count(team: Team) -> int:
    """How many memories of a team can be recalled by default: what its quota counts."""
    return Memory.objects.of(team).filter(status__in=LIVE).count()


def _is_said(team: Team, memory: Memory) -> bool:
    """Whether the scope holds the same words at all. Mostly not, and then nothing is asked about them any more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM memories_memory WHERE team_id = %s AND scope_id = %s AND fingerprint = %s)",
            [team.pk, memory.scope_id, memory.fingerprint],
        )
        return bool(cursor.fetchone()[0])


def _held_back_before(team: Team, memory: Memory) -> Memory | None:
    """The same words in quarantine or refused for good: said again, they stay one case and gain nothing."""
    held = Memory.objects.of(team).filter(scope=memory.scope, kind=memory.kind, fingerprint=memory.fingerprint)
    held = held.filter(status__in=(Status.QUARANTINED, Status.REJECTED), sequence=memory.sequence)
    return held.order_by("created_at").first()


def _neighbours(team: Team, memory: Memory, embedding: np.ndarray) -> list[VectorHit]:
    """The live memories of the scope that may say the same, or the opposite; none for what stands by itself."""
    if memory.tier == Tier.WORKING or memory.status == Status.QUARANTINED or memory.sequence is not None:
        return []
    return indexing.nearest(team, [memory.scope_id], embedding, limit=NEIGHBOURS)


def _find_twin(
    team: Team, memory: Memory, near: Sequence[VectorHit], life: Life, *, said_before: bool
) -> Memory | None:
    """The live memory of the same kind in the same scope that says the same, if there is one."""
    close = [] if memory.sequence is not None else [hit.memory_id for hit in near if hit.cosine >= life.merge_cosine]
    if memory.tier == Tier.WORKING or memory.status == Status.QUARANTINED or not (said_before or close):
        return None
    # Locked: what is found stays as it is until this transaction ends.
    alive = Memory.objects.of(team).filter(scope=memory.scope, kind=memory.kind, status__in=LIVE)
    # Not into what is about to leave: it would take the new one along.
    now = timezone.now()
    alive = alive.exclude(expires_at__lte=now).exclude(valid_until__lte=now).exclude(tier=Tier.WORKING)
    alive = alive.select_for_update(no_key=True)
    # Turns of a conversation are told apart by their place, however alike their words.
    alive = alive.filter(session_id=memory.session_id) if memory.sequence is not None else alive
    same_words = alive.filter(fingerprint=memory.fingerprint, sequence=memory.sequence).order_by("created_at")
    exact = same_words.first() if said_before else None
    if exact is not None or not close:
        return exact
    twins = {twin.pk: twin for twin in alive.filter(pk__in=close)}
    ranked = (twins[pk] for pk in close if pk in twins)
    return next((twin for twin in ranked if says_the_same(twin, memory)), None)


def says_the_same(one: Memory, other: Memory) -> bool:
    """Whether two close memories may be taken for one: nothing hard keeps them apart, and they do not contradict."""
    return same_conclusion(one.content, other.content) and not contradiction(claim_of(one), claim_of(other))


def store(team: Team, by: Actor, memory: Memory, draft: Draft, embedding: np.ndarray) -> Memory:
    quotas.check_memory(team, lambda: live_count(team))
    insert([memory])
    add_evidence(team, memory, draft.evidence)
    indexing.index(team, [memory], np.asarray([embedding]), are_new=True)
    audit.record_many(team=team, by=by, changes=[_remembered(memory, draft)])
    _tell(team, by, memory, draft)
    return memory


def _remembered(memory: Memory, draft: Draft) -> audit.Change:
    reason = {"reason": draft.quarantine_reason} if draft.quarantine_reason else {}
    detail = {"kind": memory.kind, "tier": memory.tier, "status": memory.status, **reason}
    return audit.Change("memory.remembered", "memory", str(memory.pk), "", fingerprint(memory), detail)


def _tell(team: Team, by: Actor, memory: Memory, draft: Draft) -> None:
    announce(team, memory)
    if memory.status == Status.QUARANTINED:
        open_case(team=team, by=by, memory=memory, reason=draft.quarantine_reason)
