"""What others may want to know of memories, since they may import from here and not the other way."""

from __future__ import annotations

from django.dispatch import Signal

# Sent inside the transaction that forgets them: `team`, and `ids` of the memories. Whatever quotes them goes too.
forgotten = Signal()
# Asked with `team` and `reader`; each answer holds the ids of memories that this person is to judge without knowing
# what was thought of them, with the address of the page where they judge.
to_judge_blind = Signal()
