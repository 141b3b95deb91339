"""Speaks the protocol to `/mcp` by hand, in either era, through Django's test client."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from django.test import Client

from hindsight_site.accounts import access_tokens, credentials
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.mcp.tools import TABLE
from tests import factories
from tests.factories import ALL_SCOPES

MODERN, LEGACY, OLDEST = "2026-07-28", "2025-11-25", "2025-06-18"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def access_token(team: Team, secret: str, audience: Audience = Audience.MCP, scopes: Any = None) -> str:
    """An access token made from the ApiToken `secret`, with all its scopes unless some are named."""
    with team_transaction(team):
        token = credentials.find(secret)
        return access_tokens.issue(token, audience=audience, scopes=scopes or token.scopes).jwt


class McpCaller:
    """One client with a token. `version` is the revision it speaks."""

    def __init__(self, team: Team, agent: Agent | None, scopes: Any = ALL_SCOPES, version: str = MODERN) -> None:
        self.team, self.agent, self.version = team, agent, version
        self.secret = factories.token(team, agent, scopes)
        self.token = access_token(team, self.secret)
        self.http = Client(enforce_csrf_checks=True)

    def post(self, body: Any, **headers: str) -> Any:
        """Send a body as it is, with the token and whatever headers are named (`Mcp_Method=…`)."""
        given = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, text/event-stream"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        sent = {name: value for name, value in given.items() if value is not None}
        return self.http.post("/mcp", data, content_type=sent.pop("Content-Type", "application/json"), headers=sent)

    def send(self, method: str, params: dict[str, Any] | None = None, ident: Any = 1) -> Any:
        """Send a request as the revision wants it; return the HTTP answer."""
        params = dict(params or {})
        headers = {"Mcp_Protocol_Version": self.version}
        if self.version == MODERN:
            params["_meta"] = {**META, **params.get("_meta", {})}
            headers["Mcp_Method"] = method
            if (name := params.get(NAMED_BY.get(method, ""))) is not None:
                headers["Mcp_Name"] = str(name)
        return self.post({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}, **headers)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request that must be answered; return its result."""
        answer = self.send(method, params)
        body = answer.json()
        assert answer.status_code == 200, body
        assert (body["jsonrpc"], body["id"]) == ("2.0", 1)
        return body["result"]

    def fault(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request that must be refused; return its error, with the HTTP status beside it."""
        answer = self.send(method, params)
        body = answer.json()
        assert "error" in body, body
        assert body["error"]["data"]["request_id"] == answer["X-Request-ID"]
        return {**body["error"], "status": answer.status_code}

    def call(self, tool: str, _meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed; return its structured content, checked against the output schema."""
        params = {"name": tool, "arguments": arguments, **({"_meta": _meta} if _meta else {})}
        result = self.ask("tools/call", params)
        assert not result.get("isError"), result["content"][0]["text"]
        jsonschema.validate(result["structuredContent"], TABLE[tool].output_schema)
        return {**result["structuredContent"], "text": result["content"][0]["text"]}

    def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must fail; return what it says."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"] is True, result
        assert "structuredContent" not in result
        return result["content"][0]["text"]
