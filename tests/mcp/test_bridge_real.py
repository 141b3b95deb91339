"""The bridge between the official stdio client and the real server, killed and restarted meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from hindsight_site.accounts import actions
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.mcp.tools import TABLE
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}


class Web:
    """`manage.py web` on the tests' database."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        parts = connection.settings_dict
        login = f"{parts['USER']}:{parts['PASSWORD']}" if parts["PASSWORD"] else parts["USER"]
        database = f"postgresql://{login}@{parts['HOST']}:{parts['PORT']}/{parts['NAME']}"
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "web", "--bind", f"127.0.0.1:{self.port}", "--workers", "1"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": database, "SITE_URL": self.url, "SECRET_KEY": "of the tests"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            probe = HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                probe.request("GET", "/healthz")
                if probe.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.1)
            finally:
                probe.close()
        raise AssertionError("the web server did not come up")

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    web.start()
    web.wait()
    yield web
    web.kill()


@asynccontextmanager
async def bridged(url: str, secret: str, mode: str = "auto") -> AsyncIterator[Client]:
    """The client that a desktop program would be, with the bridge as its stdio server."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hindsight_site.mcp.bridge.cli", "--url", url],
        env={"HINDSIGHT_TOKEN": secret, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    async with Client(stdio_client(command), mode=mode, read_timeout_seconds=60) as client:
        yield client


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), timeout=120))


def revoke_all(agent) -> None:
    """In a thread of its own, which has a connection of its own."""
    try:
        with team_transaction(agent.team):
            for token in ApiToken.objects.of(agent.team):
                actions.revoke_token(team=agent.team, by=SYSTEM, token=token)
    finally:
        connection.close()


def test_a_server_killed_under_the_bridge(web, agent) -> None:
    secret = factories.token(agent.team, agent)

    async def work() -> None:
        async with bridged(web.url, secret) as client:
            assert client.session.protocol_version == MODES["auto"]
            noted = await client.call_tool("hindsight_remember", {"content": "测试之前先运行迁移 🤖"})
            memory = noted.structured_content["memory"]
            web.kill()
            await asyncio.sleep(1.2)  # what a killed process had open is closed a moment later
            asking = asyncio.create_task(client.call_tool("hindsight_get", {"memory_id": memory}))
            await asyncio.sleep(1)
            assert not asking.done()
            web.start()
            found = await asking
            assert "测试之前先运行迁移 🤖" in str(found.structured_content)
            at_once = [client.call_tool("hindsight_get", {"memory_id": memory}) for _ in range(20)]
            assert not any(result.is_error for result in await asyncio.gather(*at_once))
            await asyncio.to_thread(revoke_all, agent)
            with pytest.raises(MCPError, match="revoked"):
                await client.call_tool("hindsight_get", {"memory_id": memory})

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_the_stdio_client(live_server, settings, agent, mode) -> None:
    settings.SITE_URL = live_server.url
    secret = factories.token(agent.team, agent)

    async def work() -> None:
        async with bridged(live_server.url, secret, mode) as client:
            assert client.session.protocol_version == MODES[mode]
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TABLE)
            result = await client.call_tool("hindsight_recall", {"query": "wie groß ist 雪?", "min_relevance": 0})
            assert result.structured_content["status"] == "no_match"
            failed = await client.call_tool("hindsight_get", {"memory_id": "x"})
            assert failed.is_error

    run(work)
