"""From DATABASE_URL, or the embedded server, to Django's connection parameters."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import conninfo

# These change the schema, so they connect as its owner; everything else as the role that serves.
OWNERS_COMMANDS = {
    "up",
    "migrate",
    "makemigrations",
    "sqlmigrate",
    "test",
    "flush",
    "pgtrigger",
    "grant_app_role",
    "evaluate",
    "vector_indexes",
    "partition_search",
    "citus_sql",
    "backup",
    "restore",
}


def role_of(arguments: Sequence[str]) -> str:
    """Return "owner" or "app": as which role a command line (without the program) connects."""
    return "owner" if OWNERS_COMMANDS & set(arguments[:1]) else "app"


def parameters(
    url: str, data_dir: Path, role: str = "owner", statement_timeout_ms: int = 0, pooled: bool = False
) -> dict[str, Any]:
    """Return NAME, USER, PASSWORD, HOST, PORT and OPTIONS for Django.

    `url` is a postgresql:// URI that `addresses.check_database` has seen; empty means the embedded server in
    `data_dir`. Before that server's first start there is no address yet: the parameters then name a database that
    cannot be reached, so that commands without a database still run. `role` ("owner" or "app") is whom the embedded
    server knows us as; a `url` says so itself. A statement that takes longer than `statement_timeout_ms` is
    cancelled (0: none is).

    `pooled`: behind a pooler in transaction mode, where each transaction may run on another session. Then nothing
    is said at the connection's start, which such a pooler refuses (`tenancy.enter_team` bounds the statements),
    and no cursor outlives its transaction.
    """
    if not url:
        from hindsight_site import embedded_db  # not needed, nor looked at, with a DATABASE_URL

        try:
            url = embedded_db.uri(data_dir, role)
        except embedded_db.EmbeddedDatabaseError:
            url = "postgresql://127.0.0.1:1/embedded-database-not-started"
    parts = {key: value for key, value in conninfo.conninfo_to_dict(url).items() if value is not None}
    is_bounded = statement_timeout_ms and not pooled
    bounded = {"options": f"-c statement_timeout={statement_timeout_ms}"} if is_bounded else {}
    return {
        "NAME": parts.pop("dbname", "hindsight"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": {"connect_timeout": 5, **bounded, **parts},
        "DISABLE_SERVER_SIDE_CURSORS": pooled,
    }


def replica_parameters(url: str, data_dir: Path, pooled: bool) -> dict[str, Any]:
    """Return the parameters of the replica that recalls look at. It is given up early: the primary answers too."""
    found = parameters(url, data_dir, pooled=pooled)
    # Milliseconds: how long a line may stand on which nothing is confirmed any more.
    found["OPTIONS"] = {"tcp_user_timeout": 3_000, **found["OPTIONS"], "connect_timeout": 2}
    return found


def check_pooler(mode: str, direct_url: str) -> None:
    """Raise ImproperlyConfigured for a pooler that we do not know, or for one without a way past it.

    Migrations and the building of indexes hold locks of their session, which a pooler gives to somebody else. And
    the rate limiter asks while its request holds a session: were there no other left, both would wait for ever.
    """
    if mode not in ("", "transaction"):
        raise ImproperlyConfigured(f"DATABASE_POOLER is {mode!r}: set it to transaction, or leave it out.")
    if mode and not direct_url:
        raise ImproperlyConfigured(
            "With DATABASE_POOLER set DATABASE_DIRECT_URL too: the address of the database itself, past the pooler."
        )


def is_embedded() -> bool:
    """Whether the settings name no database, so that the embedded one is used."""
    from django.conf import settings

    return not settings.DATABASE_URL


def ensure() -> None:
    """Have the embedded server run for as long as this process does; nothing to do with a DATABASE_URL.

    Call it before the first connection, once per process. At exit the server is stopped unless another
    process uses it. Raises EmbeddedDatabaseError, one line that says what to do.
    """
    from django.conf import settings

    if is_embedded():
        from hindsight_site import embedded_db

        release_at_exit()
        embedded_db.start(settings.DATA_DIR)
        follow()


def release_at_exit() -> None:
    """Have the embedded server stopped when this process exits, unless another process uses it.

    For a process that will call `ensure` in a while: whoever started the server may be killed before.
    """
    from django.conf import settings

    if is_embedded():
        atexit.register(_release, settings.DATA_DIR, os.getpid())


def follow() -> bool:
    """Take the embedded server's present address into Django's settings. Returns whether it had changed.

    It changes with the first start, and when a stranger has taken the port meanwhile.
    """
    from django.conf import settings

    wanted = parameters(
        "", settings.DATA_DIR, settings.DATABASE_ROLE, statement_timeout_ms=settings.DATABASE_STATEMENT_TIMEOUT_MS
    )
    current = settings.DATABASES["default"]
    changed = any(current.get(name) != value for name, value in wanted.items() if name != "OPTIONS")
    current.update(wanted)
    return changed


def keep() -> bool:
    """Bring an embedded server back that died. For a supervisor, again and again: cheap while it runs.

    Returns whether the server's address changed, so that processes that know the old one must be started
    anew. Raises EmbeddedDatabaseError.
    """
    from django.conf import settings

    if not is_embedded():
        return False
    from hindsight_site import embedded_db

    return embedded_db.ensure_running(settings.DATA_DIR) and follow()


def _release(data_dir: Path, owner: int) -> None:
    """End this process's use of the server. A forked child that runs its parent's exit hooks must not."""
    from hindsight_site import embedded_db

    if os.getpid() == owner:
        embedded_db.stop(data_dir)
