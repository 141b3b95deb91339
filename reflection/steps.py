"""Storing steps: masked, numbered, counted."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.db.models import Max

from hindsight_site.refusals import Conflict
from memories.safety.masking import MaskState, mask_text, mask_value
from reflection.drafts import StepDraft, step_size
from reflection.enums import StepKind
from reflection.models import Step, Trace


def mask_of(trace: Trace) -> MaskState:
    """The mask of one trace: the same value has the same placeholder in all its steps, whenever they come.

    The numbers are kept with the trace under fingerprints whose key is not in the database.
    """
    key = hmac.digest(settings.SECRET_KEY.encode(), b"mask" + trace.pk.bytes, "sha256")
    return MaskState(key=key, numbers=trace.mask_numbers)


def digest_of(trace: Trace) -> str:
    """Return what tells that two traces of a team say the same: a keyed SHA-256 of task and steps as stored.

    Times, session ids, the outcome and unknown keys are no part of it. The key is not in the database, so
    that nobody can try out there what an erased trace said.
    """
    key = hmac.digest(settings.SECRET_KEY.encode(), b"trace" + trace.team_id.bytes, "sha256")
    told = hmac.new(key, json.dumps(trace.task).encode(), "sha256")
    for step in trace.steps.order_by("sequence").iterator(chunk_size=500):
        told.update(json.dumps(_said(step), sort_keys=True).encode() + b"\n")
    return told.hexdigest()


def next_number(trace: Trace) -> int:
    last = Step.objects.of(trace.team).filter(trace=trace).aggregate(last=Max("sequence"))["last"]
    return 0 if last is None else last + 1


def add_numbered(trace: Trace, numbered: list[tuple[int, StepDraft]], mask: MaskState) -> None:
    rows = [
        Step(
            team_id=trace.team_id,
            trace=trace,
            sequence=number,
            at=step.at,
            role=step.role,
            kind=step.kind,
            tool=step.tool,
            content=step.content,
            arguments=step.arguments,
            is_error=step.is_error,
            extra=step.extra,
        )
        for number, step in ((number, masked(step, mask)) for number, step in numbered)
    ]
    Step.objects.bulk_create(rows, batch_size=500)
    trace.step_count += len(rows)
    trace.tool_call_count += sum(step.kind == StepKind.TOOL_CALL for step in rows)
    trace.size_bytes += sum(step_size(step) for _, step in numbered)
    Trace.objects.of(trace.team).filter(pk=trace.pk).update(
        step_count=trace.step_count,
        tool_call_count=trace.tool_call_count,
        size_bytes=trace.size_bytes,
        mask_numbers=mask.numbers,
    )


def masked(step: StepDraft, mask: MaskState) -> StepDraft:
    """The step with personal data and secrets replaced by placeholders."""
    return replace(
        step,
        content=mask_text(step.content, mask),
        tool=mask_text(step.tool, mask),
        arguments=mask_value(step.arguments, mask) if step.arguments else step.arguments,
        extra=mask_value(step.extra, mask) if step.extra else step.extra,
    )


def drop_repeats(trace: Trace, steps: Sequence[StepDraft], start: int, mask: MaskState) -> list[tuple[int, StepDraft]]:
    """Leave out steps that stand already; refuse other steps at a number that is taken."""
    numbers = range(start, start + len(steps))
    standing = {step.sequence: step for step in trace.steps.filter(sequence__in=numbers)}
    fresh = []
    for number, step in zip(numbers, steps, strict=True):
        if number not in standing:
            fresh.append((number, step))
        elif not _same(standing[number], masked(step, mask)):
            raise Conflict(f"Step {number} of this trace is another one already.", code="step_taken")
    return fresh


def _same(standing: Step, step: StepDraft) -> bool:
    return _said(standing) == _said(step)


def _said(step: Step | StepDraft) -> tuple[object, ...]:
    return (step.role, step.kind, step.tool, step.content, step.arguments or {})
