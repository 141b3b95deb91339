"""The official client against a real server over HTTP, in every way of speaking that it knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from django.db import connection
from mcp import Client, MCPError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from hindsight_site.accounts import actions
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.mcp.tools import TABLE
from reflection import tasks
from tests import factories
from tests.accounts.test_oauth import Kept
from tests.mcp.caller import McpCaller
from tests.mcp.test_tools import TASK

pytestmark = pytest.mark.django_db(transaction=True)
MODES = ("auto", "legacy", "2026-07-28")
SPOKEN = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


@pytest.fixture
def url(live_server, settings) -> str:
    settings.SITE_URL = live_server.url
    return f"{live_server.url}/mcp"


@asynccontextmanager
async def connected(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client that sends `token` and nothing else."""
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=30) as client,
    ):
        yield client


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), timeout=60))


@pytest.mark.parametrize("mode", MODES)
def test_everything_it_can_do(url, agent, mode) -> None:
    mcp = McpCaller(agent.team, agent)

    async def work() -> None:
        async with connected(url, mcp.token, mode) as client:
            assert client.session.protocol_version == SPOKEN[mode]
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == set(TABLE)
            recorded = (await client.call_tool("hindsight_record_trace", TASK)).structured_content
            reflection = recorded["reflection"]["id"]
            await asyncio.to_thread(reflect, mcp, reflection)
            done = await client.call_tool("hindsight_status", {"id": reflection, "wait_seconds": 5})
            assert done.structured_content["status"] == "stored"
            query = {"query": "export the invoices", "min_relevance": 0}
            recalled = (await client.call_tool("hindsight_recall", query)).structured_content
            memory = recalled["hits"][0]["memory"]
            given = {"recall_id": recalled["recall_id"], "success": True}
            assert not (await client.call_tool("hindsight_feedback", given)).is_error
            assert (await client.call_tool("hindsight_get", {"memory_id": memory})).structured_content
            noted = await client.call_tool("hindsight_remember", {"content": "测试之前先运行迁移 🤖"})
            again = await client.call_tool("hindsight_reflect", {"trace_id": recorded["trace_id"]})
            assert again.structured_content["status"] == "queued"
            gone = {"memory_id": noted.structured_content["memory"], "action": "delete"}
            assert (await client.call_tool("hindsight_forget", gone)).structured_content["status"] == "forgotten"
            failed = await client.call_tool("hindsight_get", {"memory_id": "x"})
            assert failed.is_error
            assert "memory_id" in failed.content[0].text
            for address in ("hindsight://scopes", f"hindsight://memory/{memory}"):
                assert json.loads((await client.read_resource(address)).contents[0].text)
            assert (await client.list_resource_templates()).resource_templates
            prompt = await client.get_prompt("hindsight_before_task", {"task": "x"})
            assert "hindsight_recall" in prompt.messages[0].content.text

    run(work)


def reflect(mcp: McpCaller, reflection: str) -> None:
    tasks.reflect(str(mcp.team.pk), reflection)
    connection.close()


@pytest.mark.parametrize("mode", MODES)
def test_it_is_told_why_it_may_not(url, agent, mode) -> None:
    narrow = McpCaller(agent.team, agent, ["memory:read"])

    async def without_scope() -> str:
        async with connected(url, narrow.token, mode) as client:
            with pytest.raises(MCPError) as refusal:
                await client.call_tool("hindsight_remember", {"content": "x"})
            return refusal.value.error.message

    assert "memory:write" in run(without_scope)

    async def with_the_wrong_token(token: str) -> str:
        with pytest.raises((MCPError, ExceptionGroup)) as refusal:
            async with connected(url, token, mode) as client:
                await client.list_tools()
        error = refusal.value
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        return str(error)

    assert "exchange it" in run(lambda: with_the_wrong_token(narrow.secret))
    assert "not an access token of ours" in run(lambda: with_the_wrong_token("a.b.c"))


def test_a_revoked_token_dies_within_ten_seconds(url, agent) -> None:
    mcp = McpCaller(agent.team, agent)

    def revoke() -> None:
        with team_transaction(mcp.team):
            token = ApiToken.objects.of(mcp.team).select_related("agent").get(prefix=mcp.secret[3:11])
            actions.revoke_token(team=mcp.team, by=SYSTEM, token=token)
        connection.close()

    async def work() -> None:
        async with connected(url, mcp.token) as client:
            await client.list_tools()
            await asyncio.to_thread(revoke)
            with pytest.raises(MCPError, match="revoked"):
                await client.call_tool("hindsight_recall", {"query": "x"})

    run(work)


def test_forty_calls_at_once(url, agent) -> None:
    mcp = McpCaller(agent.team, agent)
    factories.memory(mcp.agent, "Invoices are exported by month, as YYYY-MM.")

    async def work() -> list[Any]:
        async with connected(url, mcp.token) as client:
            return await asyncio.gather(*(one(client, n) for n in range(40)))

    async def one(client: Client, n: int) -> Any:
        if n % 4:
            return await client.call_tool("hindsight_recall", {"query": f"export invoices {n}", "min_relevance": 0})
        return await client.call_tool(
            "hindsight_remember", {"content": f"Order {n} went to dock {n}.", "tags": [f"n{n}"]}
        )

    results = run(work)
    assert not [result.content[0].text for result in results if result.is_error]
    assert len({json.dumps(result.structured_content) for result in results}) == 40  # nobody got another's answer


def test_a_megabyte_in_and_out(url, agent, settings) -> None:
    token = McpCaller(agent.team, agent).token
    steps = [{"role": "assistant", "content": f"{n} " + "wörter " * 1_800} for n in range(80)]

    async def work() -> str:
        async with connected(url, token) as client:
            given = {"task": "Read a lot", "steps": steps, "outcome": "interrupted"}
            recorded = (await client.call_tool("hindsight_record_trace", given)).structured_content
            return (await client.read_resource(f"hindsight://trace/{recorded['trace_id']}")).contents[0].text

    settings.MCP_MAX_RESOURCE_BYTES = 4 * 1024 * 1024
    text = run(work)
    assert len(text.encode()) > 1_000_000
    assert json.loads(text)["steps"][79]["content"].endswith("wörter ")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancelled_call_disturbs_nothing(url, agent, mode) -> None:
    mcp = McpCaller(agent.team, agent)
    trace, reflection = factories.trace(mcp.agent)

    async def work() -> None:
        async with connected(url, mcp.token, mode) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.call_tool("hindsight_status", {"id": str(reflection.pk), "wait_seconds": 3})
            answer = await client.call_tool("hindsight_status", {"id": str(reflection.pk)})
            assert answer.structured_content["status"] == "queued"

    run(work)


def test_the_address_and_a_token_are_all_it_takes(url, agent) -> None:
    """The client finds by itself who gives out tokens, gets one and, told that it is not enough, another."""
    secret = factories.token(agent.team, agent, ["memory:read", "memory:write"])
    issuer = url.removesuffix("/mcp")

    async def work() -> Any:
        provider = ClientCredentialsOAuthProvider(
            server_url=url, storage=Kept(), client_id=secret[:11], client_secret=secret, issuer=issuer
        )
        async with (
            create_mcp_http_client(auth=provider) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool("hindsight_remember", {"content": "The client logged in by itself."})

    assert run(work).structured_content["status"] == "active"
