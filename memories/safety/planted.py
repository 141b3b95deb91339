"""Screening a whole memory: its text, and every string that stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .screening import screen

# What of a memory an agent may be shown; the text comes first.
SCREENED = ("content", "structure", "tags", "metadata", "environment", "actor")
MOST_CHARS = 65_536  # of one field: several times what a field may hold, so that nothing accepted is left out


def planted(fields: Mapping[str, Any]) -> str:
    """Return why one of these fields reads like a planted instruction, naming it; empty when none does.

    `fields` are some of `SCREENED`, as JSON values. Strings of one field are read together: an order that is
    cut into several tags is still an order.
    """
    for name in SCREENED:
        text = "\n".join(strings_of(fields.get(name)))[:MOST_CHARS]
        verdict = screen(text, channel="memory") if text else None
        if verdict is not None and verdict.suspicious:
            return verdict.reason if name == "content" else f"{name}: {verdict.reason}"
    return ""


def strings_of(value: Any) -> Iterator[str]:
    """Every string in a JSON value, names included, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from strings_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings_of(inner)
