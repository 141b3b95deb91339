"""Sharing: a private memory copied to a shared scope, still bound to where it came from."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, FieldError, Invalid
from memories import indexing, team_policy
from memories.actions.changing import fingerprint
from memories.actions.drafts import Draft, EvidenceDraft
from memories.actions.relating import relate
from memories.actions.remembering import remember, says_the_same
from memories.enums import Kind, RelationKind, ScopeKind, Status, Tier
from memories.gating import holds_back
from memories.models import Evidence, Memory, Merge, Relation, Scope
from memories.policies import LIVE
from memories.safety.masking import MaskState, mask_text, mask_value
from memories.safety.planted import SCREENED, planted
from memories.sources import source_of

PROMOTED = "promoted"  # the note of the edge from a copy to its origin: forgetting the origin reaches the copy
TAKEN_IN = "promoted into one that said the same"
AGENTS_NEEDED = 2


@transaction.atomic
def promote(*, team: Team, by: Actor, memory: Memory, scope: Scope, reviewed: bool = False) -> Memory:
    """Copy a private memory to a shared scope, or find the copy made before.

    `reviewed` says that the caller speaks for a reviewer; a signed-in person does. Anybody else needs the
    independent support of two agents, each heard through a token of its own. The copy is masked and screened
    again, keeps its quotes and a `distilled_from` edge to its origin, and ends in `quarantined` when its text
    looks planted.
    """
    _check_places(memory, scope)
    Memory.objects.of(team).select_for_update(no_key=True).get(pk=memory.pk)  # two callers make one copy
    may_read_all = reviewed or by.is_person
    copy = copy_in(team, memory, scope)
    if copy is not None:
        return _shown(team, memory, copy, may_read_all)
    if memory.status not in LIVE or memory.tier == Tier.WORKING:
        raise Conflict(
            "Only a live, lasting memory can be shared; restore or release this one first.", code="invalid_transition"
        )
    life = team_policy.of(team).life
    if memory.status == Status.CANDIDATE and holds_back(memory.scope, memory.confidence, life) and not by.is_person:
        raise Conflict("This memory waits for a review in its own scope first.", code="needs_reviewer")
    if not may_read_all and len(supporting_agents(team, memory)) < AGENTS_NEEDED:
        raise Conflict(
            "Sharing a memory takes a reviewer, or two agents that came to it in traces of their own. "
            "Ask a reviewer to promote it on its page.",
            code="needs_reviewer",
        )
    return _shown(team, memory, _copy(team, by, memory, scope), may_read_all)


def _check_places(memory: Memory, scope: Scope) -> None:
    if scope.kind != ScopeKind.SHARED:
        message = "must be a shared scope; an agent's private one is its own."
        raise Invalid(f"scope {message}", errors=(FieldError("scope", message),))
    if memory.scope.kind != ScopeKind.PRIVATE:
        raise Conflict("Only a private memory is promoted; this one is shared already.", code="already_shared")


def _shown(team: Team, memory: Memory, copy: Memory, may_read_all: bool) -> Memory:
    """The copy, unless it is another agent's that waits for a review: then `Conflict`, and nothing is done."""
    waits = copy.status == Status.CANDIDATE and holds_back(copy.scope, copy.confidence, team_policy.of(team).life)
    if waits and not may_read_all and copy.agent_id != memory.agent_id:
        raise Conflict(
            "What says the same in that scope waits for a review. Ask for this again when it has been judged.",
            code="needs_reviewer",
        )
    return copy


def copy_in(team: Team, memory: Memory, scope: Scope) -> Memory | None:
    """The memory of `scope` that `memory` was promoted to, if it was."""
    edges = Relation.objects.of(team).filter(
        target=memory, kind=RelationKind.DISTILLED_FROM, note__in=(PROMOTED, TAKEN_IN), source__scope=scope
    )
    edge = edges.exclude(source__status=Status.FORGOTTEN).select_related("source__scope", "source__agent").first()
    return edge.source if edge else None


