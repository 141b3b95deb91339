"""How much a piece of working memory matters: goal > constraint > confirmed fact > rest. Pure."""

from __future__ import annotations

import math
from typing import Any

# The words that agents use, and their places on the scale from 0 to 1.
IMPORTANCE = {"goal": 1.0, "constraint": 0.8, "fact": 0.6, "variable": 0.3}
DEFAULT_IMPORTANCE = 0.5


def importance_of(given: Any) -> float:
    """The number of a word or a number. Raises `ValueError` for anything else."""
    if isinstance(given, str):
        if given.strip().lower() not in IMPORTANCE:
            raise ValueError(given)
        return IMPORTANCE[given.strip().lower()]
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError(given)
    if not 0 <= given <= 1:
        raise ValueError(given)
    return float(given)


def word_of(importance: float) -> str:
    """The word whose place a number has reached; `variable` below all others."""
    return next((word for word, place in IMPORTANCE.items() if importance >= place), "variable")
