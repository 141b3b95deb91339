"""What an erasure would take, before anybody confirms it: counts by table and a few examples."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import models

from hindsight_site.accounts.enums import ChunkRole
from hindsight_site.accounts.models import JobChunk, Team
from memories.contents import cut
from memories.models import Memory
from reflection.erasing import cutting, planning
from reflection.erasing.columns import holding
from reflection.erasing.targets import Target
from reflection.models import Step, Trace

EXAMPLES = 5
EXAMPLE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Example:
    """One thing that would go: its kind ("memory" or "trace"), its id and its beginning."""

    kind: str
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Preview:
    """`deleted` counts the rows that go and `cut` those that stay without it, by table."""

    deleted: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.deleted or self.cut)


def preview(team: Team, target: Target) -> Preview:
    """Plan without doing anything. Call inside the team's transaction. Raises `NotFound` like `planning.plan`."""
    found = planning.plan(team, target)
    steps = Step.objects.of(team).filter(trace__in=found.traces).count() if found.traces else 0
    hanging, held = planning.hanging(team, target), _held(team, target)
    off = planning.named_by(team, target).exclude(pk__in=found.memories).count()
    deleted = {
        "memories": len(found.memories),
        "traces": len(found.traces),
        "steps": steps,
        "merges": hanging["merges"],
        "stored answers": hanging["stored answers"],
        "export files": JobChunk.objects.of(team).filter(role=ChunkRole.OUTPUT).values("job").distinct().count(),
        **{_name(model): count for model, count in held.items() if model in cutting.DELETED},
    }
    emptied = {
        "memories that lose evidence": len(found.losing_evidence),
        "memories taken off the session": off,
        "receipts": hanging["receipts"],
        **{_name(model): count for model, count in held.items() if model not in cutting.DELETED},
    }
    return Preview(_counted(deleted), _counted(emptied), _examples(team, found))


def _held(team: Team, target: Target) -> dict[type[models.Model], int]:
    """How many rows of each table that is looked through hold the text."""
    tables = [model for model in cutting.cut_tables() if model is not Memory] if target.needles else []
    return {model: holding(model, team, target.needles).count() for model in tables}


def _name(model: type[models.Model]) -> str:
    return str(model._meta.verbose_name_plural)


def _counted(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _examples(team: Team, found: planning.Plan) -> tuple[Example, ...]:
    memories = Memory.objects.of(team).filter(pk__in=found.memories[-EXAMPLES:])
    traces = Trace.objects.of(team).filter(pk__in=found.traces[:EXAMPLES])
    return (
        *(Example("memory", str(memory.pk), cut(memory.content, EXAMPLE_CHARS)) for memory in memories),
        *(Example("trace", str(trace.pk), cut(trace.task, EXAMPLE_CHARS)) for trace in traces),
    )
