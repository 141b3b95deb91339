"""Reading steps by hand: a trace has thousands, and a serializer per step costs more than storing it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from reflection.drafts import StepDraft, bad
from reflection.enums import StepKind
from reflection.formats import OWN, READERS
from reflection.formats.mistakes import NotThisFormat

KNOWN = frozenset({"at", "role", "kind", "tool", "arguments", "content", "is_error", "extra"})
TOOL_LIMIT = 200


def read_steps(value: Any, shape: str = OWN) -> tuple[StepDraft, ...]:
    """Return the steps of a payload. Raises `Invalid` naming the first item and field that is off.

    `shape` is one of `reflection.formats.FORMATS`. In our own, unknown keys of a step are kept under `extra`,
    never refused, and a missing `kind` follows from the rest: a tool's answer is a `tool_result`, a step with a
    tool or arguments a `tool_call`.
    """
    if not isinstance(value, list):
        raise bad("steps", "must be a list of steps.")
    told = enumerate(value) if shape == OWN else READERS[shape](value)
    try:
        return tuple(_read_step(f"steps.{index}", item) for index, item in told)
    except NotThisFormat as off:
        path = ".".join(part for part in ("steps", str(off.index), off.field) if part)
        raise bad(path, f"{off.message} The steps were sent as format {shape}.") from None


def _read_step(path: str, item: Any) -> StepDraft:
    if not isinstance(item, Mapping):
        raise bad(path, "must be a JSON object.")
    role = _text(path, item, "role")
    if not role:
        raise bad(f"{path}.role", "is required.", "required")
    arguments = item.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        arguments = {"value": arguments}  # some clients send a bare string or list
    tool = _text(path, item, "tool")
    if len(tool) > TOOL_LIMIT:
        raise bad(f"{path}.tool", f"is over the limit of {TOOL_LIMIT} characters.")
    return StepDraft(
        role=role,
        kind=_text(path, item, "kind") or _default_kind(role, tool, arguments),
        content=_text(path, item, "content"),
        tool=tool,
        arguments=dict(arguments) if arguments is not None else None,
        is_error=_flag(path, item),
        at=_time(path, item),
        extra=_extra(path, item),
    )


def _default_kind(role: str, tool: str, arguments: Any) -> str:
    if role == "tool":
        return StepKind.TOOL_RESULT
    return StepKind.TOOL_CALL if tool or arguments else StepKind.MESSAGE


def _text(path: str, item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise bad(f"{path}.{name}", "must be a string.")
    return value


def _flag(path: str, item: Mapping[str, Any]) -> bool:
    value = item.get("is_error", False)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise bad(f"{path}.is_error", "must be true or false.")
    return value


def _time(path: str, item: Mapping[str, Any]) -> datetime | None:
    value = item.get("at")
    if value is None:
        return None
    try:
        parsed = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None:
        raise bad(f"{path}.at", "must be an ISO 8601 time, such as 2026-03-02T09:00:00Z.")
    if timezone.is_naive(parsed):
        raise bad(f"{path}.at", "needs a time zone, such as 2026-03-02T09:00:00Z.", "naive_time")
    try:
        return parsed.astimezone(UTC)
    except OverflowError:
        raise bad(f"{path}.at", "lies outside the years 1 to 9999 in UTC.") from None


def _extra(path: str, item: Mapping[str, Any]) -> dict[str, Any]:
    unknown = {key: value for key, value in item.items() if key not in KNOWN}
    given = item.get("extra") or {}
    if not isinstance(given, Mapping):
        raise bad(f"{path}.extra", "must be a JSON object.")
    return {**given, **unknown}
