"""From the rows of a trace to its normal form."""

from __future__ import annotations

from reflection.forms import StepForm, TraceForm
from reflection.models import Step, Trace


def step_form(step: Step) -> StepForm:
    """Return one step's normal form."""
    return StepForm(
        sequence=step.sequence,
        role=step.role,
        kind=step.kind,
        content=step.content,
        tool=step.tool,
        arguments=step.arguments,
        is_error=step.is_error,
        at=step.at,
    )


def trace_form(trace: Trace) -> TraceForm:
    """Return a trace's normal form, with its steps in order."""
    return TraceForm(
        task=trace.task,
        outcome=trace.status,
        steps=tuple(step_form(step) for step in trace.steps.order_by("sequence")),
        task_type=trace.task_type,
        result=trace.result,
        environment=trace.environment,
        remember=trace.remember,
    )
