"""The role that serves: it owns nothing, so it is bound by row-level security and cannot change the schema.

The embedded server comes with one. On a server of the operator's, DATABASE_OWNER_URL names the owner,
who migrates, and DATABASE_URL the role that serves; `manage.py grant_app_role` makes the second from the first.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction
from psycopg import conninfo, sql


def grant_app_role() -> str:
    """Create the role of DATABASE_URL if it is missing, and let it read and write. Returns its name.

    Idempotent; connects as the owner. Tables that later migrations create are granted as well.
    """
    parts = conninfo.conninfo_to_dict(settings.APP_DATABASE_URL)
    name, password = str(parts.get("user") or ""), str(parts.get("password") or "")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT current_user, EXISTS (SELECT 1 FROM pg_roles WHERE rolname = %s)", [name])
        owner, exists = cursor.fetchone()
        if name in ("", owner):
            return owner
        if not exists:
            create = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD {}")
            cursor.execute(create.format(sql.Identifier(name), sql.Literal(password)))
        for grant in _GRANTS:
            cursor.execute(sql.SQL(grant).format(role=sql.Identifier(name)))
    return name


_GRANTS = (
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}",
)
