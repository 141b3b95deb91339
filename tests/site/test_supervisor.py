"""The supervisor, with children that are a few lines of Python."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hindsight_site import supervisor
from hindsight_site.supervisor import Address, CannotStart, Child, Program

# What every child does first: take the line and wait for the word.
PRELUDE = """
import os, signal, socket, sys, time
line = socket.socket(fileno=int(sys.argv[sys.argv.index("--line") + 1]))
line.recv(3)
"""
SLEEPER = "print('at work', flush=True); line.sendall(b'ready\\n'); time.sleep(60)"


class Enough(Exception):
    """Raised by a test's `look_after` to leave the loop that otherwise never ends."""


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """`stop` leaves the signals ignored, for a process that is about to end. The tests are not."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """Start a child that runs the given lines; whatever was started is ended after the test."""
    started: list[Child] = []

    def start(code: str, *, announces: bool = False, release: bool = True) -> Child:
        command = (sys.executable, "-c", PRELUDE + code)
        child = supervisor.start(Program("test", command, tmp_path / "test.log", announces=announces))
        started.append(child)
        if release:
            supervisor.release(child)
        return child

    yield start
    supervisor.stop(started, grace=0)


@pytest.fixture
def healthy() -> Iterator[Address]:
    """The address of a server that answers 200 to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield Address("127.0.0.1", server.server_port)
        server.shutdown()


def look_until(is_done: Callable[[], bool], seconds: float = 10.0) -> Callable[[], bool]:
    """A `look_after` that leaves the loop when something has come about, and fails when it does not."""
    deadline = time.monotonic() + seconds

    def look_after() -> bool:
        assert time.monotonic() < deadline, "it did not come about"
        if is_done():
            raise Enough
        return False

    return look_after


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False


def test_a_child_waits_for_the_word_and_writes_to_its_log(launch, healthy, tmp_path: Path) -> None:
    child = launch(SLEEPER, announces=True, release=False)
    with pytest.raises(CannotStart, match="not ready after 0 s"):
        supervisor.wait_until_ready([child], healthy, timeout=0.4)
    assert (tmp_path / "test.log").read_text() == ""
    supervisor.release(child)
    supervisor.wait_until_ready([child], healthy, timeout=20)
    assert (tmp_path / "test.log").read_text() == "at work\n"


def test_a_site_that_does_not_answer_is_not_ready(launch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())
    child = launch(SLEEPER, announces=True)
    with pytest.raises(CannotStart, match="not ready"):
        supervisor.wait_until_ready([child], address, timeout=0.5)


def test_a_child_that_cannot_start_is_quoted(launch, healthy) -> None:
    child = launch("sys.exit('the disk is on fire')", announces=True)
    with pytest.raises(CannotStart, match="test process ended with exit code 1: the disk is on fire"):
        supervisor.wait_until_ready([child], healthy, timeout=20)


def test_a_killed_child_comes_back_with_its_pause_growing(launch) -> None:
    child = launch(SLEEPER)
    said: list[str] = []
    for deaths, pause in ((1, "0.5"), (2, "1")):
        first = child.process.pid
        os.kill(first, signal.SIGKILL)
        with pytest.raises(Enough):
            supervisor.watch([child], look_until(lambda pid=first: child.process.pid != pid), said.append)
        assert child.deaths == deaths
        assert is_alive(child.process.pid)
        assert said[-1] == f"The test process was ended by signal 9; it is started again in {pause} s."


def test_children_are_started_anew_when_asked_for(launch) -> None:
    child = launch(SLEEPER)
    first = child.process.pid
    rounds = iter([True])
    until_replaced = look_until(lambda: child.process.pid != first)
    with pytest.raises(Enough):
        supervisor.watch([child], lambda: next(rounds, False) or until_replaced(), lambda line: None)
    assert not is_alive(first)


def test_stop_is_kind_to_a_child_that_listens(launch, tmp_path: Path) -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit('goodbye')); "
    child = launch(code + "print('up', flush=True); time.sleep(60)")
    while "up" not in (tmp_path / "test.log").read_text():
        time.sleep(0.05)
    supervisor.stop([child], grace=20)
    assert child.process.returncode == 1
    assert "goodbye" in (tmp_path / "test.log").read_text()


def test_stop_kills_a_child_that_hangs_and_its_forks(launch, tmp_path: Path) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); "
    child = launch(deaf + "os.write(1, b'%d ' % os.getpid()); time.sleep(60)")
    log = tmp_path / "test.log"
    while len(log.read_text().split()) < 2:
        time.sleep(0.05)
    begun = time.monotonic()
    supervisor.stop([child], grace=0.5)
    assert 0.5 <= time.monotonic() - begun < 10
    assert child.process.returncode == -signal.SIGKILL
    while any(is_alive(int(pid)) for pid in log.read_text().split()):  # their files are closed a moment before
        assert time.monotonic() - begun < 10
        time.sleep(0.05)


def test_a_long_log_is_put_aside(launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LOG_SIZE", 10)
    (tmp_path / "test.log").write_text("a line of an earlier start\n")
    launch("pass").process.wait()
    assert (tmp_path / "test.log").read_text() == ""
    assert (tmp_path / "test.1.log").read_text() == "a line of an earlier start\n"


def test_a_taken_port_is_one_clear_line() -> None:
    with supervisor.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=f"^Port {port} on 127.0.0.1 is taken: [^\n]* --port[^\n]*$"):
            supervisor.listen("127.0.0.1", port)


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 0), ("no such host", 0), ("127.0.0.1", 99_999)])
def test_an_address_that_is_none_is_one_clear_line(host: str, port: int) -> None:
    with pytest.raises(CannotStart, match=f"^{host} port {port} is no address of this machine[^\n]*$"):
        supervisor.listen(host, port)
