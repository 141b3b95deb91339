"""What changed between two versions of a memory beside its text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One field that became another: `name` in words, both values as text, empty where there was none."""

    name: str
    before: str
    after: str


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], tags_before: Sequence[str], tags_after: Sequence[str]
) -> list[Change]:
    """Return the fields of the structure and the tags that differ, in order of their names."""
    old, new = dict(_flat(before)), dict(_flat(after))
    names = sorted(old.keys() | new.keys())
    found = [Change(name, old.get(name, ""), new.get(name, "")) for name in names if old.get(name) != new.get(name)]
    if list(tags_before) != list(tags_after):
        found.append(Change("tags", ", ".join(tags_before), ", ".join(tags_after)))
    return found


def parts_are_older(now: tuple[str, Mapping[str, Any]], earlier: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether a text was changed while the structure beside it stayed: the two may not agree any more.

    Each version is its text and its structure. The lesson follows the text and is not compared.
    """
    text, structure = now
    beside = _without_lesson(structure)
    texts = {before for before, parts in earlier if _without_lesson(parts) == beside}
    return bool(beside and texts and text not in texts)


def _without_lesson(structure: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in structure.items() if name != "lesson"}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        words = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{words}, ")
        elif isinstance(value, str):
            yield words, value
        else:
            yield words, json.dumps(value, ensure_ascii=False)
