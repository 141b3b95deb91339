"""The one way out: public addresses only, the one that was checked, bounded in time and size."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site import outbound


@contextmanager
def listening(answer: Callable[[socket.socket, bytes], None]) -> Iterator[int]:
    """A server on loopback that reads one request and hands its connection to `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                line, _ = server.accept()
                with line:
                    asked = line.recv(65536)
                    while b"Content-Length: 2" in asked and not asked.endswith(b"{}"):
                        asked += line.recv(65536)
                    answer(line, asked)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
    thread.join(5)


@pytest.fixture
def anywhere(settings) -> None:
    settings.OUTBOUND_ALLOW_PRIVATE = True


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.9", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::",
        "fe80::1%eth0", "fc00::1", "224.0.0.1", "255.255.255.255", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "5f00::1", "192.88.99.1",
        "2002:7f00:1::", "nonsense",
    ],
)  # fmt: skip
def test_an_inner_address_is_not_public_however_it_is_written(address) -> None:
    assert not outbound.is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_an_open_address_is_public(address) -> None:
    assert outbound.is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "file:///etc/passwd", "https://", "https://user:pass@example.org/", "example.org",
        "https://exa mple.org/", "https://example.org/\r\nX: y", "https://example.org:99999/", "https://example.org/\u00fc",
        "gopher://127.0.0.1", "", "http://127.0.0.1/", "http://[::1]:8000/", "https://localhost/", "http://a.localhost/",
        "http://10.0.0.8/", "http://[::ffff:10.0.0.8]/",
    ],
)  # fmt: skip
def test_a_url_that_may_never_be_called_is_refused_with_a_reason(url) -> None:
    with pytest.raises(outbound.NotAllowed) as refused:
        outbound.check_url(url)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1"])
def test_loopback_is_refused_by_every_name(host) -> None:
    with pytest.raises(outbound.NotAllowed, match="private or reserved"):
        outbound.send(f"http://{host}:9/")


@given(st.text(max_size=40))
def test_any_text_is_refused_or_taken_apart(url) -> None:
    with suppress(outbound.NotAllowed):
        outbound.check_url(f"https://{url}")


def test_an_answer_comes_whole(anywhere) -> None:
    seen: list[bytes] = []

    def answer(line: socket.socket, asked: bytes) -> None:
        seen.append(asked)
        line.sendall(b"HTTP/1.1 201 Created\r\nX-Say: hi\r\nContent-Length: 4\r\n\r\nmade")

    with listening(answer) as port:
        got = outbound.send(f"http://127.0.0.1:{port}/in?x=1", body=b"{}", headers={"X-A": "b"})
    assert (got.status, got.headers["x-say"], got.body, got.is_cut) == (201, "hi", b"made", False)
    assert seen[0].startswith(b"POST /in?x=1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{port}".encode() in seen[0]
    assert seen[0].endswith(b"{}")


def test_a_redirect_is_not_followed(anywhere) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with listening(lambda line, _: line.sendall(moved)) as port:
        assert outbound.send(f"http://127.0.0.1:{port}/").status == 302


def test_a_long_answer_is_cut(anywhere) -> None:
    def answer(line: socket.socket, _: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000)

    with listening(answer) as port:
        got = outbound.send(f"http://127.0.0.1:{port}/", max_bytes=1_000)
    assert (len(got.body), got.is_cut) == (1_000, True)


@pytest.mark.parametrize("slow", ["header", "body", "nothing"])
def test_a_drip_of_bytes_does_not_outlast_the_time(anywhere, slow) -> None:
    def answer(line: socket.socket, _: bytes) -> None:
        line.sendall({"header": b"HTTP/1.1 200 OK\r\n", "body": b"HTTP/1.1 200 OK\r\n\r\n", "nothing": b""}[slow])
        for _ in range(100):
            time.sleep(0.05)
            if slow != "nothing":
                line.sendall(b"X-A: b\r\n")

    with listening(answer) as port:
        began = time.monotonic()
        with pytest.raises(outbound.Unreachable, match="in time"):
            outbound.send(f"http://127.0.0.1:{port}/", timeout_seconds=0.4)
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nxx"])
def test_what_is_no_answer_is_said_to_be_unreachable(anywhere, said) -> None:
    with listening(lambda line, _: line.sendall(said)) as port, pytest.raises(outbound.Unreachable):
        outbound.send(f"http://127.0.0.1:{port}/")
    with pytest.raises(outbound.Unreachable):
        outbound.send("http://127.0.0.1:9/")
