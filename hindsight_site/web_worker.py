"""gunicorn's worker: with patience that ends, and our form for what it refuses before any of our code sees it.

A request line that is too long, a header that is none: the path is not known then, or not to be believed, so
everybody gets problem+json. Nothing of the request is told back or logged: it may hold a token.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn import util
from gunicorn.http import errors
from gunicorn.workers.gthread import _DEFER, ThreadWorker

from hindsight_site.accounts.ids import new_id
from hindsight_site.middleware import current_request_id
from hindsight_site.patience import Patience
from hindsight_site.problems import CONTENT_TYPE, problem

# The first class that fits counts. What the application does wrong with its own headers is not the caller's fault.
REFUSALS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (errors.InvalidResponseHeader, 500, "server_error", "Something went wrong here. Quote the request id to us."),
    (errors.InvalidResponseHeaderName, 500, "server_error", "Something went wrong here. Quote the request id to us."),
    (errors.ConfigurationProblem, 500, "server_error", "Something went wrong here. Quote the request id to us."),
    (errors.LimitRequestLine, 414, "uri_too_long", "The address is longer than 4,094 bytes: send less of a query."),
    (errors.LimitRequestHeaders, 431, "headers_too_large", "The headers are too large, or too many: at most 100."),
    (errors.UnsupportedTransferCoding, 501, "unsupported_transfer_coding", "Send the body whole, or chunked."),
    (errors.ExpectationFailed, 417, "expectation_failed", "Of expectations, only 100-continue is met."),
    (errors.ForbiddenProxyRequest, 403, "forbidden", "This proxy may not speak for others here."),
    (errors.ParseException, 400, "malformed_request", "This is not a request of HTTP: see to its line and headers."),
)
LINGER_SECONDS = 2.0  # at most, for what a caller goes on sending after the answer
UNKNOWN = (500, "server_error", "Something went wrong here. Quote the request id to us.")


def refusal(error: Exception) -> tuple[int, str, str]:
    """Status, code and words for what gunicorn raised."""
    found = ((status, code, words) for kind, status, code, words in REFUSALS if isinstance(error, kind))
    return next(found, UNKNOWN)


def answer(error: Exception) -> bytes:
    """The whole response: a problem document, after which the connection is closed."""
    status, code, detail = refusal(error)
    body = json.dumps(problem(status, code, detail)).encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"Content-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"X-Request-ID: {current_request_id.get()}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


class Worker(ThreadWorker):
    """gunicorn's threads, none of which waits without end for a caller."""

    def handle(self, conn: Any) -> Any:
        """Answer one request of a connection; one on which nothing has come yet waits without a thread."""
        if not conn.initialized:
            if not (conn.data_ready or conn.wait_for_data(0)):
                return _DEFER
            conn.init()
        conn.parser.unreader.sock = Patience(conn.sock)
        goes_on = super().handle(conn)
        if not goes_on:
            _end(conn)
        return goes_on

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer what could not be handed to the application. Called in place of gunicorn's HTML."""
        token = current_request_id.set(new_id().hex)
        try:
            if refusal(exc)[0] == 500:
                self.log.error("error outside the application", exc_info=exc)
            else:
                self.log.warning("refused before the application: %s", type(exc).__name__)
            util.write_nonblock(client, answer(exc))
        except OSError:
            self.log.debug("the caller did not wait for the answer")
        finally:
            current_request_id.reset(token)


def _end(conn: Any) -> None:
    """Say that this was all, and read what is still coming: a close before that could cut the answer off.

    RFC 9112, section 9.6. gunicorn does it in the one thread that accepts everybody's connections, and for two
    seconds with each caller who only keeps theirs open: a few of them stop the process.
    """
    line, parser, until = conn.sock, conn.parser, time.monotonic() + LINGER_SECONDS
    conn.close = partial(_close, line)
    with suppress(OSError, errors.ParseException):
        line.shutdown(socket.SHUT_WR)
        if parser.mesg is not None and parser.finish_body(deadline=until):
            return
        while (left := until - time.monotonic()) > 0:
            line.settimeout(left)
            if not line.recv(65_536):
                return


def _close(line: socket.socket, graceful: bool = False) -> None:
    util.close(line)
