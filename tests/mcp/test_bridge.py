"""The bridge as a process: lines in, lines out, and everything that can go wrong between."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import make_certificate, server_context
from tests.mcp.bridge_server import SECRET, Site

ROOT = Path(__file__).resolve().parents[2]
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


class Running:
    """A bridge and the two ends of its pipes."""

    def __init__(self, *arguments: str, token: str = SECRET, collect: bool = True, **environment: str) -> None:
        ours = ("HINDSIGHT_TOKEN", "HINDSIGHT_TOKEN_FILE", "HINDSIGHT_URL")
        inherited = {name: value for name, value in os.environ.items() if name not in ours}
        given = {"HINDSIGHT_TOKEN": token} if token else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hindsight_site.mcp.bridge.cli", *arguments],
            cwd=ROOT,
            env={**inherited, **given, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: queue.Queue[bytes] = queue.Queue()
        if collect:
            threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)

    def send_line(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, ident: Any = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if ident is not None:
            message["id"] = ident
        self.send_line(json.dumps(message, ensure_ascii=False).encode())

    def next(self, timeout: float = 20) -> dict[str, Any]:
        line = self.lines.get(timeout=timeout)
        assert line.endswith(b"\n")
        return json.loads(line.decode("utf-8"))

    def ask(self, method: str, ident: Any = 1, **params: Any) -> dict[str, Any]:
        self.send(method, ident, **params)
        return self.next()

    def close(self, timeout: float = 20) -> tuple[int, str]:
        """Close its input; return the exit code and what it logged."""
        self.process.stdin.close()
        return self.wait(timeout)

    def wait(self, timeout: float = 20) -> tuple[int, str]:
        code = self.process.wait(timeout)
        return code, self.process.stderr.read().decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(OSError):
                pipe.close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.end()


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    started = []

    def begin(*arguments: str, **options: Any) -> Running:
        started.append(Running(*arguments, **options))
        return started[-1]

    yield begin
    for running in started:
        running.kill()


@pytest.fixture
def bridge(site, start) -> Running:
    return start("--url", site.url)


# --- The way there and back ---------------------------------------------------------------------------


def test_requests_and_notifications_pass(site, bridge) -> None:
    assert bridge.ask("initialize", "a", protocolVersion="2025-06-18")["result"]["protocolVersion"] == "2025-06-18"
    bridge.send("notifications/initialized")
    assert bridge.ask("echo", 2, text="Übergröße 雪 😀")["result"] == {"echo": {"text": "Übergröße 雪 😀"}}
    code, log = bridge.close()
    assert (code, log) == (0, "")
    assert bridge.lines.empty()
    assert sorted(message["method"] for _, message in site.state.seen) == [
        "echo", "initialize", "notifications/initialized",
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_what_initialize_settles_goes_into_the_header(site, bridge, version) -> None:
    bridge.ask("initialize", 1, protocolVersion=version)
    bridge.ask("tools/call", 2, name="x")
    (first, _), (second, _) = site.state.seen
    assert "mcp-protocol-version" not in first
    assert second["mcp-protocol-version"] == version
    assert "mcp-method" not in second
    assert second["accept"] == "application/json, text/event-stream"


def test_the_stateless_revision_brings_its_own_headers(site, bridge) -> None:
    bridge.ask("tools/call", 1, name="erinnern-ß", _meta=MODERN)
    bridge.ask("resources/read", 2, uri="hindsight://scopes", _meta=MODERN)
    bridge.ask("tools/list", 3, _meta=MODERN)
    call, read, listed = (headers for headers, _ in site.state.seen)
    assert {h["mcp-protocol-version"] for h in (call, read, listed)} == {"2026-07-28"}
    assert (call["mcp-method"], call["mcp-name"]) == ("tools/call", "=?base64?ZXJpbm5lcm4tw58=?=")
    assert read["mcp-name"] == "hindsight://scopes"
    assert "mcp-name" not in listed


def test_answers_come_as_they_are_ready(bridge) -> None:
    begun = time.monotonic()
    for number in range(10):
        bridge.send("sleep", number, seconds=3.0)
    bridge.send("echo", "quick")
    assert bridge.next()["id"] == "quick"
    assert {bridge.next()["id"] for _ in range(10)} == set(range(10))
    assert time.monotonic() - begun < 15  # one after the other: thirty


def test_a_stream_passes_event_by_event(bridge) -> None:
    bridge.send("stream", 5, notes=2)
    assert [bridge.next().get("method") for _ in range(2)] == ["notifications/progress"] * 2
    assert bridge.next() == {"jsonrpc": "2.0", "id": 5, "result": {"done": True}}
    bridge.send("stream", 6, notes=1, finish=False)
    assert bridge.next()["params"] == {"note": "雪"}
    assert "without an answer" in bridge.next()["error"]["message"]


def test_a_megabyte_and_more(bridge) -> None:
    assert len(bridge.ask("big", 1, characters=1_000_000)["result"]["text"]) == 1_000_000
    text = "雪" * 500_000
    assert bridge.ask("echo", 2, text=text)["result"]["echo"]["text"] == text


def test_an_answer_is_one_line(bridge) -> None:
    assert bridge.ask("pretty", 1)["result"] == {}


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"[]", b'"x"', b"null", b"[" * 100_000])
def test_what_is_no_message_is_answered_as_such(bridge, line) -> None:
    bridge.send_line(line)
    answer = bridge.next()
    assert answer["id"] is None
    assert answer["error"]["code"] in (-32700, -32600)
    assert bridge.ask("echo", 1)["result"]


# --- Cancelling ---------------------------------------------------------------------------------------


def test_a_cancelled_stateless_request_is_cut_off(site, bridge) -> None:
    bridge.send("stream", 1, notes=400, pause=0.05, _meta=MODERN)
    bridge.next()
    bridge.send("notifications/cancelled", requestId=1)
    assert site.state.closed_early.wait(10)
    assert [m["method"] for _, m in site.state.seen] == ["stream"]
    left = []
    bridge.send("echo", 2)
    while (answer := bridge.next())["id" if "id" in answer else "method"] != 2:
        left.append(answer)
    assert all("id" not in answer for answer in left)


def test_before_that_the_server_is_told(site, bridge) -> None:
    bridge.ask("initialize", 0, protocolVersion="2025-11-25")
    bridge.send("sleep", 1, seconds=1.5)
    bridge.send("notifications/cancelled", requestId=1)
    assert bridge.next()["id"] == 1
    assert "notifications/cancelled" in [message["method"] for _, message in site.state.seen]


# --- Tokens -------------------------------------------------------------------------------------------


def test_one_exchange_serves_many(site, bridge) -> None:
    for number in range(20):
        bridge.send("echo", number)
    assert {bridge.next()["id"] for _ in range(20)} == set(range(20))
    assert site.state.exchanges == 1


def test_a_token_is_renewed_before_it_ends(site, bridge) -> None:
    site.state.expires_in = 1.0  # renewed after 0.8 s
    bridge.ask("echo", 1)
    bridge.ask("echo", 2)
    assert site.state.exchanges == 1
    time.sleep(0.9)
    bridge.ask("echo", 3)
    assert site.state.exchanges == 2
    assert len(site.state.seen) == 3  # none was refused


def test_a_refused_token_is_renewed_once(site, bridge) -> None:
    bridge.ask("echo", 1)
    site.state.accepted.clear()
    assert bridge.ask("echo", 2)["result"]
    assert site.state.exchanges == 2


def test_a_token_refused_twice_is_the_clients_to_know(site, bridge) -> None:
    bridge.ask("echo", 1)
    site.state.accepted = _Nothing()
    answer = bridge.ask("echo", 2)
    assert answer == {"jsonrpc": "2.0", "id": 2, "error": {"code": -32001, "message": "token revoked"}}
    assert site.state.exchanges == 2


class _Nothing(set):
    def __contains__(self, value: object) -> bool:
        return False


def test_a_revoked_secret_is_said_in_the_servers_words(site, bridge) -> None:
    bridge.ask("echo", 1)
    site.state.accepted.clear()
    site.state.refuse_secret = "This token was revoked."
    assert "This token was revoked." in bridge.ask("echo", 2)["error"]["message"]
    site.state.refuse_secret = ""
    assert bridge.ask("echo", 3)["result"]
    _, log = bridge.close()
    assert log.count("This token was revoked.") == 1
    assert SECRET not in log


def test_the_token_file_is_read_again(site, start, tmp_path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    bridge = start("--url", f"{site.url}/mcp/", token="", HINDSIGHT_TOKEN_FILE=str(file))
    bridge.ask("echo", 1)
    site.state.accepted.clear()
    file.write_text("hs_other")
    assert "unknown" in bridge.ask("echo", 2)["error"]["message"]
    file.unlink()
    assert "cannot be read" in bridge.ask("echo", 3)["error"]["message"]


# --- A server that goes and comes ---------------------------------------------------------------------


def test_a_server_that_is_away_is_waited_for(site, start) -> None:
    port, state = site.port, site.state
    bridge = start("--url", site.url)
    bridge.ask("echo", 1)
    site.end()
    bridge.send("echo", 2)
    time.sleep(1.5)
    assert bridge.lines.empty()
    again = Site(port, state)
    try:
        assert bridge.next()["result"]
        assert len(state.seen) == 2
    finally:
        again.end()


def test_patience_ends(start) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        bridge = start("--url", f"http://127.0.0.1:{port}", "--patience", "0.5")
        assert "nothing listens there" in bridge.ask("echo", 1)["error"]["message"]


@pytest.mark.parametrize("method", ["hang up", "half"])
def test_what_may_have_been_done_is_not_repeated(site, bridge, method) -> None:
    answer = bridge.ask(method, 3)
    assert answer["error"]["code"] == -32000
    assert len(site.state.seen) == 1
    assert bridge.ask("echo", 4)["result"]


def test_a_silent_server_is_given_up(site, start) -> None:
    bridge = start("--url", site.url, "--silence", "0.4")
    assert "did not answer in time" in bridge.ask("sleep", 1, seconds=3)["error"]["message"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"status": 502, "body": "<html>"}, "status 502"),
        ({"status": 404, "body": '{"detail": "There is nothing."}', "type": "application/json"}, "There is nothing."),
        ({"status": 307}, "https://elsewhere.example"),
        ({"status": 200, "body": "hello"}, "status 200"),
        ({"status": 200, "body": "[]", "type": "application/json"}, "status 200"),
        ({"status": 202}, "status 202"),
    ],
)
def test_other_answers_become_errors(bridge, params, words) -> None:
    answer = bridge.ask("status", 9, **params)
    assert answer["id"] == 9
    assert words in answer["error"]["message"]


def test_an_error_of_the_servers_passes_with_our_id(bridge) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no"}}
    answer = bridge.ask("status", 9, status=400, body=json.dumps(error), type="application/json")
    assert answer == {**error, "id": 9}


# --- The end ------------------------------------------------------------------------------------------


def test_after_the_end_of_input_answers_still_come(bridge) -> None:
    bridge.send("sleep", 1, seconds=1)
    assert bridge.close() == (0, "")
    assert bridge.next()["result"] == {"slept": 1}


def test_sigterm_leaves_no_request_without_an_answer(bridge) -> None:
    bridge.send("sleep", 1, seconds=15)
    bridge.send("echo", 2)
    assert bridge.next()["id"] == 2
    begun = time.monotonic()
    bridge.process.send_signal(signal.SIGTERM)
    code, _ = bridge.wait()
    assert code == 0
    assert time.monotonic() - begun < 4
    assert "stopped" in bridge.next()["error"]["message"]


def test_a_client_that_reads_no_more(site, start) -> None:
    bridge = start("--url", site.url, collect=False)
    bridge.process.stdout.close()
    bridge.send("echo", 2)
    code, log = bridge.close()
    assert code == 0
    assert "Traceback" not in log


# --- What cannot be started ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        ((), {}, "There is no address"),
        (("--url", "localhost:8000"), {}, "is not the address of a server"),
        (("--url", "ftp://x"), {}, "is not the address of a server"),
        (("--url", "http://[::1"), {}, "is not the address of a server"),
        (("--url", "https://user:word@x"), {}, "must hold no name"),
        (("--url", "http://127.0.0.1"), {"token": ""}, "There is no token"),
        (("--url", "http://127.0.0.1"), {"token": "secret word"}, "is not a Hindsight token"),
        (("--url", "http://127.0.0.1"), {"token": "a.b.c"}, "access token"),
        (("--url", "http://127.0.0.1"), {"HINDSIGHT_TOKEN_FILE": "/nowhere/token"}, "cannot be read"),
        (("--url", "http://127.0.0.1", "--patience", "nan"), {}, "--patience"),
    ],
)
def test_mistakes_are_one_line(start, arguments, environment, words) -> None:
    code, log = start(*arguments, **environment).wait()
    assert code == 2
    assert words in log
    assert log.count("\n") == 1
    assert "secret word" not in log


def test_an_untrusted_certificate(site, start, tmp_path) -> None:
    certificate = make_certificate(tmp_path)
    site.socket = server_context(certificate).wrap_socket(site.socket, server_side=True)
    url = site.url.replace("http:", "https:")
    answer = start("--url", url).ask("echo", 1)
    assert "certificate" in answer["error"]["message"]
    trusting = start("--url", url, SSL_CERT_FILE=str(certificate))
    assert trusting.ask("echo", 2)["result"]
