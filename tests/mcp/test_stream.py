"""Answers that come bit by bit: what a waiting tool says on the way, and what becomes of it when nobody listens."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.mcp import waiting
from reflection import tasks
from tests.mcp.caller import McpCaller
from tests.mcp.test_tools import TASK

pytestmark = pytest.mark.django_db(transaction=True)
STREAM = "text/event-stream"


@pytest.fixture(autouse=True)
def _tell_often(monkeypatch) -> None:
    monkeypatch.setattr(waiting, "TELL_EVERY_SECONDS", 0.2)


@pytest.fixture
def reflection(mcp) -> str:
    """The id of one that waits for a worker."""
    return mcp.call("hindsight_record_trace", **TASK)["reflection"]["id"]


def ask(
    mcp: McpCaller, ident: str, *, token: Any = "p1", accept: str = f"application/json, {STREAM}", **more: Any
) -> Any:
    """Send hindsight_status as the older revision does; `token` is what the client wants to be told with."""
    meta = {} if token is None else {"progressToken": token}
    params = {"name": "hindsight_status", "arguments": {"id": ident, "wait_seconds": 1, **more}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    return mcp.post(body, Mcp_Protocol_Version="2025-11-25", Accept=accept)


def messages(answer: Any) -> list[dict[str, Any]]:
    """The JSON-RPC messages of a stream."""
    events = b"".join(answer.streaming_content).decode().strip().split("\n\n")
    lines = [event.split("\n") for event in events]
    assert all(len(two) == 2 and two[0] == "event: message" for two in lines), events
    return [json.loads(two[1].removeprefix("data: ")) for two in lines]


def test_a_waiting_tool_says_how_far_it_is(mcp, reflection) -> None:
    answer = ask(mcp, reflection)
    assert answer.headers["Content-Type"] == STREAM
    assert answer.headers["X-Request-ID"]
    *told, last = messages(answer)
    assert len(told) >= 2
    assert {one["method"] for one in told} == {"notifications/progress"}
    assert {one["params"]["progressToken"] for one in told} == {"p1"}
    assert {one["params"]["total"] for one in told} == {1}
    so_far = [one["params"]["progress"] for one in told]
    assert so_far == sorted(set(so_far))
    assert "queued" in told[0]["params"]["message"]
    assert last["id"] == 7
    assert last["result"]["structuredContent"]["status"] == "queued"


@pytest.mark.parametrize(
    "given",
    [
        {"token": None},
        {"accept": "application/json"},
        {"accept": "*/*"},
        {"wait_seconds": 0},
        {"accept": f"application/json, {STREAM};q=0"},
    ],
)
def test_who_does_not_ask_for_it_gets_one_answer(mcp, reflection, given) -> None:
    answer = ask(mcp, reflection, **given)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["result"]["structuredContent"]["status"] == "queued"


def test_what_has_ended_is_told_at_once(mcp, reflection) -> None:
    tasks.reflect(str(mcp.team.pk), reflection)
    answer = ask(mcp, reflection, wait_seconds=20)
    assert answer.headers["Content-Type"] == "application/json"


def test_refusals_keep_their_status(mcp, reflection) -> None:
    """The stream begins with the first thing to tell, so what is refused before that is no stream."""
    reader = McpCaller(mcp.team, mcp.agent, ["trace:write"])
    assert ask(reader, reflection).status_code == 403
    assert ask(mcp, "0" * 32).json()["result"]["isError"] is True


@pytest.mark.parametrize("token", [{"x": 1}, [], 1.5], ids=["object", "list", "fraction"])
def test_a_progress_token_is_text_or_a_number(mcp, reflection, token) -> None:
    assert ask(mcp, reflection, token=token).json()["error"]["code"] == -32602


def test_what_fails_on_the_way_is_an_error_in_the_stream(mcp, reflection, monkeypatch, caplog) -> None:
    answer = ask(mcp, reflection, wait_seconds=5)
    stream = iter(answer.streaming_content)
    assert b"notifications/progress" in next(stream)
    monkeypatch.setattr(waiting, "TELL_EVERY_SECONDS", "broken, with secrets")
    error = json.loads(b"".join(stream).decode().strip().split("\n\n")[-1].partition("data: ")[2])["error"]
    assert error["code"] == -32603
    assert error["data"]["request_id"] == answer.headers["X-Request-ID"]
    assert "secrets" not in json.dumps(error)
    assert "unhandled error in the MCP endpoint" in caplog.text


def test_who_hangs_up_is_waited_for_no_longer(mcp, reflection) -> None:
    answer = ask(mcp, reflection, wait_seconds=20)
    stream = iter(answer.streaming_content)
    next(stream)
    began = time.monotonic()
    answer.close()
    assert time.monotonic() - began < 1
    assert list(stream) == []
    with team_transaction(mcp.team):
        pass  # nothing of it is left open on this connection


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_side_by_side(live_server, settings, agent, mode) -> None:
    """Four streams at once over HTTP, each with its own progress and its own end."""
    settings.SITE_URL = live_server.url
    mcp = McpCaller(agent.team, agent)
    reflection = mcp.call("hindsight_record_trace", **TASK)["reflection"]["id"]
    told: dict[int, list[float]] = {number: [] for number in range(4)}

    async def one(client: Client, number: int) -> str:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            told[number].append(done)

        arguments = {"id": reflection, "wait_seconds": 1}
        result = await client.call_tool("hindsight_status", arguments, progress_callback=progress)
        return result.structured_content["status"]

    async def work() -> list[str]:
        async with (
            create_mcp_http_client(headers={"Authorization": f"Bearer {mcp.token}"}) as http,
            Client(streamable_http_client(f"{live_server.url}/mcp", http_client=http), mode=mode) as client,
        ):
            return await asyncio.gather(*(one(client, number) for number in told))

    assert asyncio.run(asyncio.wait_for(work(), timeout=60)) == ["queued"] * 4
    assert all(len(progress) >= 2 for progress in told.values())
