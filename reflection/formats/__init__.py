"""Other tools' shapes of a trace, read into our own.

Each module reads one shape, is pure, and yields `(index, step)`: which item of the payload it came from, and
a step as `reflection.api.steps` takes it. An item may become several steps (a thought, two calls) or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reflection.formats import anthropic, langchain, openai, otel

Told = Iterator[tuple[int, dict[str, Any]]]

OWN = "hindsight"
READERS: dict[str, Callable[[list[Any]], Told]] = {
    "openai": openai.read,
    "anthropic": anthropic.read,
    "langchain": langchain.read,
    "otel": otel.read,
}
FORMATS = (OWN, *READERS)
