"""Small traces for the tests of reflection, built step by step."""

from __future__ import annotations

from typing import Any

from reflection.distill.rules import distil
from reflection.forms import Candidate, StepForm, TraceForm

Step = dict[str, Any]


def user(content: str) -> Step:
    return {"role": "user", "kind": "message", "content": content}


def say(content: str) -> Step:
    return {"role": "assistant", "kind": "message", "content": content}


def call(tool: str, /, **arguments: Any) -> Step:
    return {"role": "assistant", "kind": "tool_call", "tool": tool, "arguments": arguments}


def result(tool: str, content: str, *, is_error: bool = False) -> Step:
    return {"role": "tool", "kind": "tool_result", "tool": tool, "content": content, "is_error": is_error}


def trace(*steps: Step, task: str = "List the open orders", outcome: str = "succeeded", **fields: Any) -> TraceForm:
    """Return a trace of these steps, numbered from 0."""
    numbered = tuple(StepForm(sequence=place, **step) for place, step in enumerate(steps))
    return TraceForm(task=task, outcome=outcome, steps=numbered, **fields)


def lessons(form: TraceForm) -> list[Candidate]:
    """Return what the rules distiller learns from a trace."""
    return [candidate for candidate in distil(form).candidates if candidate.kind == "experience"]


def episode(form: TraceForm) -> Candidate:
    """Return the one episode that the rules distiller tells of a trace."""
    (told,) = [candidate for candidate in distil(form).candidates if candidate.kind == "task"]
    return told


def put_right(tool: str, old: dict[str, Any], error: str, new: dict[str, Any], **fields: Any) -> TraceForm:
    """Return a trace of one tool that failed with `old` and worked with `new`."""
    return trace(
        call(tool, **old),
        result(tool, error, is_error=True),
        call(tool, **new),
        result(tool, '{"ok": true}'),
        **fields,
    )


def run(*lines: tuple[str, str], **fields: Any) -> TraceForm:
    """Return a trace of shell commands with what each printed; an exit code in it makes it a failure."""
    steps = [step for command, printed in lines for step in (call("bash", command=command), result("bash", printed))]
    return trace(*steps, **fields)
