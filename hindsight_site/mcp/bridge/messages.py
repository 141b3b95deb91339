"""JSON-RPC lines, the HTTP headers that MCP wants beside them, and server-sent events. Pure.

A line is passed on byte for byte; it is read here only to know what it is.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
CONNECTION_CLOSED = -32000  # what MCP's own clients use for an answer that will not come

VERSION_IN_BODY = "io.modelcontextprotocol/protocolVersion"  # in `_meta`, from revision 2026-07-28 on
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_PLAIN = re.compile(r"[\x20-\x7e]*")
_ENCODED = re.compile(r"=\?base64\?.*\?=")


class NotAMessage(ValueError):
    """A line that is no JSON-RPC message. `code` is JSON-RPC's."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the client: the bytes as they came, and what of them matters on the way.

    `id` is None for what wants no answer. `version` is the revision that the message itself names, which
    is what makes it one of the stateless era; before that the connection has one, from `initialize`.
    """

    body: bytes
    id: str | int | None
    method: str
    version: str = ""
    name: str = ""
    cancels: str | int | None = None

    @property
    def wants_answer(self) -> bool:
        return self.id is not None


def read(line: bytes) -> Message:
    """Return what a line is. Raises `NotAMessage`."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise NotAMessage("This line is not JSON in UTF-8.", PARSE_ERROR) from None
    if not isinstance(value, dict):
        raise NotAMessage("A line holds one JSON-RPC message, an object.", INVALID_REQUEST)
    method = _text(value.get("method"))
    if not method:  # an answer to something that the server asked
        return Message(line, None, "")
    params = value.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    return Message(
        body=line,
        id=_id(value.get("id")),
        method=method,
        version=_text(meta.get(VERSION_IN_BODY)) if isinstance(meta, dict) else "",
        name=_text(params.get(NAMED[method])) if method in NAMED else "",
        cancels=_id(params.get("requestId")) if method == "notifications/cancelled" else None,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _id(value: Any) -> str | int | None:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def headers(message: Message, negotiated: str) -> dict[str, str]:
    """The headers that go with a message: the revision and, from 2026-07-28 on, method and name."""
    if message.method == "initialize":
        return {}
    if not message.version:
        return {"MCP-Protocol-Version": negotiated} if negotiated else {}
    found = {"MCP-Protocol-Version": message.version, "Mcp-Method": message.method, "Mcp-Name": message.name}
    return {name: header_value(value) for name, value in found.items() if value}


def header_value(text: str) -> str:
    """`text` where a header can carry it, else in MCP's wrapping `=?base64?…?=`."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def error(ident: str | int | None, message: str, code: int = CONNECTION_CLOSED) -> bytes:
    """A JSON-RPC error as a line without its end."""
    return _dump({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}})


def answer(body: bytes, ident: str | int | None) -> tuple[bytes, dict[str, Any]]:
    """Return a message of the server as one line, and what it says.

    An error that the server could not match to a request (`"id": null`) gets the id of the request that it
    came to. Raises `ValueError` when it is no JSON object.
    """
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    if "error" in value and value.get("id") is None and ident is not None:
        value["id"] = ident
        return _dump(value), value
    stripped = body.strip()
    return (_dump(value) if b"\n" in stripped or b"\r" in stripped else stripped), value


def is_answer(value: dict[str, Any]) -> bool:
    """Whether a message of the server ends a request, rather than telling of it on the way."""
    return "method" not in value and ("result" in value or "error" in value)


def negotiated_version(value: dict[str, Any]) -> str:
    """The revision that the answer to `initialize` settles, or ""."""
    result = value.get("result")
    return _text(result.get("protocolVersion")) if isinstance(result, dict) else ""


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


@dataclass(slots=True)
class _Event:
    kind: str = "message"
    data: list[bytes] = field(default_factory=list)


def events(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each `message` event in a stream of lines (HTML standard, section 9.2.6)."""
    event = _Event()
    for raw in lines:
        line = raw.rstrip(b"\r\n")
        if not line:
            if event.data and event.kind == "message":
                yield b"\n".join(event.data)
            event = _Event()
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            event.data.append(value)
        elif name == b"event":
            event.kind = value.decode("utf-8", "replace") or "message"
