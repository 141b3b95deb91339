"""The smallest program that remembers: the official SDK's client, an address and a token.

pip install mcp
export HINDSIGHT_URL=http://127.0.0.1:8000 HINDSIGHT_TOKEN=hs_…      # from the Connect page
python docs/examples/mcp_plain.py
"""

# ruff: noqa: T201 - a command talks to whoever runs it
from __future__ import annotations

import asyncio
import os
from typing import Any

from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

URL = os.environ.get("HINDSIGHT_URL", "http://127.0.0.1:8000")
TOKEN = os.environ["HINDSIGHT_TOKEN"]


class InMemory:
    """Where the client keeps the access tokens that it gets by itself."""

    tokens = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> None:
        return None

    async def set_client_info(self, client_info: Any) -> None:
        pass


async def told(progress: float, total: float | None, message: str | None) -> None:
    print(f"  … {progress:.0f} of {total:.0f} s: {message}")


async def main() -> None:
    login = ClientCredentialsOAuthProvider(
        server_url=f"{URL}/mcp", storage=InMemory(), client_id=TOKEN[:11], client_secret=TOKEN, issuer=URL
    )
    async with (
        create_mcp_http_client(auth=login) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as memory,
    ):
        print("Tools:", ", ".join(tool.name for tool in (await memory.list_tools()).tools))

        lesson = "The export of invoices wants the month as YYYY-MM."
        kept = await memory.call_tool("hindsight_remember", {"content": lesson, "kind": "fact"})
        print("Remembered:", kept.structured_content["memory"])

        found = await memory.call_tool("hindsight_recall", {"query": "export the invoices of March"})
        print("Recalled:", found.content[0].text)
        used = {"recall_id": found.structured_content["recall_id"], "success": True}
        await memory.call_tool("hindsight_feedback", used)

        result = {"role": "tool", "kind": "tool_result", "tool": "export"}
        steps = [{**result, "content": "month must be YYYY-MM", "is_error": True}, {**result, "content": "412 rows"}]
        trace = {"task": "Export the invoices of March", "steps": steps, "outcome": "succeeded", "remember": True}
        recorded = (await memory.call_tool("hindsight_record_trace", trace)).structured_content
        # The reflection goes on by itself; waiting for it is only to show what came of it.
        wait = {"id": recorded["reflection"]["id"], "wait_seconds": 3}
        ended = await memory.call_tool("hindsight_status", wait, progress_callback=told)
        print("Reflected:", ended.content[0].text)


if __name__ == "__main__":
    asyncio.run(main())
