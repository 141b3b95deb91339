"""Rows of the public agent-trace set (`agent_traces.jsonl.gz`) as traces of ours.

One row is `{trace_id, task, domain, steps[{i, role, tool, args, content, is_error, agent?}], success,
annotation, …}`. Long traces in the set leave out steps, so a step's `i` is its place in the full run
and its sequence here is its place in the row.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reflection.enums import Role, StepKind, TraceStatus
from reflection.forms import StepForm, TraceForm

FILE_NAME = "agent_traces.jsonl.gz"


def load(path: Path) -> list[dict[str, Any]]:
    """Read the rows of the set. Raises FileNotFoundError when it is not there."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def source(row: Mapping[str, Any]) -> str:
    """Return the short name of the benchmark a row comes from."""
    if row["trace_id"].startswith("whowhen-"):
        return "who&when"
    return str(row["domain"])


def to_trace_form(row: Mapping[str, Any]) -> TraceForm:
    """Return a row as a trace; the gold answers and annotations of the set are left out."""
    steps = tuple(
        StepForm(
            sequence=place,
            role=step["role"],
            kind=_kind(step),
            content=step["content"] or "",
            tool=step["tool"] or "",
            arguments=step["args"],
            is_error=bool(step["is_error"]),
        )
        for place, step in enumerate(row["steps"])
    )
    return TraceForm(
        task=row["task"],
        outcome=TraceStatus.SUCCEEDED.value if row["success"] else TraceStatus.FAILED.value,
        steps=steps,
        task_type=row["domain"],
    )


def to_payload(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as the body of `POST /api/v1/traces`."""
    trace = to_trace_form(row)
    return {
        "task": trace.task,
        "task_type": trace.task_type,
        "environment": dict(trace.environment),
        "outcome": trace.outcome,
        "steps": [_step_payload(step) for step in trace.steps],
    }


def _step_payload(step: StepForm) -> dict[str, Any]:
    payload: dict[str, Any] = {"role": step.role, "kind": step.kind, "content": step.content}
    if step.tool:
        payload["tool"] = step.tool
    if step.arguments is not None:
        payload["arguments"] = dict(step.arguments)
    if step.is_error:
        payload["is_error"] = True
    return payload


def _kind(step: Mapping[str, Any]) -> str:
    if step["role"] == Role.TOOL:
        return StepKind.TOOL_RESULT.value
    if step["role"] == Role.ASSISTANT and step["tool"]:
        return StepKind.TOOL_CALL.value
    return StepKind.THOUGHT.value if "(thought)" in (step.get("agent") or "") else StepKind.MESSAGE.value
