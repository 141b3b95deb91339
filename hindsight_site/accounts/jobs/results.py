"""Telling people what a job was asked for and what it did: its JSON as rows of words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rows(values: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Flatten `{"deleted": {"memories": 3}}` to `[("Deleted: memories", "3")]`; lists become sentences."""
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{above}: {_words(key)}" if above else _words(key).capitalize()
        if isinstance(value, Mapping):
            found += rows(value, name)
        elif isinstance(value, list):
            found += [(name, _told(item)) for item in value[:50]]
        else:
            found.append((name, _told(value)))
    return found


def _words(key: str) -> str:
    return key.replace("_", " ")


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(key))} {_told(inner)}" for key, inner in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "—" if value in (None, "") else str(value)
