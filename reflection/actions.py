"""The only writers of traces, and the way to ask for a reflection. Everything is masked before it is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Agent, ApiToken, Team
from hindsight_site.queue import enqueue
from hindsight_site.refusals import Conflict, FieldError, Invalid, TooLarge
from memories import actions as memory_actions
from memories import contents, scopes
from reflection import triggers
from reflection.enums import END_STATES, REFLECTION_OPEN, ReflectionStatus, Role, StepKind, TraceStatus
from memories.safety.masking import MaskState, mask_text, mask_value
from reflection.models import Reflection, Step, Trace
from reflection.normalise import trace_form

TASK_LIMIT = 8_000
PLACEHOLDER_NUMBER = re.compile(r"(?<=[A-Z])_\d+>")
REFLECT = "reflection.tasks.reflect"


@dataclass(frozen=True, slots=True)
class StepDraft:
    """One step as it came in. `sequence` is its own number, or None for the next free one."""

    role: str
    kind: str = StepKind.MESSAGE
    content: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    is_error: bool = False
    at: datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TraceDraft:
    """A task as it came in. Without an outcome it stays open for more steps."""

    task: str
    steps: tuple[StepDraft, ...] = ()
    outcome: str = ""  # one of END_STATES, or "" while it goes on
    session_id: str = ""
    task_type: str = ""
    environment: dict[str, Any] = field(default_factory=dict)
    result: str = ""
    remember: bool = False
    callback_url: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def record_trace(
    *, team: Team, by: Actor, agent: Agent, draft: TraceDraft, token: ApiToken | None = None
) -> tuple[Trace, Reflection | None]:
    """Store a trace, masked; when it has ended, decide whether to look back and wake a worker.

    Nothing waits for the reflection. Raises `Invalid` or `TooLarge`, and then stores nothing.
    """
    mask = MaskState()
    check_steps(draft.steps)
    _check_trace(draft)
    trace = Trace(
        team=team, agent=agent, token=token, session_id=draft.session_id,
        task=mask_text(draft.task, mask), task_type=mask_text(draft.task_type, mask),
        environment=mask_value(draft.environment, mask), remember=draft.remember,
        callback_url=draft.callback_url, metadata=mask_value(draft.metadata, mask),
        extra=mask_value(draft.extra, mask),
    )
    trace.save(force_insert=True)
    _add_steps(trace, draft.steps, start=0, mask=mask)
    audit.record(team=team, by=by, verb="trace.recorded", on=trace, detail={"steps": trace.step_count})
    if not draft.outcome:
        return trace, None
    return trace, _finish(team, by, trace, draft.outcome, mask_text(draft.result, mask), token)


@transaction.atomic
def append_steps(
    *, team: Team, by: Actor, trace: Trace, steps: Sequence[StepDraft], sequence: int | None = None
) -> int:
    """Add steps to an open trace and return the number of the first.

    Without `sequence` they go to the end; parallel calls take turns and all survive. With it they go
    exactly there: sending the same steps again changes nothing, other steps at the same number are a
    `Conflict`.
    """
    check_steps(steps)
    trace = Trace.objects.of(team).select_for_update().get(pk=trace.pk)
    if trace.status != TraceStatus.OPEN:
        raise Conflict("This trace has ended; start a new one.", code="trace_ended")
    mask = _mask_of(trace)
    start = _next_number(trace) if sequence is None else sequence
    fresh = _drop_repeats(trace, steps, start, mask) if sequence is not None else list(enumerate(steps, start))
    _check_room(trace, fresh)
    _add_numbered(trace, fresh, mask)
    if fresh:
        audit.record(team=team, by=by, verb="trace.extended", on=trace, detail={"steps": len(fresh)})
    return start


@transaction.atomic
def finish_trace(
    *, team: Team, by: Actor, trace: Trace, outcome: str, result: str = "", remember: bool | None = None,
    token: ApiToken | None = None,
) -> Reflection:
    """End a trace. The same end twice gives the same reflection; another end is a `Conflict`."""
    trace = Trace.objects.of(team).select_for_update().get(pk=trace.pk)
    if trace.status == outcome:
        return Reflection.objects.of(team).filter(trace=trace).order_by("created_at").first()
    if trace.status != TraceStatus.OPEN:
        raise Conflict(f"This trace has ended already: {trace.status}.", code="trace_ended")
    if remember is not None:
        trace.remember = remember
    return _finish(team, by, trace, outcome, mask_text(result, _mask_of(trace)), token)


def _finish(
    team: Team, by: Actor, trace: Trace, outcome: str, result: str, token: ApiToken | None
) -> Reflection:
    if outcome not in END_STATES:
        message = f"must be one of: {', '.join(END_STATES)}."
        raise Invalid(f"outcome {message}", errors=(FieldError("outcome", message),))
    trace.status, trace.result, trace.ended_at = outcome, result, timezone.now()
    trace.save(update_fields=["status", "result", "ended_at", "remember"])
    audit.record(team=team, by=by, verb="trace.ended", on=trace, detail={"outcome": outcome})
    trigger = triggers.decide(trace_form(trace))
    if not trigger.reflect:
        now = timezone.now()
        return _new_reflection(
            team, trace, token, status=ReflectionStatus.SKIPPED, reason=trigger.reason, finished_at=now
        )
    return request_reflection(team=team, by=by, trace=trace, reason=trigger.reason, token=token)


@transaction.atomic
def request_reflection(
    *, team: Team, by: Actor, trace: Trace, reason: str = "asked for", token: ApiToken | None = None
) -> Reflection:
    """Queue a look back at an ended trace. One that is queued or running already is returned as it is."""
    if trace.status == TraceStatus.OPEN:
        raise Conflict("This trace is still open; end it first.", code="trace_open")
    standing = Reflection.objects.of(team).filter(trace=trace, status__in=REFLECTION_OPEN)
    if reflection := standing.first():
        return reflection
    try:
        with transaction.atomic():
            reflection = _new_reflection(team, trace, token, status=ReflectionStatus.QUEUED, reason=reason)
    except IntegrityError:  # another caller was faster; theirs is the one
        return standing.get()
    audit.record(team=team, by=by, verb="reflection.requested", on=reflection)
    enqueue(REFLECT, team.pk, reflection.pk)
    return reflection


def _new_reflection(team: Team, trace: Trace, token: ApiToken | None, **fields: Any) -> Reflection:
    return Reflection.objects.create(
        team=team, trace=trace, agent_id=trace.agent_id, token=token,
        scope=scopes.private_of(team, trace.agent), **fields,
    )


@transaction.atomic
def delete_trace(*, team: Team, by: Actor, trace: Trace) -> None:
    """Delete a trace with its steps and runs. Memories stay; their quotes from it are emptied."""
    quotes = memory_actions.clear_evidence_of_trace(team=team, trace_id=trace.pk)
    audit.record(team=team, by=by, verb="trace.deleted", on=trace, detail={"quotes_cleared": quotes})
    trace.delete()


# --- Checks ----------------------------------------------------------------------------------------


def check_steps(steps: Sequence[StepDraft]) -> None:
    """Raise `Invalid` or `TooLarge` for a step that cannot be stored, naming it."""
    if len(steps) > settings.MAX_TRACE_STEPS:
        raise TooLarge(f"steps is over the limit of {settings.MAX_TRACE_STEPS:,} steps.", code="too_many_steps")
    for index, step in enumerate(steps):
        if step.role not in Role.values:
            raise _bad(f"steps.{index}.role", f"must be one of: {', '.join(Role.values)}.")
        if step.kind not in StepKind.values:
            raise _bad(f"steps.{index}.kind", f"must be one of: {', '.join(StepKind.values)}.")
        if step.at is not None and timezone.is_naive(step.at):
            raise _bad(f"steps.{index}.at", "needs a time zone, such as 2026-03-02T09:00:00Z.", "naive_time")
        if step_size(step) > settings.MAX_STEP_BYTES:
            message = f"steps.{index} is over the limit of {settings.MAX_STEP_BYTES:,} bytes."
            raise TooLarge(message, code="step_too_large", errors=(FieldError(f"steps.{index}", message),))


def step_size(step: StepDraft) -> int:
    """The size of a step in UTF-8 bytes: content, arguments and extras."""
    size = len(step.content.encode())
    for value in (step.arguments, step.extra):
        size += len(json.dumps(value, ensure_ascii=False).encode()) if value else 0
    return size


def _check_trace(draft: TraceDraft) -> None:
    if not draft.task.strip():
        raise _bad("task", "must not be empty: say what the agent was asked to do.")
    if len(draft.task) > TASK_LIMIT:
        raise _bad("task", f"is over the limit of {TASK_LIMIT:,} characters.")
    for name in ("environment", "metadata", "extra"):
        contents.check_json_size(name, getattr(draft, name))
    size = len(draft.result.encode()) + sum(step_size(step) for step in draft.steps)
    if size > settings.MAX_TRACE_BYTES:
        raise TooLarge(f"The trace is over the limit of {settings.MAX_TRACE_BYTES:,} bytes.", code="trace_too_large")


def _check_room(trace: Trace, fresh: list[tuple[int, StepDraft]]) -> None:
    last = max((number for number, _ in fresh), default=0)
    if trace.step_count + len(fresh) > settings.MAX_TRACE_STEPS or last >= 2 * settings.MAX_TRACE_STEPS:
        raise TooLarge(f"A trace holds at most {settings.MAX_TRACE_STEPS:,} steps.", code="too_many_steps")
    if trace.size_bytes + sum(step_size(step) for _, step in fresh) > settings.MAX_TRACE_BYTES:
        raise TooLarge(f"The trace is over the limit of {settings.MAX_TRACE_BYTES:,} bytes.", code="trace_too_large")


def _bad(name: str, message: str, code: str = "invalid") -> Invalid:
    return Invalid(f"{name} {message}", errors=(FieldError(name, message, code),))


# --- Steps -----------------------------------------------------------------------------------------


def _mask_of(trace: Trace) -> MaskState:
    """A mask that does not give a placeholder of the trace's earlier steps to another value."""
    mask = MaskState()
    for text in (trace.task, *trace.steps.values_list("content", flat=True)):
        mask.reserve(text)
    return mask


