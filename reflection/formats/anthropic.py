"""Messages of Anthropic's Messages API: blocks of text, thinking, tool use and tool results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reflection.formats import blocks
from reflection.formats.mistakes import NotThisFormat

ROLES = ("user", "assistant", "system")


def read(items: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the steps of a list of messages; a system prompt may stand first as `role: system`.

    Raises `NotThisFormat`.
    """
    names: dict[str, str] = {}
    for index, item in enumerate(items):
        item = blocks.need_mapping(index, item)
        role = blocks.word(item.get("role"))
        if role not in ROLES:
            raise NotThisFormat(index, "role", f"must be one of: {', '.join(ROLES)}.")
        for block in blocks.listed(item.get("content")):
            for step in _block(index, role, block, names):
                yield index, step


def _block(index: int, role: str, block: Any, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    kind = blocks.word(block.get("type")) if isinstance(block, Mapping) else "text"
    match kind:
        case "thinking":
            if text := blocks.text_of(block.get("thinking")):
                yield blocks.thought(text)
        case "redacted_thinking":  # encrypted: nothing a reader could learn from
            return
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            if not block.get("name"):
                raise NotThisFormat(index, "content", "holds a tool use without a name.")
            names[str(block.get("id"))] = block["name"]
            yield blocks.call(block["name"], block.get("input"), block.get("id"))
        case _ if kind.endswith("tool_result"):
            call_id = block.get("tool_use_id")
            text, wrong = blocks.text_of(block.get("content")), bool(block.get("is_error"))
            yield blocks.result(names.get(str(call_id), ""), text, call_id, is_error=wrong)
        case _:
            if text := blocks.text_of(block):
                yield blocks.message(role, text)
