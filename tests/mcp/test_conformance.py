"""The official conformance tool against a real server, in both eras of the protocol.

Skipped where it is not installed: `npm install --prefix tests/mcp/conformance` brings it, and Node 22 with it.
Scenarios about what this server does not offer (images, sampling, subscriptions, tools that the tool's authors
expect by name) are listed in `conformance/expected-failures.yaml`; the tool complains when one of them passes.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.mcp.caller import McpCaller

HOME = Path(__file__).parent / "conformance"
BIN = HOME / "node_modules" / ".bin"
TOOL = BIN / "conformance"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not TOOL.exists(), reason="run: npm install --prefix tests/mcp/conformance"),
]
PASSED = re.compile(r"(\d+) passed, (\d+) failed", re.IGNORECASE)


class Doorman(BaseHTTPRequestHandler):
    """Forwards everything with a token: the tool has no option for one."""

    protocol_version = "HTTP/1.1"
    target, token = "", ""

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {**self.headers, "Authorization": f"Bearer {self.token}"}
        there = http.client.HTTPConnection(self.target, timeout=60)
        there.request(self.command, self.path, body, headers)
        answer = there.getresponse()
        content = answer.read()
        there.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"content-length", "connection", "transfer-encoding", "date", "server"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_OPTIONS = forward  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def doorman(target: str, token: str) -> Iterator[str]:
    handler = type("Doorman", (Doorman,), {"target": urlsplit(target).netloc, "token": token})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def node(*command: str) -> subprocess.CompletedProcess[str]:
    path = f"{HOME / 'node_modules' / 'node' / 'bin'}:{BIN}:{os.environ['PATH']}"
    return subprocess.run(
        command, capture_output=True, text=True, timeout=170, cwd=HOME, env={**os.environ, "PATH": path}, check=False
    )


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_conformance(live_server, agent, revision, tmp_path) -> None:
    caller = McpCaller(agent.team, agent)
    with doorman(live_server.url, caller.token) as url:
        done = node(
            "conformance", "server", "--url", url, "--requirements", revision, "--output-dir", str(tmp_path),
            "--expected-failures", str(HOME / f"expected-failures-{revision}.yaml"),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.skipif(not (BIN / "mcp-inspector").exists(), reason="run: npm install --prefix tests/mcp/conformance")
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
