"""Our own small sets, kept beside this module: identifiers, and Chinese questions in other words. Pure."""

from __future__ import annotations

import json
from pathlib import Path

from .datasets import Asked, Haystack, Item

_HERE = Path(__file__).parent


def identifiers() -> Haystack:
    """Memories with codes, files and numbers among look-alikes; each question names one exactly."""
    return _pairs("identifiers", _HERE / "identifiers.json")


def paraphrases() -> Haystack:
    """60 Chinese memories, each asked for in words that hardly occur in it."""
    return _pairs("paraphrases_zh", _HERE / "paraphrases_zh.json")


def _pairs(name: str, path: Path) -> Haystack:
    pairs = json.loads(path.read_text(encoding="utf-8"))
    items = tuple(Item(key=str(i), content=content) for i, (content, _) in enumerate(pairs))
    questions = tuple(
        Asked(key=f"{name}-{i}", text=question, category=name, gold=frozenset({str(i)}))
        for i, (_, question) in enumerate(pairs)
        if question
    )
    return Haystack(name, items, questions)
