"""What the conformance tool runs as the client: the official SDK's, over stdio, behind our bridge.

python client.py <url of the tool's server>
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import ValidationError

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tests.mcp.bridge_server import SECRET  # noqa: E402
from tests.mcp.conformance.doorman import doorman  # noqa: E402 - found by the line above

MODERN = "2026-07-28"


async def cannot(*_: Any) -> Any:
    """Answers what is asked of this client, so that it says that it can be asked."""
    raise NotImplementedError


def of(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments for a tool: 5 for numbers, a word for the rest."""
    properties = schema.get("properties", {})
    return {name: 5 if one.get("type") in {"number", "integer"} else "word" for name, one in properties.items()}


async def tried(what: Awaitable[Any]) -> Any:
    """What a server answers; None when it does not offer that, or answers what the SDK does not take."""
    with suppress(MCPError, ValidationError):
        return await what
    return None


async def use(client: Client) -> None:
    """Do what there is to do."""
    if tools := await tried(client.list_tools()):
        for tool in tools.tools:
            await tried(client.call_tool(tool.name, of(tool.input_schema)))
    if resources := await tried(client.list_resources()):
        for resource in resources.resources:
            await tried(client.read_resource(resource.uri))
    if prompts := await tried(client.list_prompts()):
        for prompt in prompts.prompts:
            await tried(client.get_prompt(prompt.name, {one.name: "word" for one in prompt.arguments or []}))


async def main(url: str) -> None:
    mode = MODERN if os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") == MODERN else "legacy"
    with doorman(url) as site:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "hindsight_site.mcp.bridge.cli", "--url", site],
            env={"HINDSIGHT_TOKEN": SECRET, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
        )
        asked = {"sampling_callback": cannot, "elicitation_callback": cannot, "list_roots_callback": cannot}
        async with Client(stdio_client(command), mode=mode, read_timeout_seconds=20, **asked) as client:
            await use(client)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
