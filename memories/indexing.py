"""Keeping the search tables in step with the memories: the same transaction, the same team."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np

from hindsight_site.accounts.models import Team
from memories import vector_outbox
from memories.embeddings import get_embedder
from memories.enums import Status
from memories.models import Memory, MemoryTerms, MemoryVector
from memories.policies import LIVE
from memories.search import keywords, vectors
from memories.search.passages import date_words, passage_text
from memories.search.tokens import document_tokens

# Words of the structure that a later task may be asked about, beside the content itself.
SEARCHED_FIELDS = ("task_goal", "tools_used", "applies_when", "subject", "object", "holder")


def searched_text(memory: Memory) -> str:
    """The text whose words find this memory: content, tags, and a few fields of its structure."""
    parts = [memory.content, *memory.tags, date_words(memory.occurred_at)]
    situation = memory.structure.get("situation") or {}
    parts += [str(situation[name]) for name in ("text", "task_type") if situation.get(name)]  # the task it came from
    for name in SEARCHED_FIELDS:
        value = memory.structure.get(name)
        words = value if isinstance(value, list) else [value]
        parts += [str(word) for word in words if word and str(word) not in memory.content]
    return "\n".join(parts)


def embed_memories(memories: Sequence[Memory]) -> np.ndarray:
    """Embed what the memories say: float32 [n, dimensions]."""
    embedder = get_embedder()
    if not memories:
        return np.zeros((0, embedder.dimensions), dtype=np.float32)
    return embedder.embed(texts_to_embed(memories), kind="passage")


def texts_to_embed(memories: Sequence[Memory]) -> list[str]:
    """Return what of each memory is embedded: what it says, after the turn before it where it is a turn."""
    before = _turns_before(memories)
    return [passage_text(memory.content, before.get(_place(memory, -1), "")) for memory in memories]


def _turns_before(memories: Sequence[Memory]) -> dict[tuple[uuid.UUID, str, int | None], str]:
    """The contents of the turns just before these, by place: from the batch itself, else stored ones."""
    turns = [memory for memory in memories if memory.session_id and memory.sequence is not None]
    known = {_place(memory): memory.content for memory in turns}
    wanted = {_place(memory, -1) for memory in turns} - known.keys()
    if wanted:
        stored = Memory.objects.of(turns[0].team).filter(
            scope__in={scope for scope, _, _ in wanted},
            session_id__in={session for _, session, _ in wanted},
            sequence__in={sequence for _, _, sequence in wanted},
            status__in=LIVE,
        )
        rows = stored.values_list("scope_id", "session_id", "sequence", "content")
        known |= {(scope, session, sequence): content for scope, session, sequence, content in rows}
    return known


def _place(memory: Memory, step: int = 0) -> tuple[uuid.UUID, str, int | None]:
    """Where a turn stands, or the one `step` away from it."""
    sequence = None if memory.sequence is None else memory.sequence + step
    return memory.scope_id, memory.session_id, sequence


def turn_after(memory: Memory) -> Memory | None:
    """The live turn whose vector was made with this one before it."""
    if not memory.session_id or memory.sequence is None:
        return None
    scope, session, sequence = _place(memory, +1)
    turns = Memory.objects.of(memory.team).filter(scope=scope, session_id=session, sequence=sequence)
    return turns.filter(status__in=LIVE).first()


def embed_query(text: str) -> np.ndarray:
    """Embed a question: float32 [dimensions]."""
    return get_embedder().embed([text], kind="query")[0]


def index(
    team: Team, memories: Sequence[Memory], embeddings: np.ndarray | None = None, *, are_new: bool = False
) -> None:
    """Write the search rows of `memories`, replacing earlier ones; new memories have none to replace."""
    if embeddings is None:
        embeddings = embed_memories(memories)
    model_id = get_embedder().model_id
    write_words, write_vectors = (keywords.insert, vectors.insert) if are_new else (keywords.upsert, vectors.upsert)
    write_words(
        team_id=team.pk,
        rows=[(m.pk, m.scope_id, m.status, document_tokens(searched_text(m))) for m in memories],
    )
    write_vectors(
        team_id=team.pk,
        model_id=model_id,
        rows=[(m.pk, m.scope_id, m.status, e) for m, e in zip(memories, embeddings, strict=True)],
    )
    vector_outbox.note(team.pk, [memory.pk for memory in memories])


def set_status(memory: Memory) -> None:
    """Carry a change of status over to the search rows; a rejected memory loses them."""
    if memory.status in {Status.REJECTED, Status.FORGOTTEN}:
        drop(memory)
        return
    for table in (MemoryTerms, MemoryVector):
        table.objects.of(memory.team).filter(memory_id=memory.pk).update(status=memory.status)
    vector_outbox.note(memory.team_id, [memory.pk])


def set_statuses(team: Team, memory_ids: Sequence[uuid.UUID], status: str) -> None:
    """Like `set_status` for many memories of a team that keep their search rows."""
    for table in (MemoryTerms, MemoryVector):
        table.objects.of(team).filter(memory_id__in=list(memory_ids)).update(status=status)
    vector_outbox.note(team.pk, memory_ids)


def drop(memory: Memory) -> None:
    """Delete the search rows of a memory."""
    for table in (MemoryTerms, MemoryVector):
        table.objects.of(memory.team).filter(memory_id=memory.pk).delete()
    vector_outbox.note(memory.team_id, [memory.pk])


def drop_many(team: Team, memory_ids: Sequence[uuid.UUID]) -> None:
    """Delete the search rows of many memories of a team."""
    for table in (MemoryTerms, MemoryVector):
        table.objects.of(team).filter(memory_id__in=list(memory_ids)).delete()
    vector_outbox.note(team.pk, memory_ids)


def nearest(team: Team, scope_ids: Sequence[uuid.UUID], embedding: np.ndarray, limit: int) -> list[vectors.VectorHit]:
    """The live memories closest to `embedding`, best first."""
    return vectors.nearest(
        team_id=team.pk,
        scope_ids=list(scope_ids),
        embedding=embedding,
        model_id=get_embedder().model_id,
        statuses=[str(status) for status in LIVE],
        limit=limit,
    )
