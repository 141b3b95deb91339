"""Messages of OpenAI's Chat Completions, and items of its Responses API, mixed as one list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reflection.formats import blocks
from reflection.formats.mistakes import NotThisFormat

ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}


def read(items: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the steps of a list of messages or response items. Raises `NotThisFormat`."""
    names: dict[Any, str] = {}  # call id → tool: an answer names only its call
    for index, item in enumerate(items):
        item = blocks.need_mapping(index, item)
        for step in _steps(index, item, names):
            if step["kind"] == "tool_call" and step.get("call_id"):
                names[str(step["call_id"])] = step["tool"]
            yield index, step


def _steps(index: int, item: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    match item.get("type"):
        case "function_call" | "custom_tool_call":
            yield blocks.call(item.get("name"), item.get("arguments", item.get("input")), item.get("call_id"))
        case "function_call_output" | "custom_tool_call_output":
            call_id = item.get("call_id")
            yield blocks.result(names.get(str(call_id), ""), blocks.text_of(item.get("output")), call_id)
        case "reasoning":
            if text := blocks.text_of(item.get("summary") or item.get("content")):
                yield blocks.thought(text)
        case _:
            yield from _message(index, item, names)


def _message(index: int, item: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    role, text = blocks.word(item.get("role")), blocks.text_of(item.get("content"))
    if role in ("tool", "function"):
        call_id = item.get("tool_call_id")
        yield blocks.result(item.get("name") or names.get(str(call_id), ""), text, call_id)
        return
    if role not in ROLES:
        raise NotThisFormat(index, "role", f"must be one of: {', '.join([*ROLES, 'tool'])}.")
    if reasoning := blocks.text_of(item.get("reasoning_content") or item.get("reasoning")):
        yield blocks.thought(reasoning)
    if text or (refusal := blocks.text_of(item.get("refusal"))):
        yield blocks.message(ROLES[role], text or refusal)
    yield from _calls(index, item)


def _calls(index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    calls = blocks.listed(item.get("tool_calls") or [])
    if item.get("function_call"):  # the form before tool_calls
        calls = [*calls, {"function": item["function_call"]}]
    for one in calls:
        function = one.get("function") or one.get("custom") if isinstance(one, Mapping) else None
        if not isinstance(function, Mapping) or not function.get("name"):
            raise NotThisFormat(index, "tool_calls", "must hold calls with a function and its name.")
        yield blocks.call(function["name"], function.get("arguments", function.get("input")), one.get("id"))
