"""Finds e-mail addresses, IBANs and public IP addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from . import checksums
from .context import Cue, cue_before
from .spans import Span, SpanType

_AT = re.compile(r"@(?=[A-Za-z0-9-]{1,63}\.)")
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$")
_LOCAL_ANY_SCRIPT = re.compile(r"[^\W\d_]{1,16}$")
_DOMAIN = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9_-])")
_LONGEST_LOCAL, _LONGEST_DOMAIN = 64, 255
# `git@github.com:team/repo` is a place to fetch from, not a person.
_REMOTE_USERS = frozenset(("git", "hg", "svn"))
_FILE_ENDINGS = frozenset(
    ("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "ts", "jsx", "tsx", "mjs", "json", "xml")
    + ("html", "htm", "py", "rb", "rs", "md", "txt", "yml", "yaml", "lock", "map")
)
# Legal in a local part, but in running text they belong to what stands around the address.
_WRAPPERS = "'`{|/="

_IBAN = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?"
    r"|[a-z]{2}\d{2}[a-z0-9]{11,30})(?![A-Za-z0-9])"
)

_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)", re.ASCII)
_IPV6 = re.compile(r"(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Za-z:.])")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")


def find_emails(text: str) -> Iterator[Span]:
    """E-mail addresses by the dot-atom rules of RFC 5322; not `git@host`, not `logo@2x.png`."""
    for at in _AT.finditer(text):
        domain = _DOMAIN.match(text, at.end(), at.end() + _LONGEST_DOMAIN)
        if not domain or not _is_mail_domain(domain[0]):
            continue
        start = _local_start(text, at.start())
        if start is not None and text[start : at.start()].lower() not in _REMOTE_USERS:
            yield Span(start, domain.end(), SpanType.EMAIL, text[start : domain.end()])


def _local_start(text: str, at: int) -> int | None:
    """Where the local part before `@` begins, or None when it is no valid one."""
    before = text[max(0, at - _LONGEST_LOCAL) : at]
    local = _LOCAL.search(before)
    if not local:
        local = _LOCAL_ANY_SCRIPT.search(before)
        return at - len(local[0]) if local else None
    # A leading or doubled dot makes the address invalid; three and more are an ellipsis, not a part of it.
    dots = len(before[: local.start()]) - len(before[: local.start()].rstrip("."))
    if dots in (1, 2):
        return None
    bare = re.split(f"[{re.escape(_WRAPPERS)}]", local[0])[-1]
    return at - len(bare) if bare else None


def _is_mail_domain(domain: str) -> bool:
    *labels, ending = domain.lower().split(".")
    return ending not in _FILE_ENDINGS and (len(labels) == 1 or not all(label.isdigit() for label in labels))


def find_ibans(text: str) -> Iterator[Span]:
    """IBANs of registered countries with the right length and check digits, compact or in groups of four."""
    for found in _IBAN.finditer(text):
        # The pattern may run on into a following word in capitals: cut to the country's length.
        length = checksums.IBAN_LENGTHS.get(found[0][:2].upper(), 0)
        value = _first_symbols(found[0], length)
        if value and checksums.iban(value.replace(" ", "").upper()) and _ends(text, found.start() + len(value)):
            yield Span(found.start(), found.start() + len(value), SpanType.IBAN, value)


def _first_symbols(text: str, count: int) -> str | None:
    seen = 0
    for place, char in enumerate(text):
        seen += char != " "
        if seen == count:
            return text[: place + 1]
    return None


def _ends(text: str, end: int) -> bool:
    """Whether no letter or digit continues at `end`."""
    return end >= len(text) or not (text[end].isascii() and text[end].isalnum())


def find_ips(text: str) -> Iterator[Span]:
    """Public IPv4 and IPv6 addresses; private, loopback, documentation and multicast ones stay."""
    for found in _IPV4.finditer(text):
        if _is_public(found[0]) and not _is_version(text, *found.span()):
            yield Span(*found.span(), SpanType.IP, found[0])
    if "::" not in text and text.count(":") < 7:
        return
    for found in _IPV6.finditer(text):
        if ("::" in found[0] or found[0].count(":") == 7) and _is_public(found[0]):
            yield Span(*found.span(), SpanType.IP, found[0])


def _is_public(address: str) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if ip.version == 6 and "::" in address and ip not in _GLOBAL_UNICAST:
        return False  # `A::B` is a name in many languages
    return ip.is_global and not ip.is_multicast


def _is_version(text: str, start: int, end: int) -> bool:
    """`v1.2.3.4`, `Chrome/120.0.0.0` and `version 1.2.3.4` are versions."""
    before = text[max(0, start - 2) : start]
    if before[-1:].isalpha() and before[-1].isascii():
        return True
    if before[-1:] in ("-", "_") or (before[-1:] == "/" and before[:1].isalnum() and text[end : end + 1] != ":"):
        return True
    return cue_before(text, start) is Cue.VERSION
