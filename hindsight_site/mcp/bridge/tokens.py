"""Access tokens for the MCP endpoint: exchanged for the ApiToken, kept in memory, renewed in time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .connection import Answer, Broken, Exchange, NotSent, Server
from .options import BadOptions

PATH = "/api/v1/auth/token"
RENEW_BEFORE = 60.0  # seconds before the end; less for a token that lives for less than five minutes
EXCHANGE_SECONDS = 15.0


class Refused(Exception):
    """The server gives no access token, and says why in one line."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What goes into the Authorization header. Both times are of the monotonic clock."""

    value: str
    renew_at: float
    ends_at: float


class AccessTokens:
    """The one access token of this bridge. May be asked for by many threads; one of them exchanges."""

    def __init__(self, server: Server, secret: Callable[[], str]) -> None:
        self._server = server
        self._secret = secret
        self._current: AccessToken | None = None
        self._lock = threading.Lock()

    def get(self, exchange: Exchange) -> str:
        """Return a token that holds for a while. Raises `Refused`, `NotSent`, `Broken`, `Aborted`."""
        with self._lock:
            now = time.monotonic()
            if self._current is None or now >= self._current.renew_at:
                try:
                    self._current = self._exchange(exchange)
                except (NotSent, Broken):
                    if self._current is None or now >= self._current.ends_at:
                        raise
            return self._current.value

    def drop(self, value: str) -> None:
        """Forget a token that the server refused, unless another has taken its place."""
        with self._lock:
            if self._current is not None and self._current.value == value:
                self._current = None

    def _exchange(self, exchange: Exchange) -> AccessToken:
        try:
            secret = self._secret()
        except BadOptions as error:
            raise Refused(str(error)) from None
        headers = {
            "Authorization": f"Bearer {secret}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        begun = time.monotonic()
        answer = self._server.post(PATH, b'{"audience":"mcp"}', headers, exchange, timeout=EXCHANGE_SECONDS)
        try:
            body = answer.read()
        finally:
            answer.close()
        if answer.status != 200:
            raise Refused(_reason(answer, body))
        try:
            value = json.loads(body)
            token, seconds = str(value["access_token"]), float(value["expires_in"])
        except (ValueError, TypeError, KeyError):
            raise Refused(f"{self._server.address.url} is not a Hindsight server: its token answer is none.") from None
        return AccessToken(token, begun + seconds - min(RENEW_BEFORE, seconds / 5), begun + seconds)


def _reason(answer: Answer, body: bytes) -> str:
    """Why there is no token, in the server's words where it has some."""
    where = answer.server.address.url
    try:
        detail = json.loads(body)["detail"]
    except (ValueError, TypeError, KeyError):
        detail = ""
    if detail:
        again = answer.header("Retry-After")
        return f"{where} refused the token: {detail}" + (f" Try again in {again} s." if again else "")
    if location := answer.header("Location"):
        return f"{where} sends us to {location}, which is not followed: use that server's address."
    if answer.status == 404:
        return f"{where} is not a Hindsight server: it has no {PATH}."
    return f"{where} refused the token with status {answer.status}."
