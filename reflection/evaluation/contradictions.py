"""Honest lessons that nobody labelled: how often two of one domain are taken for a contradiction by mistake."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from memories.evaluation.conflicts import HELD, among, evaluate, lessons
from reflection.distill import rules
from reflection.evaluation import agent_traces


def measure(folder: Path) -> dict[str, Any]:
    """The figures of our own labelled pairs, held-out ones apart, and what is found among unlabelled lessons."""
    sources = {"ALFWorld lessons": lessons(folder), **_distilled(folder / agent_traces.FILE_NAME)}
    unlabelled = {name: _found(texts) for name, texts in sources.items() if texts}
    return {**evaluate(), "held": evaluate(HELD), "unlabelled": unlabelled}


def _found(texts: list[tuple[str, str]]) -> dict[str, Any]:
    count = len(set(texts))
    return {"texts": count, "pairs": count * (count - 1) // 2, "found": among(texts)}


def _distilled(path: Path) -> dict[str, list[tuple[str, str]]]:
    """What the rules distiller learns from the agent traces, by domain: they would share a scope."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in agent_traces.load(path) if path.exists() else ():
        candidates = rules.distil(agent_traces.to_trace_form(row)).candidates
        found[f"by rules, {agent_traces.source(row)}"] += [(one.kind, one.content) for one in candidates]
    return dict(found)
