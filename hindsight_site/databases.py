"""From DATABASE_URL, or the embedded server, to Django's connection parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psycopg import conninfo


def parameters(url: str, data_dir: Path) -> dict[str, Any]:
    """Return NAME, USER, PASSWORD, HOST, PORT and OPTIONS for Django.

    `url` is a postgresql:// URI; empty means the embedded server in `data_dir`. Before that server's
    first start there is no address yet: the parameters then name a database that cannot be reached,
    so that commands without a database still run.
    """
    if not url:
        from hindsight_site import embedded_db  # not needed, nor looked at, with a DATABASE_URL

        try:
            url = embedded_db.uri(data_dir)
        except embedded_db.EmbeddedDatabaseError:
            url = "postgresql://127.0.0.1:1/embedded-database-not-started"
    parts = {key: value for key, value in conninfo.conninfo_to_dict(url).items() if value is not None}
    return {
        "NAME": parts.pop("dbname", "hindsight"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": {"connect_timeout": 5, **parts},
    }
