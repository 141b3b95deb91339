"""Callers who stop in the middle, over a socket to the real server: none keeps a thread, or the process, for long."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from hindsight_site import patience
from hindsight_site.patience import Patience
from tests.site.test_web import HOST, server, speak

__all__ = ["server"]

pytestmark = pytest.mark.timeout(120)
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n"
HALVES = (
    b"GET /healthz HTTP/1.1\r\n" + HOST,  # of the headers
    b"POST /login/ HTTP/1.1\r\n" + HOST + FORM + b"username=a",  # of the body
)


@contextmanager
def lines(port: int, count: int, *sent: bytes) -> Iterator[list[socket.socket]]:
    """So many connections on which these were sent, one of them on each; all kept open."""
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(count)]
        for at, line in enumerate(made):
            line.sendall(sent[at % len(sent)])
        yield made


def seconds_until_served(port: int) -> float:
    begun = time.monotonic()
    status, _, body = speak(port, HEALTH)
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    return time.monotonic() - begun


def test_who_stops_in_the_middle_is_cut_off(server, db) -> None:
    with lines(server[0], 10, *HALVES) as made:  # more than there are threads
        time.sleep(0.3)
        assert seconds_until_served(server[0]) < 4 * patience.WAIT_SECONDS  # it was never
        for line in made:
            while line.recv(65_536):  # an answer or none, and then the end
                pass


def test_who_sends_nothing_takes_no_thread(server, db) -> None:
    with lines(server[0], 20, b""):
        time.sleep(0.3)
        assert seconds_until_served(server[0]) < 8  # a thread for each would have to wait ten


def test_who_keeps_an_ended_connection_open_stops_nobody(server, db) -> None:
    with lines(server[0], 20, HEALTH):
        time.sleep(0.3)
        assert seconds_until_served(server[0]) < 15  # two seconds with each of the twenty, it was


def test_who_sends_slowly_but_steadily_is_waited_for(monkeypatch) -> None:
    monkeypatch.setattr(patience, "WAIT_SECONDS", 0.3)
    monkeypatch.setattr(patience, "SLOWEST", 1_000)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        waiting = Patience(ours)
        for _ in range(4):
            theirs.sendall(b"x" * 200)  # allows 0.2 s more
            time.sleep(0.1)
            assert waiting.recv(65_536)
        theirs.sendall(b"x")
        assert waiting.recv(1) == b"x"
        begun = time.monotonic()
        with pytest.raises(ConnectionResetError):
            waiting.recv(1)
        assert time.monotonic() - begun < 2
        theirs.sendall(b"x")  # a drip does not renew it
        waiting.recv(1)
        with pytest.raises(ConnectionResetError):
            waiting.recv(1)
        assert time.monotonic() - begun < 2
