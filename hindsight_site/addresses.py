"""Whether the addresses in settings are any, told at the start instead of at the first use.

What is told says what to do and shows nothing of the address: it may hold a password.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError, conninfo

_HOST = re.compile(r"[^\s<>\"\\^`{|}]+")


def flaw(url: str) -> str:
    """What is wrong with a web address (http or https), as the end of a sentence; "" when nothing is."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that is not closed, or no IPv6 address in a pair
        return "its host is none"
    if parts.scheme not in {"http", "https"}:
        return "it does not begin with http:// or https://"
    if not _HOST.fullmatch(parts.hostname or ""):
        return "its host is none"
    try:
        port = parts.port
    except ValueError:
        port = 0
    return "its port is not a number from 1 to 65535" if port == 0 else ""


def check(setting: str, url: str, example: str) -> None:
    """Raise ImproperlyConfigured, a line that says what to do, when `url` is set and no web address."""
    if url and (wrong := flaw(url)):
        raise ImproperlyConfigured(f"{setting} is not an address of the form {example}: {wrong}.")


def check_dsn(setting: str, dsn: str) -> None:
    """The same for the address that Sentry gives a project: it names a key and the project's number."""
    check(setting, dsn, example := "https://key@host/number")
    if dsn and not (urlsplit(dsn).username and urlsplit(dsn).path.rpartition("/")[2].isdecimal()):
        raise ImproperlyConfigured(
            f"{setting} is not an address of the form {example}: copy it whole from the project's page."
        )


def check_database(setting: str, url: str) -> None:
    """The same for a database: a postgresql:// URI, or libpq's form `host=… dbname=…`, with several hosts or one."""
    wanted = f"{setting} is not an address of the form postgresql://user:password@host/database"
    try:
        ports = str(conninfo.conninfo_to_dict(url).get("port") or "").split(",")
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"{wanted}.") from error
    if not all(port == "" or (port.isdecimal() and 0 < int(port) < 65_536) for port in ports):
        raise ImproperlyConfigured(f"{wanted}: its port is not a number from 1 to 65535.")
