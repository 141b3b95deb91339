"""A real HTTP server on loopback that speaks the OpenAI protocol, with every fault a real one has.

Without a script it answers for itself: it reads the record in the prompt and draws a small, deterministic
conclusion from steps that are really there; embeddings are hashed words, so that like texts are near.
Faults are scripted per request and used up in order:

    model_server.script(Fault.PROSE, {"candidates": []})   # first prose, then this answer
    model_server.refuses.add("json_schema")                 # lasting: 400 to such requests
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fake_model import conclude


class Fault(Enum):
    """What may go wrong with one request."""

    # Of the transport
    RATE_LIMITED = auto()  # 429, Retry-After as in `ModelServer.retry_after`
    NO_QUOTA = auto()  # 429 that will not pass
    SERVER_ERROR = auto()  # 500
    UNAUTHORISED = auto()  # 401, with the key in its message as real ones do
    UNKNOWN_MODEL = auto()  # 404
    TOO_LONG = auto()  # 400 context_length_exceeded
    HANG = auto()  # no answer for `hang_seconds`
    DRIP = auto()  # blanks to keep the line open for `hang_seconds`
    HANG_UP = auto()  # the line breaks inside the answer
    NOT_A_COMPLETION = auto()  # 200 with something else
    # Of the answer
    EMPTY = auto()
    PROSE = auto()
    FENCED = auto()  # in a code fence, after a preamble
    THINKING = auto()  # after thoughts that hold an object of their own
    TRAILING_COMMA = auto()
    HALF_JSON = auto()
    NUL = auto()  # raw and escaped NUL characters in the texts
    REFUSAL = auto()
    # Of what it says
    WRONG_ENUM = auto()
    CONFIDENCE_1_7 = auto()
    NO_STRUCTURE = auto()
    EVIDENCE_NOT_IN_TRACE = auto()
    SETS_TRUST = auto()  # tries to set trust, scope, team and status
    # Of embeddings
    ONE_VECTOR_SHORT = auto()
    WRONG_DIMENSIONS = auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came in."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]  # names in lower case
    at: float  # time.monotonic()

    @property
    def text(self) -> str:
        """All messages of a chat request, one under the other."""
        return "\n".join(str(message["content"]) for message in self.body.get("messages", []))


class ModelServer:
    """The server, what it was asked, and what it is to do next. Use as a context manager."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.refuses: set[str] = set()  # json_schema, json_object, temperature, or "every" for any request
        self.refusal_status = 400  # some servers answer 500 or 501 to a format they do not know
        self.retry_after = "0"
        self.hang_seconds = 2.0
        self.always: Fault | None = None  # what every request gets that nothing is scripted for
        self.usage: dict[str, int] | None = None  # None: counted from the texts
        self._script: deque[Fault | str | dict[str, Any]] = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def script(self, *items: Fault | str | dict[str, Any]) -> None:
        """Say what the next requests get: a fault, a literal text, or an object as JSON."""
        self._script.extend(items)

    def asked(self, path: str) -> list[Asked]:
        """The requests to a path such as "chat/completions"."""
        return [asked for asked in self.requests if asked.path.endswith(path)]

    def next_item(self, asked: Asked) -> Fault | str | dict[str, Any] | None:
        with self._lock:
            self.requests.append(asked)
            return self._script.popleft() if self._script else self.always

    def pause(self, seconds: float) -> bool:
        """Wait, but not beyond the end of the test. Returns whether the server is stopping."""
        return self._stopping.wait(seconds)

    @contextmanager
    def away(self) -> Iterator[None]:
        """For a while nobody listens at the address."""
        port = self._server.server_port
        self._close()
        try:
            yield
        finally:
            self._open(port)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._close()

    def _open(self, port: int) -> None:
        self._server = _Server(("127.0.0.1", port), _Handler, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def _close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closed with the server: none outlives a test
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type, fake: ModelServer) -> None:
        self.fake = fake
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up on a hanging request is no error of ours."""


@dataclass
class _Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False  # say more is coming, and hang up


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # one connection per request: nothing to wait for at the end
    server: _Server

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._send(_Reply(body={"object": "list", "data": [{"id": "fake-model", "object": "model"}]}))
        else:
            self._send(_error(404, "unknown_url", f"no {self.path}"))

    def do_POST(self) -> None:
        fake = self.server.fake
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, json.loads(raw), headers, time.monotonic())
        item = fake.next_item(asked)
        if item is Fault.HANG and fake.pause(fake.hang_seconds):
            return
        if item is Fault.DRIP:
            self._drip(fake)
            return
        if self.path.endswith("/chat/completions"):
            self._send(_chat(fake, asked, item))
        elif self.path.endswith("/embeddings"):
            self._send(_embeddings(fake, asked, item))
        else:
            self._send(_error(404, "unknown_url", f"no {self.path}"))

    def _drip(self, fake: ModelServer) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        until = time.monotonic() + fake.hang_seconds
        while time.monotonic() < until:
            self.wfile.write(b"\n")
            if fake.pause(0.02):
                return

    def _send(self, reply: _Reply) -> None:
        data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) * (2 if reply.broken else 1)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


def _error(status: int, code: str, message: str, param: str | None = None, **headers: str) -> _Reply:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return _Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def _transport_fault(fake: ModelServer, asked: Asked, item: Any) -> _Reply | None:
    match item:
        case Fault.RATE_LIMITED:
            return _error(429, "rate_limit_exceeded", "Slow down.", Retry_After=fake.retry_after)
        case Fault.NO_QUOTA:
            return _error(429, "insufficient_quota", "You exceeded your current quota.")
        case Fault.SERVER_ERROR:
            return _error(500, "internal_error", "The server had an error.")
        case Fault.UNAUTHORISED:
            return _error(401, "invalid_api_key", f"Incorrect key: {asked.headers.get('authorization')}")
        case Fault.UNKNOWN_MODEL:
            return _error(404, "model_not_found", f"The model {asked.body.get('model')} does not exist.")
        case Fault.TOO_LONG:
            return _error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")
        case Fault.NOT_A_COMPLETION:
            return _Reply(body=b"<html><body>Sign in</body></html>")
    return None


def _chat(fake: ModelServer, asked: Asked, item: Any) -> _Reply:
    if reply := _transport_fault(fake, asked, item) or _refused(fake, asked):
        return reply
    if item is Fault.REFUSAL:
        return _completion(fake, asked, None, refusal="I cannot help with that.")
    if isinstance(item, dict):
        text = json.dumps(item, ensure_ascii=False)
    elif isinstance(item, str):
        text = item
    else:
        text = _written(_said(conclude(asked.body["messages"]), item), item)
    reply = _completion(fake, asked, text)
    reply.broken = item is Fault.HANG_UP
    return reply


def _refused(fake: ModelServer, asked: Asked) -> _Reply | None:
    """400 to what this endpoint does not take, in the words of real ones."""
    wanted = (asked.body.get("response_format") or {}).get("type")
    if "temperature" in fake.refuses and asked.body.get("temperature") not in (None, 1):
        message = "Unsupported value: 'temperature' does not support 0.2 with this model."
        return _error(400, "unsupported_value", message, param="temperature")
    if wanted in fake.refuses or "every" in fake.refuses:
        return _error(fake.refusal_status, "invalid_request_error", f"response_format type {wanted} is unavailable now")
    return None


def _completion(fake: ModelServer, asked: Asked, text: str | None, refusal: str | None = None) -> _Reply:
    usage = fake.usage or {
        "prompt_tokens": len(asked.text) // 4,
        "completion_tokens": len(text or "") // 4,
    }
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return _Reply(
        body={
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 0,
            "model": asked.body.get("model"),
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }
    )


def _said(answer: dict[str, Any], fault: Any) -> dict[str, Any]:
    """The answer with a fault in what it says."""
    for candidate in answer["candidates"]:
        if fault is Fault.WRONG_ENUM:
            candidate["kind"] = "insight"
        elif fault is Fault.CONFIDENCE_1_7:
            candidate["confidence"] = 1.7
        elif fault is Fault.NO_STRUCTURE:
            candidate.pop("structure", None)
        elif fault is Fault.EVIDENCE_NOT_IN_TRACE:
            candidate["quotes"] = [{"step": 0, "text": "a sentence that was never said by anybody here"}]
        elif fault is Fault.SETS_TRUST:
            own = {"trust": "human", "scope": "team", "team": "another", "status": "active", "pinned": True}
            candidate |= own
            candidate["structure"] = {**candidate.get("structure", {}), **own}
        elif fault is Fault.NUL:
            candidate["content"] = f"\x00{candidate['content']}\x00"
    return answer


def _written(answer: dict[str, Any], fault: Any) -> str:
    """The answer as text, with a fault in how it is written."""
    text = json.dumps(answer, ensure_ascii=False)
    match fault:
        case Fault.EMPTY:
            return ""
        case Fault.PROSE:
            return "The agent did well on the whole. I would keep nothing in particular."
        case Fault.FENCED:
            return f"Here is what I found in the [record]:\n\n```json\n{text}\n```\nLet me know!"
        case Fault.THINKING:
            return f'<think>A form like {{"candidates": [1, 2]}} is asked for.</think>\n{text}'
        case Fault.TRAILING_COMMA:
            return re.sub(r"([}\]])(?=\s*[}\]])", r"\1,", text)
        case Fault.HALF_JSON:
            return text[: len(text) * 2 // 3]
        case Fault.NUL:
            return f"\x00{text}\x00"
    return text


def _embeddings(fake: ModelServer, asked: Asked, item: Any) -> _Reply:
    if reply := _transport_fault(fake, asked, item):
        return reply
    given = asked.body["input"]
    texts = [given] if isinstance(given, str) else given
    size = int(asked.body.get("dimensions") or 1536) + (item is Fault.WRONG_DIMENSIONS)
    vectors = [embed(text, size) for text in texts][: len(texts) - (item is Fault.ONE_VECTOR_SHORT)]
    packed = asked.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": place, "embedding": _packed(vector) if packed else vector}
        for place, vector in enumerate(vectors)
    ]
    tokens = sum(len(text) // 4 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _Reply(body={"object": "list", "model": asked.body.get("model"), "data": data, "usage": usage})


def embed(text: str, size: int) -> list[float]:
    """A unit vector of `size` numbers from the hashed words of a text (ideographs one by one)."""
    vector = [0.0] * size
    for word in re.findall(r"[\u3400-\u9fff]|\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % size] += 1.0 if digest[4] % 2 else -1.0
    length = math.sqrt(sum(number * number for number in vector))
    return [number / length for number in vector] if length else [1.0, *vector[1:]]


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
