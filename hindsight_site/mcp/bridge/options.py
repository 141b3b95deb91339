"""Where the server is and what opens it: from arguments and the environment, checked before anything runs."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

TOKEN, TOKEN_FILE, URL = "HINDSIGHT_TOKEN", "HINDSIGHT_TOKEN_FILE", "HINDSIGHT_URL"  # noqa: S105 - names

PATIENCE = 30.0  # seconds in which a server that cannot be reached is tried again
SILENCE = 300.0  # seconds without a byte after which an answer is given up


class BadOptions(Exception):
    """The bridge cannot be started like this. One line that says what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server: `https` or not, host, port, and the path that it lives below ("" for none)."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.secure else 80
        port = "" if self.port == default else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{host}{port}{self.path}"

    @property
    def is_exposed(self) -> bool:
        """Whether the token travels unencrypted over a network."""
        if self.secure or self.host == "localhost" or self.host.endswith(".localhost"):
            return False
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True


@dataclass(frozen=True, slots=True)
class Options:
    """What the bridge needs. `token` is asked for at each exchange, so that a file may be replaced."""

    address: Address
    token: Callable[[], str]
    patience: float = PATIENCE
    silence: float = SILENCE


def parse_url(text: str) -> Address:
    """Read a server's address; that of its MCP endpoint will do too. Raises `BadOptions`."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode("ascii") if parts.hostname else ""
    except (ValueError, UnicodeError):
        parts, port, host = urlsplit(""), None, ""
    if parts.scheme not in {"http", "https"} or not host:
        raise BadOptions(f"{text!r} is not the address of a server: it looks like https://hindsight.example.org.")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadOptions(f"The address must hold no name, password, query or fragment; the token goes into {TOKEN}.")
    secure = parts.scheme == "https"
    path = parts.path.rstrip("/").removesuffix("/mcp")
    if not path.isascii() or any(c <= " " for c in path):
        raise BadOptions("The path of the address holds characters that must be percent-encoded.")
    return Address(secure, host, port or (443 if secure else 80), path)


def token_source(environment: Mapping[str, str]) -> Callable[[], str]:
    """How to get the ApiToken: the variable, or the file that its neighbour names. Raises `BadOptions`."""
    if path := environment.get(TOKEN_FILE, "").strip():

        def read() -> str:
            try:
                return check_token(Path(path).expanduser().read_text(encoding="utf-8").strip())
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not text"
                raise BadOptions(f"The token file {path} cannot be read: {reason}.") from None

        read()  # so that a mistake shows at once
        return read
    token = environment.get(TOKEN, "").strip()
    if not token:
        raise BadOptions(f"There is no token: set {TOKEN} to one (hs_…), or {TOKEN_FILE} to a file that holds one.")
    check_token(token)
    return lambda: token


def check_token(token: str) -> str:
    """Return `token` when it looks like an ApiToken. Raises `BadOptions`; the text never holds the token."""
    if token.count(".") == 2 and not token.startswith("hs_"):
        raise BadOptions("This is an access token, which soon expires: give the token it was made from (hs_…).")
    if not token.startswith("hs_") or not token.isascii() or any(c <= " " for c in token):
        raise BadOptions("This is not a Hindsight token: one begins with hs_ and is shown once, when it is made.")
    return token
