"""Whether a trace that has ended is worth looking back at, and why."""

from __future__ import annotations

from dataclasses import dataclass

from reflection.distill.calls import is_call
from reflection.enums import END_STATES, TraceStatus
from reflection.forms import TraceForm
from reflection.wishes import wishes

STEPS = 5  # more steps than this
CALLS = 3  # or more tool calls than this


@dataclass(frozen=True, slots=True)
class Trigger:
    """The decision and its reason in words a person reads."""

    reflect: bool
    reason: str


def decide(trace: TraceForm) -> Trigger:
    """Return whether to reflect on `trace`: a failure, a wish to remember, or enough that happened."""
    if trace.outcome not in END_STATES:
        return Trigger(False, f"the trace has not ended yet (it is {trace.outcome})")
    if not trace.steps:
        return Trigger(False, "the trace has no steps to learn from")
    if trace.outcome == TraceStatus.FAILED:
        return Trigger(True, "the task failed")
    if trace.remember:
        return Trigger(True, "the agent asked to remember it")
    asked = wishes(trace)
    if asked:
        return Trigger(True, f"the user asked to remember something (step {asked[0].said.step})")
    steps = len(trace.steps)
    calls = sum(is_call(step) for step in trace.steps)
    if steps > STEPS:
        return Trigger(True, f"{steps} steps, more than {STEPS}")
    if calls > CALLS:
        return Trigger(True, f"{calls} tool calls, more than {CALLS}")
    little = f"{trace.outcome} in {_count(steps, 'step')} with {_count(calls, 'tool call')}"
    return Trigger(
        False,
        f"{little}: too little to learn from (it takes more than {STEPS} steps, "
        f"more than {CALLS} tool calls, a failure or a wish to remember)",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
