"""Which of many drafts are certainly new: told for all at once, so that most of a batch is written in one go.

One by one, every memory asks for its twin and its neighbours; against 10,000 memories that takes three times
as long as embedding it. Certainly new is what shares its words with nothing and comes close to nothing, in
the scope and among the earlier ones of the batch. Everything else is left to be looked at by itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np

from hindsight_site.accounts.models import Team
from memories.actions.conflicts import LEAST_COSINE, NEIGHBOURS
from memories.embeddings import get_embedder
from memories.enums import Status, Tier
from memories.models import Memory, Scope
from memories.policies import LIVE
from memories.policy import Life
from memories.search import vectors
from memories.search.vectors import VectorHit

FEWEST = 8  # drafts in a batch; for fewer the look at the whole scope does not pay
MOST_COMPARED = 20_000  # memories in the scope; their vectors are held in memory, 40 MB

Neighbours = list[VectorHit]


def newcomers(
    team: Team, scope: Scope, memories: Sequence[Memory], embeddings: np.ndarray, life: Life
) -> list[Neighbours | None]:
    """Return for each memory its live neighbours when it is certainly new, else None."""
    if len(memories) < FEWEST:
        return [None] * len(memories)
    compared = [_is_compared(memory) for memory in memories]
    ids: list[uuid.UUID] = []
    stored = np.zeros((0, embeddings.shape[1]), dtype=np.float32)
    if any(compared):
        held = vectors.all_of(team.pk, scope.pk, get_embedder().model_id, [str(s) for s in LIVE], MOST_COMPARED)
        if held is None:
            return [None] * len(memories)
        ids, stored = held
    known = _known_words(team, scope, memories)
    everyone = [*ids, *(memory.pk for memory in memories)]
    stored = stored if len(stored) else np.zeros((0, embeddings.shape[1]), dtype=np.float32)
    cosines = np.hstack([embeddings @ stored.T, embeddings @ embeddings.T])
    found: list[Neighbours | None] = []
    for place, memory in enumerate(memories):
        words = (memory.kind, memory.fingerprint)
        row = cosines[place, : len(ids) + place].copy()
        row[len(ids) :][[not other for other in compared[:place]]] = -1.0
        near = _nearest(row, everyone) if compared[place] else []
        is_new = words not in known and (not near or near[0].cosine < life.merge_cosine)
        found.append(near if is_new else None)
        known.add(words)
    return found


def _is_compared(memory: Memory) -> bool:
    """Turns, working memory and what is held back stand by themselves."""
    return memory.tier != Tier.WORKING and memory.status != Status.QUARANTINED and memory.sequence is None


def _nearest(cosines: np.ndarray, ids: Sequence[uuid.UUID]) -> Neighbours:
    """The closest few, best first; what is too far to matter is left out."""
    close = np.flatnonzero(cosines >= LEAST_COSINE)
    best = close[np.argsort(-cosines[close])][:NEIGHBOURS]
    return [VectorHit(ids[place], float(cosines[place])) for place in best]


def _known_words(team: Team, scope: Scope, memories: Sequence[Memory]) -> set[tuple[str, str]]:
    """Kind and fingerprint of what the scope holds in the same words, live, held back or refused."""
    rows = Memory.objects.of(team).filter(
        scope=scope,
        fingerprint__in={memory.fingerprint for memory in memories},
        status__in=(*LIVE, Status.QUARANTINED, Status.REJECTED),
    )
    return set(rows.values_list("kind", "fingerprint"))
