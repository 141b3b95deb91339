"""OpenTelemetry spans by the GenAI semantic conventions, as OTLP JSON or as an SDK prints them.

Model calls (`chat`, `generate_content`, `text_completion`) carry `gen_ai.input.messages` and
`gen_ai.output.messages`, tool spans (`execute_tool`) `gen_ai.tool.*`. Each model call repeats the conversation
so far: what was told already is not told again.
Source: opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from reflection.formats import blocks
from reflection.formats.mistakes import NotThisFormat

ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system", "tool": "tool"}


@dataclass(slots=True)
class Told:
    """What of the conversation stands already."""

    messages: Counter[str] = field(default_factory=Counter)
    calls: dict[str, str] = field(default_factory=dict)  # call id → tool
    results: set[str] = field(default_factory=set)  # call ids with an answer


@dataclass(frozen=True, slots=True)
class Span:
    index: int
    attributes: Mapping[str, Any]
    start: datetime | None
    end: datetime | None
    failed: str  # what the span's status says went wrong, or ""


def read(items: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the steps of a list of spans (or of whole OTLP exports), in the order of their start."""
    spans = [span for index, item in enumerate(items) for span in _spans(index, blocks.need_mapping(index, item))]
    told = Told()
    for span in sorted(spans, key=lambda span: (span.start is None, span.start or datetime.min.replace(tzinfo=UTC))):
        for step in _steps(span, told):
            yield span.index, step


def _spans(index: int, item: Mapping[str, Any]) -> Iterator[Span]:
    if "resourceSpans" in item:
        try:
            inner = [
                span
                for resource in item["resourceSpans"]
                for scope in resource.get("scopeSpans", [])
                for span in scope.get("spans", [])
            ]
        except (AttributeError, TypeError):
            raise NotThisFormat(index, "resourceSpans", "must be OTLP JSON.") from None
        for span in inner:
            yield from _spans(index, blocks.need_mapping(index, span))
        return
    attributes = _attributes(index, item.get("attributes"))
    status = item.get("status")
    code, text = (
        (status.get("code", status.get("status_code")), status.get("message", status.get("description")))
        if (isinstance(status, Mapping))
        else (status, "")
    )
    wrong = str(code).upper() in ("2", "ERROR", "STATUS_CODE_ERROR") or "error.type" in attributes
    failed = blocks.text_of(text or attributes.get("error.type") or "error") if wrong else ""
    yield Span(index, attributes, _time(index, item, "start"), _time(index, item, "end"), failed)


def _attributes(index: int, given: Any) -> Mapping[str, Any]:
    if isinstance(given, list):  # OTLP: [{key, value: {stringValue: …}}]
        try:
            return {one["key"]: _value(one.get("value")) for one in given}
        except (AttributeError, KeyError, TypeError):
            raise NotThisFormat(index, "attributes", "must hold keys with values.") from None
    if not isinstance(given, Mapping):
        raise NotThisFormat(index, "attributes", "is required: an object, or OTLP's list.")
    return given


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_value(one) for one in inner.get("values", [])]
    if kind == "kvlistValue":
        return {one["key"]: _value(one.get("value")) for one in inner.get("values", [])}
    return inner


def _time(index: int, item: Mapping[str, Any], which: str) -> datetime | None:
    nanos = item.get(f"{which}TimeUnixNano")
    written = item.get(f"{which}_time")
    try:
        if nanos is not None:
            return datetime.fromtimestamp(int(nanos) / 1e9, UTC)
        if isinstance(written, int | float):
            return datetime.fromtimestamp(written / 1e9, UTC)
        if written is None:
            return None
        moment = datetime.fromisoformat(written)
    except (ValueError, TypeError, OverflowError, OSError):
        raise NotThisFormat(index, f"{which}_time", "must be a time.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _steps(span: Span, told: Told) -> Iterator[dict[str, Any]]:
    attributes = span.attributes
    if attributes.get("gen_ai.operation.name") == "execute_tool" or "gen_ai.tool.call.id" in attributes:
        yield from _tool(span, told)
        return
    instructions = _read(span, "gen_ai.system_instructions")
    if instructions and not told.messages["instructions" + _key(instructions)]:
        told.messages["instructions" + _key(instructions)] += 1
        yield blocks.message("system", blocks.text_of(instructions), **_at(span.start))
    yield from _conversation(span, told, _read(span, "gen_ai.input.messages"), span.start)
    yield from _conversation(span, told, _read(span, "gen_ai.output.messages"), span.end)
    if span.failed and attributes.get("gen_ai.operation.name") in ("chat", "generate_content", "text_completion"):
        yield {"role": "system", "kind": "observation", "content": span.failed, "is_error": True, **_at(span.end)}


def _read(span: Span, name: str) -> list[Any]:
    value = span.attributes.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise NotThisFormat(span.index, f"attributes.{name}", "must be JSON.") from None
    if value is None:
        return []
    return blocks.listed(value)


def _conversation(span: Span, told: Told, messages: Iterable[Any], at: datetime | None) -> Iterator[dict[str, Any]]:
    here: Counter[str] = Counter()
    for message in messages:
        message = blocks.need_mapping(span.index, message)
        key = _key([message.get("role"), message.get("parts", message.get("content"))])
        here[key] += 1
        if here[key] <= told.messages[key]:
            continue
        told.messages[key] += 1
        yield from _message(span, told, message, at)


def _message(span: Span, told: Told, message: Mapping[str, Any], at: datetime | None) -> Iterator[dict[str, Any]]:
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise NotThisFormat(span.index, "attributes", f"hold a message whose role is none of: {', '.join(ROLES)}.")
    for part in blocks.listed(message.get("parts", message.get("content"))):
        kind = part.get("type") if isinstance(part, Mapping) else "text"
        call_id = str(part.get("id") or "") if isinstance(part, Mapping) else ""
        if kind == "tool_call":
            told.calls[call_id] = part.get("name") or ""
            yield blocks.call(part.get("name"), part.get("arguments"), call_id, **_at(at))
        elif kind == "tool_call_response":
            if call_id and call_id in told.results:
                continue
            told.results.add(call_id)
            answer = part.get("response", part.get("result"))
            yield blocks.result(told.calls.get(call_id, ""), blocks.text_of(answer), call_id, **_at(at))
        elif kind in ("reasoning", "thinking"):
            yield {**blocks.thought(blocks.text_of(part)), **_at(at)}
        elif text := blocks.text_of(part):
            yield blocks.message("assistant" if role == "tool" else role, text, **_at(at))


def _tool(span: Span, told: Told) -> Iterator[dict[str, Any]]:
    name, call_id = span.attributes.get("gen_ai.tool.name", ""), str(span.attributes.get("gen_ai.tool.call.id") or "")
    if not call_id or call_id not in told.calls:
        told.calls[call_id] = name
        yield blocks.call(name, span.attributes.get("gen_ai.tool.call.arguments"), call_id, **_at(span.start))
    if call_id and call_id in told.results:
        return
    told.results.add(call_id)
    answer = blocks.text_of(span.attributes.get("gen_ai.tool.call.result")) or span.failed
    yield blocks.result(name, answer, call_id, is_error=bool(span.failed), **_at(span.end))


def _at(moment: datetime | None) -> dict[str, str]:
    return {"at": moment.isoformat()} if moment else {}


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
