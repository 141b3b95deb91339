"""What an undo puts back: exactly what the verdict changed, and nothing that came later. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COUNTS = ("alpha", "beta")  # observations of others may have come on top


class ChangedSince(Exception):
    """Somebody moved the memory after the verdict; putting it back would undo their work too."""


def state_to_put_back(before: Mapping[str, Any], after: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the governed fields as an undo should leave them.

    `before` and `after` are what the verdict found and left, `now` is what stands there. A field nobody
    touched since goes back to `before`; one that somebody changed since keeps what they gave it; of the
    belief only the verdict's own observation is taken away. Raises `ChangedSince` when the status moved.
    """
    if now["status"] != after["status"]:
        raise ChangedSince
    state = {name: before[name] if now[name] == after[name] else now[name] for name in before}
    if any(now[name] != after[name] for name in COUNTS):
        for name in COUNTS:
            state[name] = now[name] + before[name] - after[name]
        state["confidence"] = state["alpha"] / (state["alpha"] + state["beta"])
    return state
