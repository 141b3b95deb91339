"""A small real HTTP server that behaves like ours towards the bridge, and misbehaves on request."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "hs_abcdefgh_" + "x" * 43


@dataclass
class State:
    """What the server does and what it has seen; tests change the one and look at the other."""

    expires_in: float = 600
    refuse_secret: str = ""
    accepted: set[str] = field(default_factory=set)
    exchanges: int = 0
    seen: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    closed_early: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Site

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/api/v1/auth/token"):
            self._exchange()
        else:
            self._message(body)

    def _exchange(self) -> None:
        state = self.server.state
        with state.lock:
            state.exchanges += 1
            token = f"jwt.{state.exchanges}.x"
        if state.refuse_secret or self.headers["Authorization"] != f"Bearer {SECRET}":
            self._json(401, {"detail": state.refuse_secret or "This token is unknown.", "status": 401})
            return
        state.accepted.add(token)
        self._json(200, {"access_token": token, "token_type": "Bearer", "expires_in": state.expires_in})

    def _message(self, body: bytes) -> None:
        state = self.server.state
        message = json.loads(body)
        with state.lock:
            state.seen.append(({k.lower(): v for k, v in self.headers.items()}, message))
        if self.headers["Authorization"].removeprefix("Bearer ") not in state.accepted:
            error = {"code": -32001, "message": "token revoked"}
            self._json(401, {"jsonrpc": "2.0", "id": None, "error": error})
        elif "id" not in message or "method" not in message:
            self._empty(202)
        else:
            self._answer(message)

    def _answer(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                self._result(message, {"protocolVersion": params.get("protocolVersion", "2025-11-25")})
            case "sleep":
                time.sleep(params["seconds"])
                self._result(message, {"slept": params["seconds"]})
            case "big":
                self._result(message, {"text": "é" * params["characters"]})
            case "pretty":
                self._raw(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}, indent=2).encode())
            case "status":
                self._raw(params["status"], params.get("body", "").encode(), params.get("type", "text/plain"))
            case "stream":
                self._stream(message, params)
            case "hang up":
                self.close_connection = True
            case "half":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b'{"jsonrpc": ')
                self.close_connection = True
            case _:
                self._result(message, {"echo": params})

    def _stream(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"note": "雪"}}
        try:
            for _ in range(params.get("notes", 1)):
                text = json.dumps(note, ensure_ascii=False)
                self.wfile.write(f": comment\nevent: message\nid: 7\ndata: {text}\n\n".encode())
                time.sleep(params.get("pause", 0))
            if params.get("finish", True):
                done = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"done": True}})
                self.wfile.write(f"data: {done}\r\n\r\n".encode())
        except OSError:
            self.server.state.closed_early.set()

    def _result(self, message: dict[str, Any], result: Any) -> None:
        self._json(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _json(self, status: int, value: Any) -> None:
        self._raw(status, json.dumps(value, ensure_ascii=False).encode())

    def _empty(self, status: int) -> None:
        self._raw(status, b"")

    def _raw(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            if status in {301, 307}:
                self.send_header("Location", "https://elsewhere.example/mcp")
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.server.state.closed_early.set()


class Site(ThreadingHTTPServer):
    """The server; `port` 0 takes any that is free."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0, state: State | None = None) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.state = state or State()
        self.connections: set[socket.socket] = set()
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *args: Any) -> None:
        pass

    def end(self) -> None:
        """Stop as a killed process does: all connections end too."""
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
