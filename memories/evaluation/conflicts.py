"""How well contradictions are told from what merely looks like one.

Our own set beside this module: rows of kind, two texts, and whether they cannot both hold; English and Chinese.
Agent lessons of the public data, where they are there, tell how often honest memories of one domain are joined
by mistake: nobody labelled them, so every pair that is found is printed for a person to judge.
"""

from __future__ import annotations

import gzip
import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from memories.contradiction import Claim, contradiction

OWN = Path(__file__).parent / "contradictions.json"  # the rules were written beside it
HELD = Path(__file__).parent / "contradictions_held.json"  # written afterwards, and nothing was changed for it
_HAN = re.compile(r"[\u3400-\u9fff]")
MOST_SHOWN = 20


def evaluate(path: Path = OWN) -> dict[str, Any]:
    """Precision, recall and counts on a labelled file, by language and by kind; and what was judged wrongly."""
    rows = pairs(path)
    judged = [(kind, a, b, truth, contradiction(Claim(a, kind), Claim(b, kind))) for kind, a, b, truth in rows]
    slices: dict[str, list] = {"all": judged}
    for row in judged:
        slices.setdefault("zh" if _HAN.search(row[1]) else "en", []).append(row)
        slices.setdefault(row[0], []).append(row)
    wrong = [
        [a, b, "missed" if truth else f"taken for {found}"] for _, a, b, truth, found in judged if truth != bool(found)
    ]
    return {"slices": {name: _figures(part) for name, part in slices.items()}, "wrong": wrong}


def pairs(path: Path = OWN) -> list[tuple[str, str, str, bool]]:
    """Rows of kind, two texts, and whether they contradict each other."""
    return [tuple(row) for row in json.loads(path.read_text(encoding="utf-8"))]


def _figures(judged: list) -> dict[str, float | int | None]:
    hits = sum(bool(found) and truth for *_, truth, found in judged)
    found = sum(bool(found) for *_, found in judged)
    real = sum(truth for *_, truth, _ in judged)
    return {
        "pairs": len(judged),
        "contradictions": real,
        "found": found,
        "precision": hits / found if found else None,
        "recall": hits / real if real else None,
    }


def among(texts: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Every pair of (kind, text) that is taken for a contradiction, with the reason."""
    claims = [Claim(text, kind) for kind, text in dict.fromkeys(texts)]
    compared = ((a, b, contradiction(a, b)) for a, b in combinations(claims, 2))
    return [(a.content, b.content, reason) for a, b, reason in compared if reason]


def lessons(folder: Path) -> list[tuple[str, str]]:
    """The lessons of the public set, one sentence each, as they were written by agents."""
    path = folder / "reflexion_alfworld_lessons.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [("experience", str(text)) for row in rows for text in row["lessons"]]


def table(figures: dict[str, Any]) -> str:
    """The figures as a small text table, then every pair judged wrongly; held-out and unlabelled ones after it."""
    lines = [f"{'pairs':<14}{'n':>6}{'real':>6}{'found':>7}{'precision':>11}{'recall':>8}"]
    for name, row in figures["slices"].items():
        lines.append(
            f"{name:<14}{row['pairs']:>6}{row['contradictions']:>6}{row['found']:>7}"
            f"{_percent(row['precision']):>11}{_percent(row['recall']):>8}"
        )
    lines += [f"  {verdict}: {a} | {b}" for a, b, verdict in figures["wrong"]]
    if "held" in figures:
        lines += ["held out:", table(figures["held"])]
    for name, row in figures.get("unlabelled", {}).items():
        lines.append(
            f"{name}: {row['texts']} texts, {row['pairs']} pairs, {len(row['found'])} taken for contradictions"
        )
        lines += [f"  {reason}: {a} | {b}" for a, b, reason in row["found"][:MOST_SHOWN]]
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
