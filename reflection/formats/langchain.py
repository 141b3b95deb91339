"""Messages of LangChain and LangGraph, in each way they are written down.

`message.model_dump()` is flat, `messages_to_dict` wraps in `{type, data}`, `langchain_core.load.dumpd` in
`{lc, type: "constructor", id, kwargs}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reflection.formats import blocks
from reflection.formats.mistakes import NotThisFormat

ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system"}
DEVELOPER = {"developer": "system", "chat": "user"}
CALLING = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk"})
THINKING = frozenset({"reasoning", "thinking", "reasoning_content"})


def read(items: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the steps of a list of messages. Raises `NotThisFormat`."""
    names: dict[str, str] = {}
    for index, item in enumerate(items):
        kind, fields = _unwrapped(blocks.need_mapping(index, item))
        for step in _steps(index, kind, fields, names):
            yield index, step


def _unwrapped(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if item.get("type") == "constructor" and isinstance(item.get("kwargs"), Mapping):
        path = item.get("id")
        name = str(path[-1]) if isinstance(path, list) and path else ""
        name = name.removesuffix("Chunk").removesuffix("Message").lower()
        return blocks.word(item["kwargs"].get("type")) or name, item["kwargs"]
    fields = item["data"] if isinstance(item.get("data"), Mapping) else item
    kind = str(item.get("type") or fields.get("type") or fields.get("role") or "")
    return kind.removesuffix("MessageChunk").lower(), fields


def _steps(index: int, kind: str, fields: Mapping[str, Any], names: dict[str, str]) -> Iterator[dict[str, Any]]:
    if kind in ("tool", "function"):
        call_id = fields.get("tool_call_id")
        name = fields.get("name") or names.get(str(call_id), "")
        wrong = fields.get("status") == "error"
        yield blocks.result(name, blocks.text_of(fields.get("content")), call_id, is_error=wrong)
        return
    if kind == "remove":  # LangGraph's instruction to forget a message is no step
        return
    role = {**ROLES, **DEVELOPER}.get(kind)
    if role is None:
        raise NotThisFormat(index, "type", f"must be one of: {', '.join([*ROLES, 'tool'])}.")
    yield from _said(role, fields)
    yield from _calls(index, fields, names)


def _said(role: str, fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    more = fields.get("additional_kwargs")
    if isinstance(more, Mapping) and (text := blocks.text_of(more.get("reasoning_content"))):
        yield blocks.thought(text)
    for part in blocks.listed(fields.get("content")):
        kind = blocks.word(part.get("type")) if isinstance(part, Mapping) else ""
        if kind in CALLING:  # stands in tool_calls as well
            continue
        if kind in THINKING:
            if text := blocks.text_of(part.get("reasoning") or part.get("thinking") or part.get("summary")):
                yield blocks.thought(text)
        elif text := blocks.text_of(part):
            yield blocks.message(role, text)


def _calls(index: int, fields: Mapping[str, Any], names: dict[str, str]) -> Iterator[dict[str, Any]]:
    valid, invalid = fields.get("tool_calls") or [], fields.get("invalid_tool_calls") or []
    for one in [*valid, *invalid] if isinstance(valid, list) and isinstance(invalid, list) else [None]:
        if not isinstance(one, Mapping) or not one.get("name"):
            raise NotThisFormat(index, "tool_calls", "must be a list of calls with a name.")
        names[str(one.get("id"))] = one["name"]
        yield blocks.call(one["name"], one.get("args"), one.get("id"))
