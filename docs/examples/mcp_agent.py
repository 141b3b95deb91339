"""An agent that learns: a plain loop around a model with tools, with Hindsight as its memory over MCP.

    pip install mcp openai
    export HINDSIGHT_URL=http://127.0.0.1:8000 HINDSIGHT_TOKEN=hs_…      # from the Connect page
    export OPENAI_API_KEY=… OPENAI_BASE_URL=https://…/v1 MODEL=…         # any OpenAI-compatible endpoint
    python docs/examples/mcp_agent.py "Export the invoices of March 2026"

Run it twice. The first time the export refuses the month and the agent finds out how it wants it; Hindsight
looks back at that. The second time the agent is told before it begins.
"""

# ruff: noqa: T201 - a command talks to whoever runs it
from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from openai import AsyncOpenAI

URL = os.environ.get("HINDSIGHT_URL", "http://127.0.0.1:8000")
TOKEN = os.environ["HINDSIGHT_TOKEN"]
MODEL = os.environ.get("MODEL", "gpt-5-mini")

EXPORT = {
    "name": "export_invoices",
    "description": "Export the invoices of one month as CSV.",
    "parameters": {"type": "object", "properties": {"month": {"type": "string"}}, "required": ["month"]},
}


def export_invoices(month: str) -> str:
    """The agent's own tool: a system with a rule that its description does not tell."""
    if not re.fullmatch(r"\d{4}-\d{2}", month):
        return f"Error: month must be given as YYYY-MM, got {month!r}"
    return json.dumps({"rows": 412, "file": f"invoices-{month}.csv"})


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


@asynccontextmanager
async def hindsight() -> AsyncIterator[Client]:
    """A client that exchanges the token for short-lived access tokens, and renews them."""
    login = ClientCredentialsOAuthProvider(
        server_url=f"{URL}/mcp", storage=InMemory(), client_id=TOKEN[:11], client_secret=TOKEN, issuer=URL
    )
    async with (
        create_mcp_http_client(auth=login) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client,
    ):
        yield client


async def call(memory: Client, tool: str, arguments: dict[str, Any]) -> Any:
    """Call one of Hindsight's tools; what it refuses is text for the model, as any tool's error is."""
    result = await memory.call_tool(tool, arguments)
    return result.content[0].text if result.is_error else result.structured_content


async def run(memory: Client, name: str, arguments: dict[str, Any]) -> str:
    if name == "export_invoices":
        return export_invoices(**arguments)
    return json.dumps(await call(memory, name, arguments), ensure_ascii=False)


async def work(memory: Client, task: str, known: str) -> list[dict[str, Any]]:
    """Let the model work on the task until it calls no more tools; return the conversation."""
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in (await memory.list_tools()).tools
    ]
    tools = [{"type": "function", "function": function} for function in (EXPORT, *functions)]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": f"Do the task with your tools.\n{known}"},
        {"role": "user", "content": task},
    ]
    async with AsyncOpenAI() as model:
        while True:
            reply = await model.chat.completions.create(model=MODEL, messages=messages, tools=tools)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return messages
            for wanted in message.tool_calls:
                said = await run(memory, wanted.function.name, json.loads(wanted.function.arguments))
                messages.append({"role": "tool", "tool_call_id": wanted.id, "content": said})


async def main(task: str) -> None:
    async with hindsight() as memory:
        recalled = await call(memory, "hindsight_recall", {"query": task})
        print("Known before:", recalled["context"] or "nothing")
        messages = await work(memory, task, recalled["context"])
        print("Answer:", messages[-1].get("content"))
        if recalled["hits"]:
            await call(memory, "hindsight_feedback", {"recall_id": recalled["recall_id"], "success": True})
        # The conversation as it is: without the system message, in the form of the model's own API.
        trace = {"task": task, "format": "openai", "steps": messages[1:], "outcome": "succeeded", "remember": True}
        recorded = await call(memory, "hindsight_record_trace", trace)
        print("Recorded:", recorded["trace_id"], recorded["reflection"]["status"])


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Export the invoices of March 2026"))
