"""What gunicorn itself refuses, spoken over a socket to the real server: problem+json, and nothing told back."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

pytestmark = pytest.mark.timeout(120)
ROOT = Path(__file__).resolve().parents[2]
SECRET = "hs_aaaaaaaa_secret"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """`manage.py web` on a port of its own, beside a database it hardly needs; and its log."""
    listener = socket.create_server(("127.0.0.1", 0))
    folder = tmp_path_factory.mktemp("web")
    given = connection.settings_dict
    url = f"postgresql://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}/{given['NAME']}"
    environment = {
        **os.environ, "DATABASE_URL": url, "HINDSIGHT_DATA_DIR": str(folder), "SECRET_KEY": "of the test " * 5,
    }  # fmt: skip
    log = folder / "web.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "web", "--bind", f"fd://{listener.fileno()}", "--workers", "1"],
            cwd=ROOT, env=environment, stderr=stderr, pass_fds=[listener.fileno()],
        )  # fmt: skip
    try:
        yield listener.getsockname()[1], log
    finally:
        process.terminate()
        process.wait(timeout=30)
        listener.close()


def speak(port: int, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and read the answer until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(data)
        received = b""
        while part := line.recv(65_536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    return int(status.split()[1]), headers, body


HOST = b"Host: 127.0.0.1\r\n"
BAD: dict[str, tuple[bytes, int, str]] = {
    "a line that is too long": (b"GET /api/v1/memories?text=" + b"a" * 5_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414,
                                "uri_too_long"),
    "no HTTP": (b"hello there\r\n\r\n", 400, "malformed_request"),
    "a method that is none": (b"G:T /api/v1/me HTTP/1.1\r\n" + HOST + b"\r\n", 400, "malformed_request"),
    "a version that is none": (b"GET /api/v1/me HTTP/9.9\r\n" + HOST + b"\r\n", 400, "malformed_request"),
    "a header without a colon": (b"GET /api/v1/me HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n", 400,
                                 "malformed_request"),
    "a header's name with a space": (
        b"GET / HTTP/1.1\r\n" + HOST + b"Bad Name: " + SECRET.encode() + b"\r\n\r\n", 400, "malformed_request"),
    "a NUL in a header": (
        b"GET / HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + SECRET.encode() + b"\0\r\n\r\n", 400,
        "malformed_request"),
    "too many headers": (
        b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n", 431,
        "headers_too_large"),
    "a header that is too long": (
        b"GET / HTTP/1.1\r\n" + HOST + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n", 431, "headers_too_large"),
    "two lengths": (
        b"POST /api/v1/recall HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400,
        "malformed_request"),
    "a length that is none": (
        b"POST /api/v1/recall HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400, "malformed_request"),
    "a coding that is none": (
        b"POST /api/v1/recall HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked, other\r\n\r\n", 501,
        "unsupported_transfer_coding"),
    "an expectation": (
        b"POST /api/v1/recall HTTP/1.1\r\n" + HOST + b"Expect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417,
        "expectation_failed"),
    "a body in chunks": (
        b"POST /api/v1/recall HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
        b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411, "length_required"),
    "a body in bad chunks": (
        b"POST /oauth/token HTTP/1.1\r\n" + HOST + b"Content-Type: application/x-www-form-urlencoded\r\n"
        b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", 411, "length_required"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_request_is_told_so(server, db, name) -> None:
    port, log = server
    sent, expected, code = BAD[name]
    status, headers, body = speak(port, sent)
    assert status == expected, body
    assert int(headers["content-length"]) == len(body)
    document: dict[str, Any] = json.loads(body)
    assert headers["content-type"] == "application/problem+json"
    assert (document["status"], document["code"]) == (expected, code)
    assert document["request_id"] == headers["x-request-id"]
    assert headers["connection"] == "close"
    assert SECRET not in body.decode()
    time.sleep(0.05)
    assert SECRET not in log.read_text()
    assert "Traceback" not in log.read_text()


def test_the_server_goes_on(server, db) -> None:
    status, headers, body = speak(server[0], b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    lines = [json.loads(line) for line in server[1].read_text().splitlines()]
    assert all(line["levelname"] in {"INFO", "WARNING"} for line in lines)


@pytest.mark.parametrize("path", ["/api/v1/recall", "/oauth/token", "/login/"])
def test_a_caller_who_leaves_in_the_middle_is_no_fault_of_ours(path, api, caplog) -> None:
    class Broken(io.RawIOBase):
        def read(self, *_: Any) -> bytes:
            raise OSError("connection reset")

        readline = read  # type: ignore[assignment]

    headers = {"Authorization": f"Bearer {api.secret}"} if path.startswith("/api/") else {}
    kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
    client = Client(raise_request_exception=False)
    answer = client.generic("POST", path, "{}", kind, headers=headers, **{"wsgi.input": Broken()})
    assert answer.status_code == 400
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
