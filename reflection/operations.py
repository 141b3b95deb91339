"""Carrying out what a distiller said of memories that are known already, before anything new is written.

A distiller may confirm, refine or contradict what it was shown. What a person or its own outcome stands behind it
cannot rewrite: a refinement of that is written beside it, and waits.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hindsight_site.accounts.audit import Actor
from memories import actions
from memories.actions import Draft, Remembered
from memories.actions.conflicts import contradict
from memories.enums import RelationKind, Status
from memories.models import Memory
from memories.policies import LIVE, is_trusted
from reflection.enums import Operation
from reflection.models import Reflection, ReflectionResult

NOTE = "the distiller of a later trace said so"
REFINED = "refined by a later trace"
Effect = ReflectionResult.Effect


@dataclass(frozen=True, slots=True)
class Operated:
    """A draft and what it is to do to the known memory `about`, by its id; None for what stands for itself."""

    draft: Draft
    operation: str = Operation.ADD
    about: uuid.UUID | None = None


def carry_out(*, by: Actor, reflection: Reflection, operated: Sequence[Operated]) -> list[ReflectionResult]:
    """Do what is said of known memories, then write the new ones, inside the caller's transaction.

    Returns one result for each memory touched.
    """
    effects: dict[uuid.UUID, str] = {}
    fresh: list[Draft] = []
    for item in operated:
        target = _target(reflection, item)
        if target is None:
            fresh.append(item.draft)
        else:
            memory, effect = _operate(by, reflection, item, target)
            effects.setdefault(memory.pk, effect)
    for memory, effect in _add(by, reflection, fresh):
        effects.setdefault(memory.pk, effect)
    return [
        ReflectionResult(team=reflection.team, reflection=reflection, memory_id=pk, effect=effect)
        for pk, effect in effects.items()
    ]


def _target(reflection: Reflection, item: Operated) -> Memory | None:
    """The known memory, if it is still live, in the same scope and of the same kind."""
    if item.about is None or item.operation == Operation.ADD or item.draft.quarantine_reason:
        return None
    found = Memory.objects.of(reflection.team).filter(pk=item.about, scope=reflection.scope_id, status__in=LIVE)
    return found.filter(kind=item.draft.kind).select_related("scope").first()


def _operate(by: Actor, reflection: Reflection, item: Operated, target: Memory) -> tuple[Memory, str]:
    if item.operation == Operation.CONFIRM:
        return _confirm(by, reflection, item, target)
    if item.operation == Operation.CONTRADICT:
        return _contradict(by, reflection, item, target)
    return _refine(by, reflection, item, target)


def _confirm(by: Actor, reflection: Reflection, item: Operated, target: Memory) -> tuple[Memory, str]:
    draft = replace(item.draft, content=target.content, structure=target.structure)
    confirmed = actions.confirm(team=reflection.team, by=by, memory=target, draft=draft, agent=reflection.agent)
    return confirmed, Effect.CONFIRMED


def _contradict(by: Actor, reflection: Reflection, item: Operated, target: Memory) -> tuple[Memory, str]:
    ((memory, effect),) = _add(by, reflection, [item.draft])
    contradict(team=reflection.team, by=by, memory=memory, other=target, note=NOTE)
    return memory, Effect.QUARANTINED if memory.status == Status.QUARANTINED else effect


def _refine(by: Actor, reflection: Reflection, item: Operated, target: Memory) -> tuple[Memory, str]:
    team, draft = reflection.team, item.draft
    if is_trusted(target) or target.pinned:
        ((memory, effect),) = _add(by, reflection, [replace(draft, proposed=True)])
        if memory.pk != target.pk:
            actions.relate(team=team, by=by, source=memory, target=target, kind=RelationKind.RELATES_TO, note=NOTE)
        return memory, effect
    confirmed = actions.confirm(team=team, by=by, memory=target, draft=draft, agent=reflection.agent)
    refined = actions.revise(
        team=team, by=by, memory=confirmed, content=draft.content, structure=draft.structure, reason=REFINED,
        keeps_support=True,
    )  # fmt: skip
    return refined, Effect.QUARANTINED if refined.status == Status.QUARANTINED else Effect.REFINED


def _add(by: Actor, reflection: Reflection, drafts: Sequence[Draft]) -> list[tuple[Memory, str]]:
    remembered = actions.remember_many(
        team=reflection.team, by=by, scope=reflection.scope, drafts=drafts, agent=reflection.agent
    )
    return [(done.memory, _effect(done)) for done in remembered]


def _effect(done: Remembered) -> str:
    if done.memory.status == Status.QUARANTINED:
        return Effect.QUARANTINED
    return Effect.CONFIRMED if done.merged else Effect.CREATED
