"""What carries lines to the server and answers back: one thread for each message, answers as they come."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

from . import messages
from .connection import Aborted, Answer, Broken, Exchange, NotSent, Server
from .messages import Message, NotAMessage
from .options import Options
from .tokens import AccessTokens, Refused

PATH = "/mcp"
AT_ONCE = 64  # requests in flight; more wait their turn
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two tries to reach the server; doubles each time
EOF_GRACE = 30.0  # seconds that answers may still take after the client has closed its side
STOP_GRACE = 1.5  # seconds after SIGTERM: clients kill two seconds after it

Found = TypeVar("Found")


class Failed(Exception):
    """The request has no answer. One line for the client."""


@dataclass(slots=True, eq=False)
class InFlight:
    """A message that is being carried, and the means to end that."""

    message: Message
    exchange: Exchange = field(default_factory=Exchange)


class Bridge:
    """One client, one server. `say` takes a line for the log."""

    def __init__(self, options: Options, out: BinaryIO, say: Callable[[str], None]) -> None:
        self._options = options
        self._out = out
        self._say = say
        self._server = Server(options.address, options.silence)
        self._tokens = AccessTokens(self._server, options.token)
        self._version = ""  # what `initialize` has settled
        self._flights: list[InFlight] = []
        self._changed = threading.Condition()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._ended = threading.Event()
        self._write_lock = threading.Lock()
        self._last_said = ""

    def take(self, line: bytes) -> None:
        """Carry one line of the client. Returns at once."""
        try:
            message = messages.read(line)
        except NotAMessage as problem:
            self._write(messages.error(None, str(problem), problem.code))
            return
        if message.method == "notifications/cancelled" and self._cancel(message):
            return
        flight = InFlight(message)
        with self._changed:
            self._flights.append(flight)
        threading.Thread(target=self._carry, args=(flight,), daemon=True).start()

    def finish(self, grace: float) -> None:
        """Wait for what is in flight for up to `grace` seconds and cut the rest off."""
        deadline = time.monotonic() + grace
        with self._changed:
            self._changed.wait_for(lambda: not self._flights or self._ended.is_set(), grace)
            left = list(self._flights)
        self._ended.set()
        for flight in left:
            flight.exchange.abort()
        with self._changed:
            self._changed.wait_for(lambda: not self._flights, max(0.2, min(1.0, deadline - time.monotonic())))

    @property
    def client_is_gone(self) -> bool:
        return self._ended.is_set()

    def _cancel(self, message: Message) -> bool:
        """Cancel as the revision of the request wants it; True when nothing is to be sent.

        From 2026-07-28 on, closing the request's stream is the signal. Before, the notification is, and
        the connection stays.
        """
        with self._changed:
            found = [flight for flight in self._flights if flight.message.id == message.cancels]
        if not found:
            return bool(message.version) or not self._version
        if not found[-1].message.version:
            return False
        found[-1].exchange.abort()
        return True

    def _carry(self, flight: InFlight) -> None:
        ident = flight.message.id
        try:
            with self._turns:
                self._exchange(flight)
        except Aborted:
            if self._ended.is_set() and ident is not None:
                self._write(messages.error(ident, "The bridge was stopped before the answer came."))
        except (Failed, Refused, NotSent, Broken) as problem:
            self._report(str(problem))
            if ident is not None:
                self._write(messages.error(ident, str(problem)))
        except Exception as error:  # noqa: BLE001 - a request must never be left without an answer
            self._report(f"The bridge failed: {type(error).__name__}: {error}")
            if ident is not None:
                self._write(messages.error(ident, "The bridge failed; its log says how."))
        finally:
            with self._changed:
                self._flights.remove(flight)
                self._changed.notify_all()

    def _exchange(self, flight: InFlight) -> None:
        """Send a message and pass on what comes back. After a 401 once more, with a new token."""
        token = self._reach(flight, lambda: self._tokens.get(flight.exchange))
        answer = self._reach(flight, lambda: self._send(flight, token))
        if answer.status == 401:
            answer.read()
            answer.close()
            self._tokens.drop(token)
            token = self._reach(flight, lambda: self._tokens.get(flight.exchange))
            answer = self._reach(flight, lambda: self._send(flight, token))
        try:
            self._pass_on(flight.message, answer)
        finally:
            answer.close()

    def _send(self, flight: InFlight, token: str) -> Answer:
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **messages.headers(flight.message, self._version),
        }
        return self._server.post(PATH, flight.message.body, headers, flight.exchange)

    def _reach(self, flight: InFlight, attempt: Callable[[], Found]) -> Found:
        """Try until the server is reached or patience ends. Only what was never sent is tried again."""
        deadline = time.monotonic() + self._options.patience
        pause = FIRST_PAUSE
        while True:
            try:
                return attempt()
            except NotSent as problem:
                if problem.hopeless or time.monotonic() + pause > deadline:
                    raise
                self._report(f"{problem} Trying again.")
            if self._ended.wait(pause) or flight.exchange.aborted:
                raise Aborted
            pause = min(pause * 2, LONGEST_PAUSE)

    def _pass_on(self, message: Message, answer: Answer) -> None:
        if answer.content_type == "text/event-stream" and answer.status == 200:
            self._pass_on_stream(message, answer)
            return
        body = answer.read()
        if not message.wants_answer:
            if answer.status >= 400:
                self._report(f"The server refused a notification: {_fault(answer, body)}")
            return
        if answer.content_type == "application/json":
            with suppress(ValueError):
                line, value = messages.answer(body, message.id)
                if messages.is_answer(value) and value.get("jsonrpc") == "2.0":
                    self._settle(message, value)
                    self._write(line)
                    return
        raise Failed(_fault(answer, body))

    def _pass_on_stream(self, message: Message, answer: Answer) -> None:
        for data in messages.events(answer.lines()):
            try:
                line, value = messages.answer(data, message.id)
            except ValueError:
                raise Failed("The server sent an event that is no message.") from None
            self._settle(message, value)
            self._write(line)
            if messages.is_answer(value):
                return
        if message.wants_answer:
            raise Broken("The server ended the stream without an answer; what was asked may have been done.")

    def _settle(self, message: Message, value: dict) -> None:
        if message.method == "initialize":
            self._version = messages.negotiated_version(value) or self._version

    def _write(self, line: bytes) -> None:
        try:
            with self._write_lock:
                self._out.write(line + b"\n")
                self._out.flush()
        except (OSError, ValueError):  # nobody reads any more
            self._ended.set()
            with self._changed:
                self._changed.notify_all()

    def _report(self, line: str) -> None:
        """Log a line, once for as long as the same thing happens again and again."""
        if line != self._last_said:
            self._last_said = line
            self._say(line)


def _fault(answer: Answer, body: bytes) -> str:
    """What an answer that is no JSON-RPC says, in a line."""
    if location := answer.header("Location"):
        return f"The server sends us to {location}, which is not followed: use that server's address."
    try:
        value = json.loads(body)
        detail = value.get("detail") or value["error"]["message"]
    except (ValueError, TypeError, KeyError, AttributeError):
        detail = ""
    again = answer.header("Retry-After")
    parts = [
        f"The server answered with status {answer.status}.",
        str(detail),
        f"Try again in {again} s." if again else "",
    ]
    return " ".join(part for part in parts if part)


def run(options: Options, source: BinaryIO, out: BinaryIO, say: Callable[[str], None]) -> None:
    """Carry lines from `source` until it ends; `KeyboardInterrupt` (Ctrl-C, or SIGTERM made into one) stops sooner."""
    bridge = Bridge(options, out, say)
    try:
        for line in source:
            if bridge.client_is_gone:
                break
            if line.strip():
                bridge.take(line.strip())
        bridge.finish(EOF_GRACE)
    except KeyboardInterrupt:
        bridge.finish(STOP_GRACE)


def say(line: str) -> None:
    """Log to standard error, the only place for it: standard output is the client's."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"hindsight-mcp: {line}\n")
        sys.stderr.flush()
