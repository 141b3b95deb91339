"""Why a message is not answered: JSON-RPC errors with the HTTP status and headers that go with them."""

from __future__ import annotations

from typing import Any

from mcp_types import jsonrpc

# Ours, from the band -32000..-32019 that the protocol leaves to implementations; the SDK uses its first two.
UNAUTHORIZED, FORBIDDEN, TOO_MANY_REQUESTS, NOT_ALLOWED = -32010, -32011, -32012, -32013
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; 2026-07-28 retired it in favour of "invalid params"

# Which status an error has from 2026-07-28 on; the older revisions answer it with 200.
STATUS_OF = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.HEADER_MISMATCH: 400,
    jsonrpc.UNSUPPORTED_PROTOCOL_VERSION: 400,
    jsonrpc.MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
    jsonrpc.INTERNAL_ERROR: 500,
}


class Fault(Exception):
    """A message that is not answered. `status` 0: what the code and the protocol's revision ask for."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        data: dict[str, Any] | None = None,
        status: int = 0,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data or {}
        self.status, self.headers = status, headers or {}


def invalid_params(message: str, **data: Any) -> Fault:
    """The parameters are not of the method's form."""
    return Fault(jsonrpc.INVALID_PARAMS, message, data=data)


def no_such_method(method: str) -> Fault:
    """This server does not offer the method, or not in this revision."""
    return Fault(jsonrpc.METHOD_NOT_FOUND, f"This server does not offer {method}.", data={"method": method})
