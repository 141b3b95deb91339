"""Keeping results small enough for a model's window: long texts and long lists give way, ids stay. Pure."""

from __future__ import annotations

import json
from typing import Any

TEXTS = (4_000, 1_000, 300, 120)  # characters: what a text is shortened to, step by step
LISTS = (200, 50, 10, 3)  # items: what a list is shortened to after that


def size_of(value: Any) -> int:
    """The size of a value as JSON in UTF-8, in bytes."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode())


def fit(value: dict[str, Any], limit: int) -> tuple[dict[str, Any], bool]:
    """Return `value` in at most about `limit` bytes, and whether anything was shortened to get there.

    A shortened text ends with "…". Ids, states and numbers are shorter than any step, so they stay.
    """
    if size_of(value) <= limit:
        return value, False
    smaller: Any = value
    for longest in TEXTS:
        smaller = _shortened(smaller, longest, None)
        if size_of(smaller) <= limit:
            return smaller, True
    for most in LISTS:
        smaller = _shortened(smaller, TEXTS[-1], most)
        if size_of(smaller) <= limit:
            break
    return smaller, True


def _shortened(value: Any, longest: int, most: int | None) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[: longest - 1] + "…"
    if isinstance(value, list | tuple):
        return [_shortened(item, longest, most) for item in (value if most is None else value[:most])]
    if isinstance(value, dict):
        return {name: _shortened(part, longest, most) for name, part in value.items()}
    return value


def cut(text: str, limit: int) -> tuple[str, bool]:
    """Return the beginning of `text` in at most `limit` bytes of UTF-8, and whether that is not all."""
    raw = text.encode()
    if len(raw) <= limit:
        return text, False
    return raw[:limit].decode("utf-8", "ignore"), True
