"""Many memories at once, with their search rows and without an embedder: for tests of what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np

from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.tenancy import team_transaction
from memories import scopes
from memories.embeddings import get_embedder
from memories.enums import Kind, Status, Tier
from memories.models import Memory, MemoryTerms, MemoryVector, Scope
from memories.search import keywords, vectors
from memories.search.tokens import document_tokens


def lives(
    agent: Agent, rows: Iterable[dict[str, Any]], scope: Scope | None = None, embeddings: np.ndarray | None = None
) -> list[Memory]:
    """Write memories with these fields as they are, in the agent's own scope.

    `embeddings` is float32 [n, dimensions] with rows of length 1; without it all memories point the same way.
    """
    with team_transaction(agent.team):
        scope = scope or scopes.private_of(agent.team, agent)
        made = [
            Memory(**{
                "team": agent.team, "scope": scope, "agent": agent, "kind": Kind.TASK, "tier": Tier.EPISODIC,
                "status": Status.ACTIVE, "content": f"Episode {place} of locker {place * 7}.",
                "fingerprint": f"{place:064x}", **row,
            })
            for place, row in enumerate(rows)
        ]  # fmt: skip
        Memory.objects.bulk_create(made, batch_size=2000)
        _index(made, embeddings)
    return made


def _index(made: list[Memory], embeddings: np.ndarray | None, size: int = 2000) -> None:
    embedder = get_embedder()
    if embeddings is None:
        one = np.full(embedder.dimensions, embedder.dimensions**-0.5, dtype=np.float32)
        embeddings = np.broadcast_to(one, (len(made), embedder.dimensions))
    for start in range(0, len(made), size):
        batch = made[start : start + size]
        team = batch[0].team_id
        keywords.upsert(team_id=team, rows=[(m.pk, m.scope_id, m.status, document_tokens(m.content)) for m in batch])
        vectors.upsert(
            team_id=team,
            model_id=embedder.model_id,
            rows=[
                (m.pk, m.scope_id, m.status, embedding)
                for m, embedding in zip(batch, embeddings[start : start + size], strict=True)
            ],
        )


def state(agent: Agent) -> dict[str, dict[str, Any]]:
    """Every memory's numbers that a sweep may change, by id."""
    with team_transaction(agent.team):
        fields = ("status", "weight", "fades", "needs_review", "archived_by", "archived_at")
        return {str(row.pop("pk")): row for row in Memory.objects.of(agent.team).values("pk", *fields)}


def search_statuses(agent: Agent) -> list[dict[str, str]]:
    """The statuses in both search tables, by memory."""
    with team_transaction(agent.team):
        return [
            {str(pk): status for pk, status in table.objects.of(agent.team).values_list("memory_id", "status")}
            for table in (MemoryTerms, MemoryVector)
        ]


def at(moment: datetime, **fields: Any) -> dict[str, Any]:
    """The fields of a memory that came in at `moment`."""
    return {"created_at": moment, "updated_at": moment, **fields}
