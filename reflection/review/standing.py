"""What the opinions on one item amount to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reflection.enums import Decision, ItemState


@dataclass(frozen=True, slots=True)
class Said:
    """One person's opinion. Two edits say the same when they write the same words."""

    decision: str  # enums.Decision, never "cannot tell"
    content: str = ""  # of an edit


def stand(opinions: Sequence[Said], quorum: int) -> tuple[str, str]:
    """Return (enums.ItemState, outcome) of an item with these opinions; the outcome is empty until there is one.

    It waits until `quorum` people have judged it. If they agree it is decided so, else somebody has to settle
    it. Whoever flags it as sensitive is not waited for: that hides the memory at once.
    """
    flagged = any(one.decision == Decision.SENSITIVE for one in opinions)
    if not opinions or (len(opinions) < quorum and not flagged):
        return ItemState.PENDING, ""
    if len(set(opinions)) > 1:
        return ItemState.CONFLICTED, ""
    return ItemState.DECIDED, opinions[0].decision
