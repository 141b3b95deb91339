"""What message formats share: text in parts, arguments as JSON text, the names of calls by their ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reflection.formats.mistakes import NotThisFormat

MEDIA = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "file", "input_file", "document", "video"}
)


def need_mapping(index: int, item: Any) -> Mapping[str, Any]:
    """Return the item, or raise `NotThisFormat` when it is not a JSON object."""
    if not isinstance(item, Mapping):
        raise NotThisFormat(index, "", "must be a JSON object.")
    return item


def word(value: Any) -> str:
    """Return a role, type or name as text; what is not text is none."""
    return value if isinstance(value, str) else ""


def listed(value: Any) -> list[Any]:
    """Return the parts of a content field as a list."""
    return value if isinstance(value, list) else [value]


def text_of(content: Any) -> str:
    """Return the text of a content field: a string, a part, a list of parts, or JSON of anything else.

    Pictures, sound and files are named in brackets: a trace keeps words only.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(text_of, content) if text)
    if isinstance(content, Mapping):
        return _part(content)
    return json.dumps(content, ensure_ascii=False)


def _part(part: Mapping[str, Any]) -> str:
    if word(part.get("type")) in MEDIA:
        return f"[{part['type']}]"
    for name in ("text", "content", "refusal", "output"):
        if isinstance(part.get(name), str | list):
            return text_of(part[name])
    return json.dumps(part, ensure_ascii=False, sort_keys=True)


def arguments_of(value: Any) -> Any:
    """Return the arguments of a call: an object as it is, JSON text read, anything else as it came."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value or None


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "kind": "message", "content": text, **more}


def thought(text: str) -> dict[str, Any]:
    return {"role": "assistant", "kind": "thought", "content": text}


def call(name: Any, arguments: Any, call_id: Any, **more: Any) -> dict[str, Any]:
    step = {"role": "assistant", "kind": "tool_call", "tool": name, "arguments": arguments_of(arguments), **more}
    return _with_id(step, call_id)


def result(name: Any, text: str, call_id: Any, *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    step = {"role": "tool", "kind": "tool_result", "tool": name, "content": text, "is_error": is_error, **more}
    return _with_id(step, call_id)


def _with_id(step: dict[str, Any], call_id: Any) -> dict[str, Any]:
    return {**step, "call_id": call_id} if call_id else step
