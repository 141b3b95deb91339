"""Where an engine beside PostgreSQL holds something else than PostgreSQL does, and mending it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import connection

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import vector_outbox
from memories.models import MemoryVector, VectorChange
from memories.search.engines import Engine, pgvector
from memories.search.engines.base import BATCH

MEND_SECONDS = 60.0  # of carrying over what one batch has put right


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs in one batch of `looked` vectors, by memory. `extra` are there without a row of ours."""

    looked: int
    missing: list[uuid.UUID] = field(default_factory=list)
    stale: list[uuid.UUID] = field(default_factory=list)
    extra: list[uuid.UUID] = field(default_factory=list)

    def memories(self) -> list[uuid.UUID]:
        """Return all of them, each once."""
        return sorted({*self.missing, *self.stale, *self.extra})


def total(team: Team) -> int:
    """Return how many vectors of a team there are to compare."""
    with team_transaction(team):
        return MemoryVector.objects.of(team).count()


def look(team: Team, engine: Engine) -> Iterator[Drift]:
    """Compare batch by batch; nothing is held between them. What is noted to be carried over is no drift.

    Raises `EngineError`. Call outside of a transaction.
    """
    with team_transaction(team):
        models = sorted(set(MemoryVector.objects.of(team).order_by().values_list("model_id", flat=True).distinct()))
    for model in models:
        after = uuid.UUID(int=0)
        while page := _page(team, model, after):
            yield _differing(team, engine, model, page)
            after = page[-1]
    for model in engine.models():
        # Whole first: whoever mends on the way would move the pages under the scan.
        for page in list(engine.scan(team_id=team.pk, model_id=model)):
            yield Drift(0, extra=_without_row(team, model, page))


def mend(team: Team, engine: Engine, drift: Drift) -> int:
    """Have the engine told again; returns of how many memories. Raises `EngineError`."""
    if not (memories := drift.memories()):
        return 0
    with team_transaction(team):
        vector_outbox.note(team.pk, memories, wake=False)
    vector_outbox.carry_over(team, engine, seconds=MEND_SECONDS)
    return len(memories)


def _page(team: Team, model: str, after: uuid.UUID) -> list[uuid.UUID]:
    with team_transaction(team), connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory_id FROM memories_memoryvector"
            " WHERE team_id = %s AND model_id = %s AND memory_id > %s ORDER BY memory_id LIMIT %s",
            [team.pk, model, after, BATCH],
        )
        return [memory for (memory,) in cursor.fetchall()]


def _differing(team: Team, engine: Engine, model: str, page: list[uuid.UUID]) -> Drift:
    """Looked at twice where it differs: what changes between two looks is no drift."""
    differing = _compare(team, engine, model, page)
    if differing:
        differing = _compare(team, engine, model, sorted(differing))
    missing = [memory for memory, is_there in differing.items() if not is_there]
    return Drift(len(page), missing, [memory for memory, is_there in differing.items() if is_there])


def _compare(team: Team, engine: Engine, model: str, page: list[uuid.UUID]) -> dict[uuid.UUID, bool]:
    """The memories whose stamps differ, and whether the engine has one at all."""
    held = engine.stamps(team_id=team.pk, model_id=model, memory_ids=page)
    with team_transaction(team):
        ours = pgvector.stamps(team_id=team.pk, model_id=model, memory_ids=page)
        noted = _noted(team, page)
    return {memory: memory in held for memory in ours if held.get(memory) != ours[memory] and memory not in noted}


def _without_row(team: Team, model: str, page: list[uuid.UUID]) -> list[uuid.UUID]:
    with team_transaction(team):
        ours = pgvector.stamps(team_id=team.pk, model_id=model, memory_ids=page)
        noted = _noted(team, page)
    return [memory for memory in page if memory not in ours and memory not in noted]


def _noted(team: Team, page: list[uuid.UUID]) -> set[uuid.UUID]:
    return set(VectorChange.objects.of(team).filter(memory_id__in=page).values_list("memory_id", flat=True))
