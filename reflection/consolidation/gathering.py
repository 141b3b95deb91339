"""What one look across episodes has before it: the episodes, what they rest on, as a trace to be distilled."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from hindsight_site.accounts.models import Team
from memories.enums import Kind, Tier
from memories.models import Evidence, Memory, Scope
from memories.policies import LIVE
from memories.sources import source_of
from reflection.consolidation.patterns import Episode
from reflection.enums import Role, StepKind
from reflection.forms import StepForm, TraceForm
from reflection.models import Reflection

LOOKED_AT = (Kind.TASK, Kind.EXPERIENCE, Kind.FACT, Kind.PREFERENCE)
MOST = 200  # episodes of one look
OUTCOME = "consolidation"  # names the prompt file; such a look has no outcome of its own
QUESTION = "Look across these episodes for what repeats and would help in the next task."


@dataclass(frozen=True, slots=True)
class Gathered:
    """The episodes of one look: memories, the evidence of each, and both as the distillers take them."""

    memories: tuple[Memory, ...]
    evidence: dict[uuid.UUID, tuple[Evidence, ...]]
    episodes: tuple[Episode, ...]
    form: TraceForm

    def cited(self, numbers: Iterable[int]) -> tuple[Memory, ...]:
        """The memories behind the numbers that quotes name, each once."""
        return tuple(self.memories[number] for number in dict.fromkeys(numbers))

    def traces(self, numbers: Iterable[int]) -> frozenset[str]:
        """The independent traces that the cited episodes rest on."""
        return frozenset(trace for number in set(numbers) for trace in self.episodes[number].traces)


def recent(team: Team, scope: Scope, since: datetime) -> QuerySet[Memory]:
    """The live episodes and lessons of a scope since a time, the newest first."""
    found = Memory.objects.of(team).filter(scope=scope, status__in=LIVE, tier=Tier.EPISODIC, kind__in=LOOKED_AT)
    return found.filter(updated_at__gte=since).order_by("-updated_at", "-pk")


def gather(reflection: Reflection) -> Gathered:
    """Read what a look is about. Episodes that were put aside since it was asked for are left out."""
    team = reflection.team
    found = Memory.objects.of(team).filter(pk__in=reflection.episodes, status__in=LIVE)
    memories = tuple(found.select_related("scope").order_by("created_at", "pk")[:MOST])
    evidence = _evidence(team, memories)
    episodes = tuple(_episode(number, memory, evidence[memory.pk]) for number, memory in enumerate(memories))
    steps = tuple(_step(number, memory) for number, memory in enumerate(memories))
    task = reflection.instruction or QUESTION
    return Gathered(memories, evidence, episodes, TraceForm(task=task, outcome=OUTCOME, steps=steps))


def _evidence(team: Team, memories: Sequence[Memory]) -> dict[uuid.UUID, tuple[Evidence, ...]]:
    by_memory: dict[uuid.UUID, list[Evidence]] = defaultdict(list)
    rows = Evidence.objects.of(team).filter(memory__in=[memory.pk for memory in memories], removed_at=None)
    for row in rows.order_by("created_at", "pk"):
        by_memory[row.memory_id].append(row)
    return {memory.pk: tuple(by_memory[memory.pk]) for memory in memories}


def _episode(number: int, memory: Memory, evidence: Sequence[Evidence]) -> Episode:
    # Traces that tell the same are one: sent again, nothing has happened twice.
    traces = frozenset(source_of(row.trace_id, row.trace_digest) for row in evidence if row.trace_id)
    return Episode(number, memory.kind, memory.content, memory.structure, traces)


def _step(number: int, memory: Memory) -> StepForm:
    return StepForm(
        sequence=number,
        role=Role.ASSISTANT,
        kind=StepKind.MESSAGE,
        content=memory.content,
        at=memory.occurred_at or memory.created_at,
    )
