"""The tables of the database, and the statements that copy their rows out and in."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from psycopg import sql

# All in our schema but what an extension brought. Columns that the database computes are left out.
TABLES = """
SELECT c.relname, row_security_active(c.oid),
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '')
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
GROUP BY c.oid, c.relname ORDER BY c.relname
"""
# Sequences that fill a column, to be set behind the highest number in it.
SEQUENCES = """
SELECT s.oid::regclass::text, t.relname, a.attname
FROM pg_class s
JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
JOIN pg_class t ON t.oid = d.refobjid
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
WHERE s.relkind = 'S' AND t.relnamespace = 'public'::regnamespace
"""


@dataclass(frozen=True, slots=True)
class Table:
    """`fenced`: the role we are sees the rows of one team at a time."""

    name: str
    fenced: bool
    columns: tuple[str, ...]


def all_tables() -> list[Table]:
    """Every table of ours, by name."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return [Table(name, fenced, tuple(columns)) for name, fenced, columns in cursor.fetchall()]


def copy_out(table: Table, team_id: uuid.UUID | None) -> sql.Composed:
    """COPY all rows of a table, or those of a team, as text: a line each, whatever they hold."""
    where = sql.SQL("") if team_id is None else sql.SQL(" WHERE team_id = {}").format(sql.Literal(str(team_id)))
    return sql.SQL("COPY (SELECT {columns} FROM {table}{where}) TO STDOUT").format(
        columns=_names(table.columns), table=sql.Identifier(table.name), where=where
    )


def copy_in(table: str, columns: Iterable[str]) -> sql.Composed:
    return sql.SQL("COPY {table} ({columns}) FROM STDIN").format(table=sql.Identifier(table), columns=_names(columns))


def lift_fence(table: str) -> sql.Composed:
    """Let the table's owner, and nobody else, write rows of all teams."""
    return sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(table))


def put_fence_back(table: str) -> sql.Composed:
    return sql.SQL("ALTER TABLE {} FORCE ROW LEVEL SECURITY").format(sql.Identifier(table))


def truncate(tables: Iterable[str]) -> sql.Composed:
    return sql.SQL("TRUNCATE {}").format(_names(tables))


def drop(tables: Iterable[str]) -> sql.Composed:
    return sql.SQL("DROP TABLE {} CASCADE").format(_names(tables))


def analyze(tables: Iterable[str]) -> sql.Composed:
    return sql.SQL("ANALYZE {}").format(_names(tables))


def advance_sequences() -> None:
    """Have every sequence go on behind the highest number that is there."""
    with connection.cursor() as cursor:
        cursor.execute(SEQUENCES)
        for sequence, table, column in cursor.fetchall():
            highest = sql.SQL("SELECT setval({}::regclass, max({}), true) FROM {} HAVING max({}) IS NOT NULL").format(
                sql.Literal(sequence), sql.Identifier(column), sql.Identifier(table), sql.Identifier(column)
            )
            cursor.execute(highest)


def _names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)
