"""HTTP to one server, on the standard library: told apart is whether anything was sent before it failed."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from .options import Address

CONNECT_SECONDS = 10.0
REST_SECONDS = 1.0  # servers close an idle connection after two or more
MAX_ANSWER = 64 * 1024 * 1024  # bytes


class NotSent(Exception):
    """The server was not reached and nothing was sent, so trying again repeats nothing. One line.

    `hopeless`: trying again will not help (a certificate, an unknown host).
    """

    def __init__(self, message: str, *, hopeless: bool = False) -> None:
        super().__init__(message)
        self.hopeless = hopeless


class Broken(Exception):
    """The connection failed after something was sent: the server may have done what was asked. One line."""


class Aborted(Exception):
    """The exchange was ended from our side."""


@dataclass(slots=True)
class Exchange:
    """One request in flight, which another thread may abort."""

    _sock: socket.socket | None = None
    _aborted: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def aborted(self) -> bool:
        return self._aborted

    def abort(self) -> None:
        """Cut the connection under whoever waits on it; a later one is not begun."""
        with self._lock:
            self._aborted = True
            sock, self._sock = self._sock, None
        if sock is not None:
            with suppress(OSError):
                # Not TLS's own, which takes the session from under the thread that reads.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def hold(self, sock: socket.socket) -> None:
        with self._lock:
            if self._aborted:
                raise Aborted
            self._sock = sock

    def let_go(self) -> None:
        with self._lock:
            self._sock = None


@dataclass(slots=True)
class Answer:
    """A response whose body is still to be read. Call `close` when done."""

    server: Server
    response: HTTPResponse
    connection: HTTPConnection
    sock: socket.socket  # http.client forgets it when the server will close
    exchange: Exchange

    @property
    def status(self) -> int:
        return self.response.status

    def header(self, name: str) -> str:
        return self.response.headers.get(name, "")

    @property
    def content_type(self) -> str:
        return self.header("Content-Type").partition(";")[0].strip().lower()

    def read(self) -> bytes:
        """The whole body. Raises `Broken`, `Aborted`."""
        try:
            body = self.response.read(MAX_ANSWER + 1)
            if self.exchange.aborted:
                raise Aborted
            # With a limit, http.client takes a body that was cut short for a whole one.
            if self.response.length:
                raise Broken("The connection broke in the middle of the answer.")
        except (OSError, HTTPException) as error:
            raise self.server.fault(error, self.exchange) from None
        if len(body) > MAX_ANSWER:
            raise Broken(f"The answer is larger than {MAX_ANSWER} bytes.")
        return body

    def lines(self) -> Iterator[bytes]:
        """The lines of a body that comes bit by bit. Raises `Broken`, `Aborted`."""
        self.sock.settimeout(None)  # a stream may be silent for long
        try:
            while line := self.response.readline(MAX_ANSWER):
                yield line
        except (OSError, HTTPException) as error:
            raise self.server.fault(error, self.exchange) from None
        if self.exchange.aborted:  # a cut looks like an end
            raise Aborted

    def close(self) -> None:
        self.exchange.let_go()
        whole = self.response.isclosed() and not self.response.will_close
        if whole and not self.exchange.aborted:
            self.server.put_back(self.connection)
        else:
            self.connection.close()


class Server:
    """The server, and the connections to it that rest for a moment. May be used by many threads."""

    def __init__(self, address: Address, silence: float) -> None:
        self.address = address
        self._silence = silence
        self._resting: list[tuple[float, HTTPConnection]] = []
        self._lock = threading.Lock()
        self._context = ssl.create_default_context() if address.secure else None
        self._proxy = _proxy_for(address)

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str], exchange: Exchange, *, timeout: float | None = None
    ) -> Answer:
        """Send a POST and return its answer once the head of it is there.

        `timeout` is how many seconds the server may stay silent. Raises `NotSent`, `Broken`, `Aborted`.
        """
        connection = self._take() or self._connect(exchange)
        sock = connection.sock
        try:
            exchange.hold(sock)
            sock.settimeout(timeout or self._silence)
            connection.request("POST", self.address.path + path, body, dict(headers))
            response = connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self.fault(error, exchange) from None
        except Aborted:
            connection.close()
            raise
        return Answer(self, response, connection, sock, exchange)

    def fault(self, error: Exception, exchange: Exchange) -> Exception:
        """What a failure after the connection stood means."""
        if exchange.aborted:
            return Aborted()
        if isinstance(error, TimeoutError):
            return Broken(f"{self.address.url} did not answer in time; what was asked may have been done.")
        return Broken(
            f"{self.address.url} closed the connection before it answered; what was asked may have been done."
        )

    def put_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._resting.append((time.monotonic(), connection))
            old, self._resting = self._resting[:-8], self._resting[-8:]
        for _, tired in old:
            tired.close()

    def _take(self) -> HTTPConnection | None:
        """A connection that rests and still stands."""
        while True:
            with self._lock:
                if not self._resting:
                    return None
                since, connection = self._resting.pop()
            if time.monotonic() - since < REST_SECONDS and not _has_word(connection):
                return connection
            connection.close()

    def _connect(self, exchange: Exchange) -> HTTPConnection:
        if exchange.aborted:
            raise Aborted
        connection = self._new()
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise NotSent(
                f"The certificate of {self.address.url} is not trusted: {error.verify_message}.", hopeless=True
            ) from None
        except ssl.SSLError as error:
            raise NotSent(f"{self.address.url} does not speak TLS as we do ({error.reason}).", hopeless=True) from None
        except socket.gaierror as error:
            unknown = error.errno == socket.EAI_NONAME
            raise NotSent(f"There is no host {self.address.host!r}.", hopeless=unknown) from None
        except (OSError, HTTPException) as error:
            raise NotSent(f"{self.address.url} cannot be reached: {_reason(error)}.") from None
        sock = connection.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # for streams that are silent
        return connection

    def _new(self) -> HTTPConnection:
        host, port = self.address.host, self.address.port
        if self._context is None:
            return HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        if self._proxy is None:
            return HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=self._context)
        connection = HTTPSConnection(*self._proxy, timeout=CONNECT_SECONDS, context=self._context)
        connection.set_tunnel(host, port)
        return connection


def _proxy_for(address: Address) -> tuple[str, int] | None:
    """The proxy through which to reach an https server, from the environment (HTTPS_PROXY, NO_PROXY)."""
    found = getproxies().get("https", "") if address.secure and not proxy_bypass(address.host) else ""
    parts = urlsplit(found if "//" in found else f"//{found}")
    return (parts.hostname, parts.port or 8080) if parts.hostname else None


def _has_word(connection: HTTPConnection) -> bool:
    """Whether there is something to read where nothing should be: that the server has closed."""
    sock = connection.sock
    if sock is None:
        return True
    sock.settimeout(0)
    try:
        if isinstance(sock, ssl.SSLSocket):
            return sock.read(1) is not None
        return sock.recv(1, socket.MSG_PEEK) is not None
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS:.0f} s"
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return "nothing listens there"
    return os.strerror(number).lower() if number else type(error).__name__