def supporting_agents(team: Team, memory: Memory) -> set[uuid.UUID]:
    """The agents that came to the same conclusion, each in a trace of its own.

    A trace is an agent's own word when it came in over a token bound to that agent. What a team token sent
    in an agent's name, or a second agent's copy of the first one's trace, is nobody's.
    """
    witnesses = _witnesses(team, [memory])
    if memory.kind == Kind.TASK:
        return set(witnesses.values())
    scopes = Scope.objects.of(team).exclude(pk=memory.scope_id).values_list("pk", flat=True)
    near = indexing.nearest(team, list(scopes), indexing.embed_memories([memory])[0], limit=20)
    alike = team_policy.of(team).life.merge_cosine
    close = [hit.memory_id for hit in near if hit.cosine >= alike]
    same = Memory.objects.of(team).filter(pk__in=close, kind=memory.kind).exclude(agent_id=memory.agent_id)
    alike_too = [other for other in same.exclude(agent=None) if says_the_same(other, memory)]
    return set(_witnesses(team, [memory, *alike_too]).values())


def _witnesses(team: Team, memories: Sequence[Memory]) -> dict[str, uuid.UUID]:
    """The agent that first told each independent source of these memories in a trace of its own."""
    rows = Evidence.objects.of(team).filter(memory__in=memories, trace_id__isnull=False, removed_at=None)
    rows = rows.exclude(witness_id=None).order_by("-created_at", "-pk")
    told = rows.values_list("trace_id", "trace_digest", "witness_id")
    return {source_of(trace_id, digest): witness for trace_id, digest, witness in told}


def _copy(team: Team, by: Actor, memory: Memory, scope: Scope) -> Memory:
    draft = _draft(team, memory)
    done = remember(team=team, by=by, scope=scope, draft=draft, agent=memory.agent)
    copy = done.memory
    if done.merged:
        # What said the same there already has sources of its own: only what came from here goes with its origin.
        newest = Merge.objects.of(team).filter(memory=copy, origin_id=None, agent=memory.agent)
        came = newest.filter(trace_id=draft.evidence[0].trace_id if draft.evidence else None).order_by("-created_at")
        Merge.objects.of(team).filter(pk__in=came.values("pk")[:1]).update(origin_id=memory.pk)
    elif copy.status != Status.QUARANTINED:
        _carry_over(team, memory, copy)
    note = TAKEN_IN if done.merged else PROMOTED
    relate(team=team, by=by, source=copy, target=memory, kind=RelationKind.DISTILLED_FROM, note=note)
    audit.record(
        team=team,
        by=by,
        verb="memory.promoted",
        on=copy,
        after=fingerprint(copy),
        detail={"origin": str(memory.pk), "scope": scope.slug, "merged": done.merged},
    )
    return copy


def _draft(team: Team, memory: Memory) -> Draft:
    """The memory as a draft, masked and screened as if it came in now."""
    mask = MaskState()
    content = mask_text(memory.content, mask)
    quotes = Evidence.objects.of(team).filter(memory=memory, step_id__isnull=False, removed_at=None)
    draft = Draft(
        content=content,
        kind=memory.kind,
        tier=memory.tier,
        structure=mask_value(memory.structure, mask),
        confidence=memory.confidence,
        trust=memory.trust,
        tags=tuple(mask_text(tag, mask) for tag in memory.tags),
        metadata=mask_value(memory.metadata, mask),
        environment=mask_value(memory.environment, mask),
        failure_class=memory.failure_class,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        occurred_at=memory.occurred_at,
        actor=memory.actor,
        source=memory.source,
        distiller=memory.distiller,
        model=memory.model,
        prompt_version=memory.prompt_version,
        evidence=tuple(
            replace(EvidenceDraft.of(row), quote=mask_text(row.quote, mask)) for row in quotes.order_by("created_at")
        ),
    )
    return replace(draft, quarantine_reason=planted({name: getattr(draft, name) for name in SCREENED}))


def _carry_over(team: Team, memory: Memory, copy: Memory) -> None:
    """A copy starts with the numbers that its origin earned; its use is its own."""
    Memory.objects.of(team).filter(pk=copy.pk).update(
        alpha=memory.alpha,
        beta=memory.beta,
        confidence=memory.confidence,
        support_count=memory.support_count,
        approved_at=memory.approved_at,
        weight=memory.weight,
    )
    copy.refresh_from_db()
