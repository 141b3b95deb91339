"""Stands before a server and forwards what it is sent: with a token, or giving tokens out itself."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP_BY_HOP = {"content-length", "connection", "transfer-encoding", "date", "server"}


class Doorman(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    target, path_there, token = "", "", ""

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.token and self.path.endswith("/auth/token"):
            self.answer(200, [("Content-Type", "application/json")], json.dumps(
                {"access_token": "a.b.c", "token_type": "Bearer", "expires_in": 600}
            ).encode())  # fmt: skip
            return
        headers = dict(self.headers) | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        there = http.client.HTTPConnection(self.target, timeout=60)
        there.request(self.command, self.path_there, body, headers)
        answer = there.getresponse()
        content = answer.read()
        there.close()
        self.answer(answer.status, answer.getheaders(), content)

    do_GET = do_POST = do_DELETE = do_OPTIONS = forward  # noqa: N815 - the library's names

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def doorman(target: str, token: str = "") -> Iterator[str]:
    """The address of a doorman before the MCP endpoint `target`.

    With `token` every request carries it, for a client that has none. Without one, anybody who asks as our bridge
    does gets an access token, for a server that wants none.
    """
    parts = urlsplit(target)
    values = {"target": parts.netloc, "path_there": parts.path or "/", "token": token}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Doorman", (Doorman,), values))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
