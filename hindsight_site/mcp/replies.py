"""What goes back to a client: one JSON-RPC answer, as bytes."""

from __future__ import annotations

import json
import logging
from typing import Any

from mcp_types import RequestId, jsonrpc

from hindsight_site.mcp.errors import Fault
from hindsight_site.middleware import current_request_id

logger = logging.getLogger(__name__)


def result(ident: RequestId, value: dict[str, Any]) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": ident, "result": value})


def error(ident: RequestId | None, fault: Fault) -> bytes:
    data = {**fault.data, "request_id": current_request_id.get()}
    told = {"code": fault.code, "message": fault.message, "data": data}
    return encoded({"jsonrpc": "2.0", "id": ident, "error": told})


def unexpected() -> Fault:
    """What to say of the exception at hand, which is logged. Never its text: it can hold what was sent."""
    logger.exception("unhandled error in the MCP endpoint")
    return Fault(jsonrpc.INTERNAL_ERROR, "Something went wrong here. Quote the request id to us.", status=500)


def encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