def _next_number(trace: Trace) -> int:
    last = Step.objects.of(trace.team).filter(trace=trace).aggregate(last=Max("sequence"))["last"]
    return 0 if last is None else last + 1


def _add_steps(trace: Trace, steps: Sequence[StepDraft], start: int, mask: MaskState) -> None:
    _add_numbered(trace, list(enumerate(steps, start)), mask)


def _add_numbered(trace: Trace, numbered: list[tuple[int, StepDraft]], mask: MaskState) -> None:
    rows = [
        Step(
            team_id=trace.team_id, trace=trace, sequence=number, at=step.at, role=step.role, kind=step.kind,
            tool=step.tool, content=step.content, arguments=step.arguments, is_error=step.is_error, extra=step.extra,
        )
        for number, step in ((number, masked(step, mask)) for number, step in numbered)
    ]
    Step.objects.bulk_create(rows, batch_size=500)
    trace.step_count += len(rows)
    trace.tool_call_count += sum(step.kind == StepKind.TOOL_CALL for step in rows)
    trace.size_bytes += sum(step_size(step) for _, step in numbered)
    Trace.objects.of(trace.team).filter(pk=trace.pk).update(
        step_count=trace.step_count, tool_call_count=trace.tool_call_count, size_bytes=trace.size_bytes
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


def _drop_repeats(
    trace: Trace, steps: Sequence[StepDraft], start: int, mask: MaskState
) -> list[tuple[int, StepDraft]]:
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


def _said(step: Step | StepDraft) -> tuple[str, ...]:
    """What a step says, but for the numbers of its placeholders: a repeat is masked anew."""
    said = (step.role, step.kind, step.tool, step.content, json.dumps(step.arguments or {}, sort_keys=True))
    return tuple(PLACEHOLDER_NUMBER.sub(">", text) for text in said)

