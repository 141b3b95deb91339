"""What comes in: steps and traces as drafts, and the checks that refuse what cannot be stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from hindsight_site import outbound
from hindsight_site.refusals import FieldError, Invalid, TooLarge
from memories import contents
from reflection.enums import Role, StepKind
from reflection.models import Trace

TASK_LIMIT = 8_000  # characters
INSTRUCTION_LIMIT = 2_000  # characters


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


def check_steps(steps: Sequence[StepDraft]) -> None:
    """Raise `Invalid` or `TooLarge` for a step that cannot be stored, naming it."""
    if len(steps) > settings.MAX_TRACE_STEPS:
        raise TooLarge(f"steps is over the limit of {settings.MAX_TRACE_STEPS:,} steps.", code="too_many_steps")
    for index, step in enumerate(steps):
        if step.role not in Role.values:
            raise bad(f"steps.{index}.role", f"must be one of: {', '.join(Role.values)}.")
        if step.kind not in StepKind.values:
            raise bad(f"steps.{index}.kind", f"must be one of: {', '.join(StepKind.values)}.")
        if step.at is not None and timezone.is_naive(step.at):
            raise bad(f"steps.{index}.at", "needs a time zone, such as 2026-03-02T09:00:00Z.", "naive_time")
        if step_size(step) > settings.MAX_STEP_BYTES:
            message = f"steps.{index} is over the limit of {settings.MAX_STEP_BYTES:,} bytes."
            raise TooLarge(message, code="step_too_large", errors=(FieldError(f"steps.{index}", message),))


def step_size(step: StepDraft) -> int:
    """The size of a step in UTF-8 bytes: content, arguments and extras."""
    size = len(step.content.encode())
    for value in (step.arguments, step.extra):
        size += len(json.dumps(value, ensure_ascii=False).encode()) if value else 0
    return size


def check_trace(draft: TraceDraft) -> None:
    if not draft.task.strip():
        raise bad("task", "must not be empty: say what the agent was asked to do.")
    if len(draft.task) > TASK_LIMIT:
        raise bad("task", f"is over the limit of {TASK_LIMIT:,} characters.")
    if draft.callback_url:
        check_callback(draft.callback_url)
    for name in ("environment", "metadata", "extra"):
        contents.check_json_size(name, getattr(draft, name))
    size = len(draft.result.encode()) + sum(step_size(step) for step in draft.steps)
    if size > settings.MAX_TRACE_BYTES:
        raise TooLarge(f"The trace is over the limit of {settings.MAX_TRACE_BYTES:,} bytes.", code="trace_too_large")


def check_callback(url: str) -> None:
    try:
        outbound.check_url(url)
    except outbound.NotAllowed as error:
        raise Invalid(f"callback_url: {error}", errors=(FieldError("callback_url", str(error)),)) from None


def check_instruction(instruction: str) -> None:
    if len(instruction) > INSTRUCTION_LIMIT:
        raise bad("instruction", f"is over the limit of {INSTRUCTION_LIMIT:,} characters.")


def check_room(trace: Trace, fresh: list[tuple[int, StepDraft]]) -> None:
    last = max((number for number, _ in fresh), default=0)
    if trace.step_count + len(fresh) > settings.MAX_TRACE_STEPS or last >= 2 * settings.MAX_TRACE_STEPS:
        raise TooLarge(f"A trace holds at most {settings.MAX_TRACE_STEPS:,} steps.", code="too_many_steps")
    if trace.size_bytes + sum(step_size(step) for _, step in fresh) > settings.MAX_TRACE_BYTES:
        raise TooLarge(f"The trace is over the limit of {settings.MAX_TRACE_BYTES:,} bytes.", code="trace_too_large")


def bad(name: str, message: str, code: str = "invalid") -> Invalid:
    return Invalid(f"{name} {message}", errors=(FieldError(name, message, code),))
