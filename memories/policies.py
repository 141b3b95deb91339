"""What the state allows: the one table of valid transitions, and the one function that enforces it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindsight_site.refusals import Conflict
from memories.enums import Status, Trust
from memories.models import Memory

if TYPE_CHECKING:
    from memories.search.evidence import Row

S = Status
TRANSITIONS: dict[str, frozenset[str]] = {
    S.CANDIDATE: frozenset({S.ACTIVE, S.DEMOTED, S.SUPERSEDED, S.ARCHIVED, S.QUARANTINED, S.REJECTED, S.FORGOTTEN}),
    # Back to candidate: an approval that was undone.
    S.ACTIVE: frozenset({S.CANDIDATE, S.DEMOTED, S.SUPERSEDED, S.ARCHIVED, S.QUARANTINED, S.FORGOTTEN}),
    # Not archived: what a person took out of recall is not brought back on request.
    S.DEMOTED: frozenset({S.ACTIVE, S.CANDIDATE, S.FORGOTTEN}),
    S.SUPERSEDED: frozenset({S.ACTIVE, S.CANDIDATE, S.ARCHIVED, S.FORGOTTEN}),
    S.ARCHIVED: frozenset({S.ACTIVE, S.CANDIDATE, S.DEMOTED, S.FORGOTTEN}),
    S.QUARANTINED: frozenset({S.CANDIDATE, S.ACTIVE, S.REJECTED, S.FORGOTTEN}),
    S.REJECTED: frozenset({S.QUARANTINED, S.FORGOTTEN}),
    S.FORGOTTEN: frozenset(),
}

LIVE = (S.CANDIDATE, S.ACTIVE)  # what capacity counts and new memories are compared with
SEARCHED = (S.CANDIDATE, S.ACTIVE, S.ARCHIVED, S.SUPERSEDED)  # what the search tables can be asked for


def is_trusted(memory: Memory | Row) -> bool:
    """Tell whether a person or its own outcome stands behind a memory."""
    return memory.approved_at is not None or memory.trust in (Trust.HUMAN, Trust.VERIFIED)


def can_move(memory: Memory, to: str) -> bool:
    """Tell whether `memory` may go to status `to`."""
    return to in TRANSITIONS[memory.status]


def check_move(memory: Memory, to: str) -> None:
    """Raise `Conflict` when `memory` may not go to status `to`."""
    if not can_move(memory, to):
        raise Conflict(
            f"A memory that is {memory.get_status_display().lower()} cannot become {Status(to).label.lower()}.",
            code="invalid_transition",
        )
