"""The official conformance tool and inspector against a real server, in both eras of the protocol.

Skipped where they are not installed: `make test` does that where it finds npm, which brings Node 22 as well.
The conformance tool asks for tools, resources and prompts by names of its own: `conformance/fixture.py` offers them in
the place of Hindsight's, through the same endpoint. What does not pass, and why, stands in
`conformance/expected-failures-….yaml`; the tool complains when one of these passes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.caller import McpCaller
from tests.mcp.conformance.doorman import doorman

HOME = Path(__file__).parent / "conformance"
BIN = HOME / "node_modules" / ".bin"
INSTALLED = HOME / "node_modules" / ".installed"
MISSING = "run: sh .ci/npm tests/mcp/conformance (which wants npm)"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSTALLED.exists(), reason=MISSING),
]


def node(*command: str) -> subprocess.CompletedProcess[str]:
    path = f"{HOME / 'node_modules' / 'node' / 'bin'}:{BIN}:{os.environ['PATH']}"
    return subprocess.run(
        command, capture_output=True, text=True, timeout=170, cwd=HOME, env={**os.environ, "PATH": path}, check=False
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_conformance(live_server, settings, agent, revision, tmp_path) -> None:
    settings.ROOT_URLCONF = "tests.mcp.conformance.urls"
    caller = McpCaller(agent.team, agent)
    with doorman(f"{live_server.url}/mcp", caller.token) as url:
        done = node(
            "conformance", "server", "--url", f"{url}/mcp", "--requirements", revision, "--output-dir", str(tmp_path),
            "--expected-failures", str(HOME / f"expected-failures-{revision}.yaml"),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.django_db(transaction=True)
def test_the_inspector(live_server, settings, agent) -> None:
    """The official inspector's command line connects with a token alone, lists the tools and calls one."""
    settings.SITE_URL = live_server.url
    token = McpCaller(agent.team, agent).token

    def inspect(*what: str) -> str:
        url, header = f"{live_server.url}/mcp", f"Authorization: Bearer {token}"
        done = node("mcp-inspector", "--cli", "--server-url", url, "--transport", "http", "--header", header, *what)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    assert '"hindsight_recall"' in inspect("--method", "tools/list")
    called = inspect(
        "--method", "tools/call", "--tool-name", "hindsight_remember", "--tool-arg", "content=Gate 7 is for pallets."
    )
    assert '"status": "active"' in called


# The others are about logging in, or about what a client makes of a tool's schema: the bridge's own login is in
# test_bridge.py, and it passes on what a client sends without knowing any schema.
@pytest.mark.parametrize(
    ("scenario", "revision"),
    [
        ("initialize", "2025-11-25"),
        ("tools_call", "2025-11-25"),
        ("tools_call", "2026-07-28"),
        ("request-metadata", "2026-07-28"),
        ("http-standard-headers", "2026-07-28"),
    ],
)
def test_the_bridge_as_a_client(scenario, revision, tmp_path) -> None:
    """The tool's server finds nothing wrong with what comes through the bridge."""
    done = node(
        "conformance", "client", "--command", f"{sys.executable} {HOME / 'client.py'}", "--scenario", scenario,
        "--spec-version", revision, "--output-dir", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
