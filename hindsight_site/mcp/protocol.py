"""One message of the protocol, from a request's body and headers, checked as its revision asks.

Two ways of speaking meet at one address. Up to 2025-11-25 a client says `initialize` first and names the
revision in a header from then on. From 2026-07-28 on nothing comes first: every request carries revision and
capabilities in `params._meta`, and headers repeat what an intermediary may route by.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
    jsonrpc,
)
from pydantic import ValidationError

from hindsight_site.api import parsers
from hindsight_site.mcp.errors import Fault
from hindsight_site.refusals import Invalid

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18")
SERVED = (*MODERN, *LEGACY)
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # what `Mcp-Name` repeats
ENCODED = re.compile(r"=\?base64\?(?P<payload>.*)\?=")


@dataclass(frozen=True, slots=True)
class Request:
    """A request that its revision finds well formed; what `params` must hold is the method's to say."""

    id: RequestId
    method: str
    params: dict[str, Any]
    version: str

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN


def load(raw: bytes) -> Any:
    """Return the JSON value of a body. Raises `Fault`."""
    try:
        return parsers.load(raw)
    except Invalid as error:
        raise Fault(jsonrpc.PARSE_ERROR, error.message, status=400) from None


def read(body: Any, headers: Mapping[str, str]) -> Request | None:
    """Return the request in `body`, or None for what is only taken note of: a notification, an old-style answer.

    `headers` by their names in lower case. Raises `Fault`; batches, which no revision served here knows, too.
    """
    if not isinstance(body, dict):
        raise malformed("a batch" if isinstance(body, list) else "not an object")
    if "id" not in body:
        _check_notification(body, headers)
        return None
    if _is_answer(body) and headers.get(VERSION_HEADER) not in MODERN:
        return None  # to a question of ours; we ask none
    try:
        parsed = JSONRPCRequest.model_validate(body)
    except ValidationError:
        raise malformed("not a request") from None
    version = _version_of(parsed, headers)
    return Request(parsed.id, parsed.method, parsed.params or {}, version)


def id_in(body: Any) -> RequestId | None:
    """The id that an error about `body` answers to, where one can be made out."""
    ident = body.get("id") if isinstance(body, dict) else None
    if isinstance(ident, str):
        return ident if ident.isprintable() else None
    return ident if isinstance(ident, int) and not isinstance(ident, bool) else None


def malformed(what: str) -> Fault:
    return Fault(
        jsonrpc.INVALID_REQUEST,
        f"The body must be one JSON-RPC 2.0 request or notification; this is {what}.",
        status=400,
    )


def _is_answer(body: dict[str, Any]) -> bool:
    return "method" not in body and ("result" in body or "error" in body)


def _check_notification(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    try:
        JSONRPCNotification.model_validate(body)
    except ValidationError:
        raise malformed("neither, and it has no id") from None
    if (version := headers.get(VERSION_HEADER)) not in (None, *SERVED):
        raise not_served(version or "")


def _version_of(request: JSONRPCRequest, headers: Mapping[str, str]) -> str:
    """The revision that a request speaks. Raises `Fault` where headers and envelope do not fit it."""
    meta = (request.params or {}).get("_meta")
    header = headers.get(VERSION_HEADER)
    enveloped = isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta
    if header not in MODERN and (request.method == "initialize" or not enveloped):
        if header is None or request.method == "initialize":
            return LEGACY[-1]  # a client that forgets the header is taken for the oldest kind
        if header not in LEGACY:
            raise not_served(header)
        return header
    return _modern_version(request, meta, headers)


def _modern_version(request: JSONRPCRequest, meta: Any, headers: Mapping[str, str]) -> str:
    wanted = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
    missing = [key for key in wanted if not isinstance(meta, Mapping) or key not in meta]
    if missing:
        raise Fault(jsonrpc.INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.", status=400)
    version = meta[PROTOCOL_VERSION_META_KEY]
    _check_repeated(VERSION_HEADER, headers.get(VERSION_HEADER), version)
    _check_repeated(METHOD_HEADER, headers.get(METHOD_HEADER), request.method)
    name = (request.params or {}).get(NAMED_BY.get(request.method, ""))
    if name is not None:
        _check_repeated(NAME_HEADER, decoded(headers.get(NAME_HEADER)), name)
    if version not in MODERN:
        raise not_served(version)
    return version


def _check_repeated(header: str, said: str | None, meant: Any) -> None:
    if said is None or said != meant:
        fault = "is missing" if said is None else "says something else than the body"
        raise Fault(jsonrpc.HEADER_MISMATCH, f"The header {header} {fault}.", status=400)


def not_served(version: str) -> Fault:
    """A revision that is not spoken here; the answer names those that are."""
    return Fault(
        jsonrpc.UNSUPPORTED_PROTOCOL_VERSION,
        f"This server speaks the protocol revisions {', '.join(SERVED)}.",
        data={"supported": list(SERVED), "requested": version},
        status=400,
    )


def decoded(header: str | None) -> str | None:
    """The text that a header stands for: as it is, or as `=?base64?…?=`. None when that cannot be read."""
    match = ENCODED.fullmatch(header or "")
    if match is None:
        return header
    try:
        raw = base64.b64decode(match["payload"], validate=True)
        # The one spelling that an encoder writes: two readers must not disagree on what a header says.
        return raw.decode() if base64.b64encode(raw).decode() == match["payload"] else None
    except (binascii.Error, ValueError):
        return None
