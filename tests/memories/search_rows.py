"""Makers of search rows for the tests of the two searches: memories with tokens and hand-made vectors."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import enter_team
from memories.enums import Kind, ScopeKind, Status, Tier
from memories.models import Memory, Scope
from memories.search import keywords, vectors
from memories.search.tokens import document_tokens

MODEL = "test-model@1"


def scope_of(team: Team, slug: str = "shared") -> Scope:
    """A shared scope of the team, which is at work from now on."""
    enter_team(team)
    return Scope.objects.create(team=team, slug=slug, name=slug, kind=ScopeKind.SHARED)


def store(scope: Scope, contents: Sequence[str], **fields: Any) -> list[uuid.UUID]:
    """Write memories with their tokens, active unless said otherwise; returns their ids in order."""
    given = {"kind": Kind.FACT, "tier": Tier.SEMANTIC, "status": Status.ACTIVE, "fingerprint": "f", **fields}
    memories = [Memory(id=new_id(), team=scope.team, scope=scope, content=content, **given) for content in contents]
    Memory.objects.bulk_create(memories)
    keywords.upsert(
        team_id=scope.team_id,
        rows=[(m.pk, scope.pk, m.status, document_tokens(m.content)) for m in memories],
    )
    return [memory.pk for memory in memories]


def store_vectors(scope: Scope, ids: Sequence[uuid.UUID], rows: np.ndarray, status: str = Status.ACTIVE) -> None:
    """Write one vector of `MODEL` for each memory."""
    vectors.upsert(
        team_id=scope.team_id,
        model_id=MODEL,
        rows=[(pk, scope.pk, status, row) for pk, row in zip(ids, rows, strict=True)],
    )
