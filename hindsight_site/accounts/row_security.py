"""Row-level security, as migration operations: the second fence behind the team-scoped manager.

A table under it shows nothing until `tenancy.enter_team` was called in the transaction, then the rows
of that team only, and takes rows for no other. FORCE puts the tables' owner behind the fence too; only a
superuser or a role with BYPASSRLS is not (`databases.check_role` warns of one).
"""

from __future__ import annotations

from django.db import connection
from django.db.migrations import RunSQL

TEAM_AT_WORK = "nullif(current_setting('app.team', true), '')::uuid"
PERSON = "nullif(current_setting('app.user', true), '')::bigint"
PRESENTED = "nullif(current_setting('app.token', true), '')"


def fence(table: str) -> RunSQL:
    """Put a tenant table behind its team."""
    return RunSQL(
        f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        CREATE POLICY team_at_work ON {table} USING (team_id = {TEAM_AT_WORK});
        """,
        f"""
        DROP POLICY team_at_work ON {table};
        ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
        """,
    )


def gate(table: str, name: str, condition: str) -> RunSQL:
    """Let rows be read, and only read, by something else than the team."""
    return RunSQL(f"CREATE POLICY {name} ON {table} FOR SELECT USING ({condition})", f"DROP POLICY {name} ON {table}")


def role_is_bound() -> bool:
    """Whether the role we are connected as is bound by row-level security."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT NOT (rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname = current_user")
        return bool(cursor.fetchone()[0])
