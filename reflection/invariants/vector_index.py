"""The invariants between PostgreSQL and the vector index beside it, where there is one."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from hindsight_site.accounts.models import Team
from memories import vector_drift
from memories.search import engines
from memories.search.engines import EngineError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """One way in which the index can differ. All of them are mended by telling the index again."""

    name: str
    says: str
    is_repaired: bool = True


MISSING = IndexCheck("vectors_missing_from_index", "vectors that the vector index does not hold")
STALE = IndexCheck("vectors_stale_in_index", "vectors that the vector index holds as they were before")
EXTRA = IndexCheck("vectors_left_in_index", "vectors in the vector index of memories that have none any more")
UNREACHED = IndexCheck("vector_index_unreached", "vector indexes that do not answer", is_repaired=False)
INDEX_CHECKS = (MISSING, STALE, EXTRA)


@dataclass(frozen=True, slots=True)
class IndexFinding:
    """What differs in one way: of how many memories, a few of them, and of how many it was mended."""

    check: IndexCheck
    count: int
    examples: tuple[uuid.UUID, ...] = ()
    repaired: int = 0


def look(team: Team, *, mend: bool, examples: int, seconds: float = inf) -> Iterator[IndexFinding]:
    """Compare a team's vectors with the index; nothing for pgvector. Call outside of a transaction.

    After `seconds` what was looked at so far counts, and the log says so.
    """
    if not engines.is_external():
        return
    found: dict[IndexCheck, list[uuid.UUID]] = {check: [] for check in INDEX_CHECKS}
    until = time.monotonic() + seconds
    try:
        engine = engines.current()
        for drift in vector_drift.look(team, engine):
            for check, memories in ((MISSING, drift.missing), (STALE, drift.stale), (EXTRA, drift.extra)):
                found[check] += memories
            if mend:
                vector_drift.mend(team, engine, drift)
            if time.monotonic() > until:
                logger.warning("the vector index was compared in part: run check_invariants for the rest")
                break
        unreached = IndexFinding(UNREACHED, 0)
    except EngineError as error:
        logger.warning("the vector index was not compared: %s", error)
        unreached = IndexFinding(UNREACHED, 1)
    told = mend and not unreached.count
    for check, memories in found.items():
        yield IndexFinding(check, len(memories), tuple(memories[:examples]), len(memories) if told else 0)
    yield unreached
