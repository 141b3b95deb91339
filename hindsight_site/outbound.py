"""The one way out to an address that a user named: resolved once, never into the operator's own network.

The connection is made to the very address that was checked, so that a name cannot answer differently a moment
later; redirects are answers like any other; time and size are bounded.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from hindsight_site.refusals import FieldError, Invalid

PRIVATE = "The address lies in a private or reserved network. Only public addresses are called."
# NAT64, and the old ways of writing an IPv4 address as an IPv6 one.
_CARRIES_IPV4 = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
# Local use of NAT64, site-local, segment routing, the 6to4 relay: not for hosts of the open internet.
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "fec0::/10", "5f00::/16", "192.88.99.0/24")))


class NotAllowed(Exception):
    """The address may not be called; the message says why, for the person who named it."""


class Unreachable(Exception):
    """Nobody answered in time, or not with HTTP. The message names no address of ours."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked address: where to connect, and what the URL called it."""

    scheme: str
    host: str
    port: int
    address: str
    path: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the headers with lower-case names, at most `max_bytes` of the body."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_cut: bool


def check_url(url: str) -> None:
    """Raise `NotAllowed` for a URL that may never be called, without resolving its name."""
    host = _parts(url).host
    inner = host == "localhost" or host.endswith(".localhost") or (_is_literal(host) and not is_public(host))
    if inner and not settings.OUTBOUND_ALLOW_PRIVATE:
        raise NotAllowed(PRIVATE)


def send(
    url: str,
    *,
    method: str = "POST",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = 10.0,
    max_bytes: int = 64 * 1024,
) -> Answer:
    """Make one request and return its answer, redirects included. Raises `NotAllowed` or `Unreachable`.

    `timeout_seconds` bounds the whole exchange, `max_bytes` what is read of the answer.
    """
    until = time.monotonic() + timeout_seconds
    try:
        target = resolve(url)
        with _connected(target, timeout_seconds) as connection, _closed_at(connection, until):
            connection.request(method, target.path, body or None, {"User-Agent": "Hindsight", **(headers or {})})
            answer = connection.getresponse()
            data = answer.read(max_bytes + 1)
            if time.monotonic() >= until:
                raise TimeoutError
            if answer.length and len(data) <= max_bytes:
                raise http.client.IncompleteRead(data, answer.length)
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, data[:max_bytes], len(data) > max_bytes)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= until:
            raise Unreachable("It did not answer in time.") from error
        if isinstance(error, ssl.SSLError):
            raise Unreachable("Its certificate was not accepted.") from error
        raise Unreachable("It could not be reached.") from error


def resolve(url: str) -> Target:
    """Check a URL and resolve its host once. Raises `NotAllowed` or `Unreachable`."""
    parts = _parts(url)
    try:
        found = socket.getaddrinfo(parts.host, parts.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable("Its name could not be resolved.") from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if not settings.OUTBOUND_ALLOW_PRIVATE and not all(is_public(address) for address in addresses):
        raise NotAllowed(PRIVATE)
    return Target(parts.scheme, parts.host, parts.port, addresses[0], parts.path)


def check_field(url: str, field: str) -> None:
    """`check_url` for a field of a payload or a form. Raises `Invalid` that names it."""
    try:
        check_url(url)
    except NotAllowed as error:
        raise Invalid(str(error), errors=(FieldError(field, str(error)),)) from None


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_public(address: str) -> bool:
    """Whether an IP address lies in the open internet, in whatever form it is written."""
    try:
        ip: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if any(ip in network for network in _CARRIES_IPV4):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        ip = inner or ip
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _NOT_PUBLIC)


def _parts(url: str) -> Target:
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        raise NotAllowed("This is not a URL.") from None
    if split.scheme not in ("http", "https") or not split.hostname:
        raise NotAllowed("The URL must begin with https:// and name a host.")
    if split.username is not None or split.password is not None:
        raise NotAllowed("The URL must not hold a user name or password.")
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise NotAllowed("The URL must not hold spaces or control characters.")
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    if not path.isascii():
        raise NotAllowed("The path must be percent-encoded.")
    return Target(split.scheme, split.hostname, port or (443 if split.scheme == "https" else 80), "", path)


@contextmanager
def _connected(target: Target, timeout: float) -> Iterator[http.client.HTTPConnection]:
    """Connect to the address that was checked; the certificate must fit the name."""
    connection: http.client.HTTPConnection
    with socket.create_connection((target.address, target.port), timeout=timeout) as raw:
        if target.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(target.host, target.port, timeout=timeout, context=context)
            connection.sock = context.wrap_socket(raw, server_hostname=target.host)
        else:
            connection = http.client.HTTPConnection(target.host, target.port, timeout=timeout)
            connection.sock = raw
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def _closed_at(connection: http.client.HTTPConnection, until: float) -> Iterator[None]:
    """Shut the connection at `until` (monotonic seconds), so that a drip of bytes does not outlast it."""
    line = connection.sock

    def shut() -> None:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    clock = threading.Timer(max(until - time.monotonic(), 0.0), shut)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
