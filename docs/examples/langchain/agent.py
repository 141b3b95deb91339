"""A LangGraph agent that learns: recall → model ⇄ tools → record, with Hindsight as its memory over MCP.

    pip install langchain-mcp-adapters langgraph langchain-openai
    export HINDSIGHT_URL=http://127.0.0.1:8000 HINDSIGHT_TOKEN=hs_…      # from the Connect page
    export OPENAI_API_KEY=… OPENAI_BASE_URL=https://…/v1 MODEL=…         # any OpenAI-compatible endpoint
    python docs/examples/langchain/agent.py "Export the invoices of March 2026"

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
from typing import Any

from langchain_core.messages import SystemMessage, convert_to_openai_messages
from langchain_core.tools import tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from mcp import ClientSession
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

URL = os.environ.get("HINDSIGHT_URL", "http://127.0.0.1:8000")
TOKEN = os.environ["HINDSIGHT_TOKEN"]
MODEL = os.environ.get("MODEL", "gpt-5-mini")


@tool
def export_invoices(month: str) -> str:
    """Export the invoices of one month as CSV."""
    # The agent's own tool: a system with a rule that its description does not tell.
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


def hindsight() -> MultiServerMCPClient:
    """A client that exchanges the token for short-lived access tokens, and renews them."""
    login = ClientCredentialsOAuthProvider(
        server_url=f"{URL}/mcp", storage=InMemory(), client_id=TOKEN[:11], client_secret=TOKEN, issuer=URL
    )
    return MultiServerMCPClient({"hindsight": {"transport": "streamable_http", "url": f"{URL}/mcp", "auth": login}})


async def call(memory: ClientSession, name: str, **arguments: Any) -> Any:
    """Call one of Hindsight's tools ourselves. What it refuses ends the run."""
    result = await memory.call_tool(name, arguments)
    if result.isError:
        raise SystemExit(result.content[0].text)
    return result.structuredContent


class State(MessagesState):
    task: str
    recalled: dict[str, Any]


async def graph(memory: ClientSession) -> Any:
    """The agent: what it knows is looked up before the model begins, what it did is told when it is done."""
    tools = [export_invoices, *await load_mcp_tools(memory)]
    model = ChatOpenAI(model=MODEL).bind_tools(tools)

    async def recall(state: State) -> dict[str, Any]:
        return {"recalled": await call(memory, "hindsight_recall", query=state["task"])}

    async def think(state: State) -> dict[str, Any]:
        known = SystemMessage(f"Do the task with your tools.\n{state['recalled']['context']}")
        return {"messages": [await model.ainvoke([known, *state["messages"]])]}

    async def record(state: State) -> dict[str, Any]:
        recalled = state["recalled"]
        if recalled["hits"]:
            await call(memory, "hindsight_feedback", recall_id=recalled["recall_id"], success=True)
        trace = {"task": state["task"], "format": "openai", "outcome": "succeeded", "remember": True}
        steps = convert_to_openai_messages(state["messages"])
        recorded = await call(memory, "hindsight_record_trace", steps=steps, **trace)
        print("Recorded:", recorded["trace_id"], recorded["reflection"]["status"])
        return {}

    built = StateGraph(State)
    for name, node in (("recall", recall), ("think", think), ("tools", ToolNode(tools)), ("record", record)):
        built.add_node(name, node)
    built.add_edge(START, "recall")
    built.add_edge("recall", "think")
    built.add_conditional_edges("think", tools_condition, {"tools": "tools", END: "record"})
    built.add_edge("tools", "think")
    built.add_edge("record", END)
    return built.compile()


async def main(task: str) -> None:
    async with hindsight().session("hindsight") as memory:
        agent = await graph(memory)
        done = await agent.ainvoke({"task": task, "messages": [("user", task)]})
    print("Known before:", done["recalled"]["context"] or "nothing")
    print("Answer:", done["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Export the invoices of March 2026"))
