"""How good the rules distiller is on real agent traces.

Input: the rows of `agent_traces.jsonl.gz` (see `evaluation.agent_traces`). Figures:

- `blame`: on failed multi-agent runs whose decisive mistake was annotated by people, how often the step
  that the episode names stands within one step of it; beside what a step picked at random and the best
  fixed choice (always the first, second, … or last step) would reach on the same runs.
- `wrong_changes`: on failed runs with gold actions, how often the named step is one of the changes that
  the gold actions do not hold; beside a tool call picked at random.
- `named`: the share of failed runs whose episode names a failing step.
- `lessons`: lessons per run by source, and how many the gates refuse.
- `classes`: recall and false alarms of telling a passing failure, on `failure_labels`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memories.enums import FailureClass, Kind
from reflection.admission import Refused, admit
from reflection.distill.blame import Blame, blame
from reflection.distill.calls import changes_state
from reflection.distill.failures import classify
from reflection.distill.pairs import find_pairs
from reflection.distill.rules import distil
from reflection.evaluation.agent_traces import FILE_NAME, load, source, to_trace_form
from reflection.evaluation.failure_labels import HELD_OUT, LABELLED
from reflection.prepare import prepare

NEAR = 1  # steps between the named step and the annotated one that still count
_PLACES = (*range(8), -1, -2, -3)  # fixed choices that blame is measured against


def evaluate(path: Path) -> dict[str, object]:
    """Figures on the traces in `path`, the file or the folder that holds it; shares are 0..1."""
    rows = load(path / FILE_NAME if path.is_dir() else path)
    return {
        "blame": {group: measure_blame(found) for group, found in _annotated(rows).items()},
        "wrong_changes": measure_wrong_changes(rows),
        "named": measure_named(rows),
        "lessons": measure_lessons(rows),
        "classes": measure_classes(),
    }


def measure_blame(rows: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """How often the named step is near the annotated mistake, beside chance and the best fixed place."""
    hits = 0
    chance = 0.0
    fixed: Counter[int] = Counter()
    grounds: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        mistake = int(row["annotation"]["mistake_step"])
        near = [abs(step["i"] - mistake) <= NEAR for step in row["steps"]]
        named = _blame(row)
        hit = named is not None and near[named.step.sequence]
        hits += hit
        chance += sum(near) / len(near)
        fixed.update(place for place in _PLACES if -len(near) <= place < len(near) and near[place])
        grounds[named.ground if named else "none"][hit] += 1
    place, best = fixed.most_common(1)[0] if fixed else (0, 0)
    return {
        "runs": len(rows),
        "within_one": _share(hits, len(rows)),
        "chance": _share(chance, len(rows)),
        "best_fixed_place": {"place": place, "within_one": _share(best, len(rows))},
        "by_ground": {ground: {"hits": seen[True], "runs": seen.total()} for ground, seen in grounds.items()},
    }


def measure_wrong_changes(rows: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """How often the named step is a change that the gold actions do not hold."""
    runs = hits = 0
    chance = 0.0
    for row in rows:
        wrong = _wrong_changes(row)
        if row["success"] or not wrong:
            continue
        named = _blame(row)
        calls = [step["i"] for step in row["steps"] if step["role"] == "assistant" and step["tool"]]
        runs += 1
        hits += named is not None and row["steps"][named.step.sequence]["i"] in wrong
        chance += len(wrong) / len(calls)
    return {"runs": runs, "named_a_wrong_change": _share(hits, runs), "chance": _share(chance, runs)}


def measure_named(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, object]]:
    """The share of failed runs, by source, whose episode names a failing step."""
    seen: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        if not row["success"]:
            told = [c for c in distil(to_trace_form(row)).candidates if c.kind == Kind.TASK]
            seen[source(row)][bool(told and told[0].structure.get("failure_steps"))] += 1
    return {name: {"failed": c.total(), "named": _share(c[True], c.total())} for name, c in seen.items()}


def measure_lessons(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, object]]:
    """Lessons per run by source, different wordings among them, and what the gates refuse."""
    runs: Counter[str] = Counter()
    lessons: dict[str, list[str]] = defaultdict(list)
    refused: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        name = source(row)
        runs[name] += 1
        prepared = prepare(to_trace_form(row))
        for candidate in distil(prepared.trace).candidates:
            verdict = admit(candidate, prepared.original)
            if isinstance(verdict, Refused):
                refused[name][verdict.reason] += 1
            elif candidate.kind == Kind.EXPERIENCE:
                lessons[name].append(candidate.content)
    return {
        name: {
            "runs": count,
            "lessons": len(lessons[name]),
            "per_run": _share(len(lessons[name]), count),
            "different": len(set(lessons[name])),
            "refused": dict(refused[name]),
        }
        for name, count in runs.items()
    }


def measure_classes() -> dict[str, dict[str, object]]:
    """Figures of `classify` on the messages that were in view and on those that were held out."""
    return {"in_view": _classes(LABELLED), "held_out": _classes(HELD_OUT)}


def _classes(labelled: Sequence[tuple[str, FailureClass]]) -> dict[str, object]:
    """Recall and false alarms of `transient`, and the share of messages whose class is right."""
    verdicts = [(label, classify(message)) for message, label in labelled]
    passing = [verdict for label, verdict in verdicts if label == FailureClass.TRANSIENT]
    lasting = [verdict for label, verdict in verdicts if label != FailureClass.TRANSIENT]
    return {
        "messages": len(verdicts),
        "transient_recall": _share(passing.count(FailureClass.TRANSIENT), len(passing)),
        "transient_false_alarms": _share(lasting.count(FailureClass.TRANSIENT), len(lasting)),
        "all_classes": _share(sum(label == verdict for label, verdict in verdicts), len(verdicts)),
    }


def _annotated(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Runs with an annotated mistake that is among their steps, together and by the agents that ran."""
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        mistake = (row.get("annotation") or {}).get("mistake_step")
        if mistake is not None and any(step["i"] == mistake for step in row["steps"]):
            groups["all"].append(row)
            groups[row["agent"]].append(row)
    return groups


def _blame(row: Mapping[str, Any]) -> Blame | None:
    trace = to_trace_form(row)
    return blame(trace, find_pairs(trace))


def _wrong_changes(row: Mapping[str, Any]) -> list[int]:
    """Return the steps of a run that changed something otherwise than the gold actions do."""
    if not row.get("gold_actions"):
        return []
    gold = {_action(action["name"], action["kwargs"]) for action in row["gold_actions"]}
    failed = {step["i"] - 1 for step in row["steps"] if step["is_error"]}
    return [
        step["i"]
        for step in row["steps"]
        if step["role"] == "assistant"
        and step["tool"]
        and changes_state(step["tool"], step["args"] or {})
        and step["i"] not in failed
        and _action(step["tool"], step["args"]) not in gold
    ]


def _action(name: str, arguments: Mapping[str, Any] | None) -> tuple[str, str]:
    return name, json.dumps(arguments or {}, sort_keys=True, ensure_ascii=False)


def _share(part: float, whole: int) -> float:
    return round(part / whole, 3) if whole else 0.0
