"""How many attacks screening finds, and how often it suspects an honest text.

Input: JSON Lines with `text`, `label` (`attack` or `benign`), `category`, `lang`, `channel`, `hard`. Traces:
JSON Lines (gzip) of objects with `steps[{role, content}]`, all honest.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from memories.safety.screening import find_signals, screen
from memories.safety.screening.model import probability
from memories.safety.screening.weights import THRESHOLD

from .fitting import Example, Model, cross_validated, fit, lighter

# Traces are many and alike; at this weight they steady the fit without drowning the labelled texts.
_TRACE_WEIGHT = 0.25
_SLICES = ("channel", "lang", "category", "hard")


def evaluate(path: Path) -> dict[str, Any]:
    """Figures of the shipped model on one labelled file.

    `recall` (share of attacks found) and `false_alarms` (share of benign texts suspected) with their counts:
    overall, per channel, language and category, and for hard texts (attacks without trigger words, benign
    ones with them).
    `notinject` and `discusses_injection` are the false alarms on those benign texts; `wrong` lists ids.
    """
    rows = _rows(path)
    verdicts = [screen(row["text"], channel=row["channel"]).suspicious for row in rows]
    return _figures(rows, verdicts)


def evaluate_cross_validated(path: Path, traces: Path | None = None) -> dict[str, Any]:
    """The same figures, each text judged by weights that were learnt without it (five folds)."""
    rows = _rows(path)
    scores = cross_validated(examples(rows), lighter(trace_examples(traces), _TRACE_WEIGHT) if traces else ())
    return _figures(rows, [probability(score) >= THRESHOLD for score in scores])


def evaluate_traces(traces: Path) -> dict[str, dict[str, float]]:
    """Per role: distinct steps, how many are suspected, and the share. All of them are honest."""
    texts: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for role, channel, text in _steps(traces):
        texts[role] += 1
        flagged[role] += screen(text, channel=channel).suspicious
    return {role: {"texts": n, "flagged": flagged[role], "share": flagged[role] / n} for role, n in texts.items()}


def fit_on(path: Path, traces: Path | None = None) -> Model:
    """Weights learnt on a labelled file and, as honest texts, on traces."""
    return fit(examples(_rows(path)) + (lighter(trace_examples(traces), _TRACE_WEIGHT) if traces else []))


def examples(rows: list[dict]) -> list[Example]:
    """The labelled rows, searched for signals."""
    return [Example(tuple(find_signals(r["text"])), r["channel"], r["label"] == "attack") for r in rows]


def trace_examples(traces: Path) -> list[Example]:
    """The distinct steps of the traces as honest examples."""
    return [Example(tuple(find_signals(text)), channel, False) for _, channel, text in _steps(traces)]


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line]


def _steps(traces: Path) -> list[tuple[str, str, str]]:
    """Role, channel and text of every distinct step."""
    found: dict[tuple[str, str, str], None] = {}
    with gzip.open(traces, "rt", encoding="utf-8") as lines:
        for line in lines:
            for step in json.loads(line)["steps"]:
                if step["content"]:
                    channel = "tool_output" if step["role"] == "tool" else "user_input"
                    found[step["role"], channel, step["content"]] = None
    return list(found)


def _figures(rows: list[dict], suspicious: list[bool]) -> dict[str, Any]:
    judged = list(zip(rows, suspicious, strict=True))
    figures: dict[str, Any] = {"all": _share(judged)}
    for key in _SLICES:
        values = sorted({str(row.get(key)) for row in rows})
        figures[key] = {value: _share([j for j in judged if str(j[0].get(key)) == value]) for value in values}
    figures["notinject"] = _share([j for j in judged if j[0]["category"].startswith("notinject")])
    figures["discusses_injection"] = _share([j for j in judged if j[0]["category"] == "discusses_injection"])
    figures["wrong"] = [row["id"] for row, flagged in judged if flagged != (row["label"] == "attack")]
    return figures


def _share(judged: list[tuple[dict, bool]]) -> dict[str, float | int | None]:
    attacks = [flagged for row, flagged in judged if row["label"] == "attack"]
    benign = [flagged for row, flagged in judged if row["label"] != "attack"]
    return {
        "attacks": len(attacks),
        "recall": sum(attacks) / len(attacks) if attacks else None,
        "benign": len(benign),
        "false_alarms": sum(benign) / len(benign) if benign else None,
    }


def table(figures: dict) -> str:
    """The figures as a small text table, without the categories."""
    lines = [f"{'texts':<28}{'attacks':>8}{'recall':>8}{'benign':>8}{'false alarms':>14}"]
    named = [("all", figures["all"])]
    for key in ("channel", "lang", "hard"):
        named += [(f"{key} {value}", row) for value, row in figures[key].items()]
    named += [("NotInject", figures["notinject"]), ("discusses injection", figures["discusses_injection"])]
    for name, row in named:
        lines.append(
            f"{name:<28}{row['attacks']:>8}{_percent(row['recall']):>8}{row['benign']:>8}"
            f"{_percent(row['false_alarms']):>14}"
        )
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
