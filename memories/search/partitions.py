"""The two search tables in hash partitions by team, or whole again, while everything goes on reading and writing.

    convert(16)   into 16 partitions each
    convert(0)    back into one table each

Both tables have the team in their primary key and under every index, no row-level security, and no other table
points at them: what hash partitioning asks for. The tables that hold content stay whole: their primary key is the id
alone (see `manage.py citus_sql`), and no search reads them without one.

How: a new table beside the old one, with the same columns, keys, indexes and triggers; a trigger that carries every
later write over; the rows, batch by batch; and then, in a moment in which nobody is at the table, the new one takes
the place of the old one. Killed before that, nothing has changed but for a table that the next run removes.
"""

# ruff: noqa: S608 - the statements are made of the names of our own tables and columns

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg import sql

from . import vector_indexes

TABLES = ("memories_memoryterms", "memories_memoryvector")
MOST = 1024
BATCH = 5_000  # memories copied in one transaction
ATTEMPTS = 60  # to find a moment in which the tables are free
# That one attempt waits, and others for it. Below the second after which PostgreSQL looks for a deadlock: of two that
# wait for each other this one gives up, and never a writer.
LOCK_MS = 700
PAUSE_SECONDS = 0.5
_NEW, _SYNC = "__new", "__sync"
_LOCK = 0x70617274  # "part": one conversion at a time

Progress = Callable[[str], None]


class Busy(Exception):
    """Another conversion runs, or the table was never free for a moment. Nothing has changed."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the new table has to have besides its columns: SQL in which `table` and its indexes have their names."""

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    constraints: tuple[tuple[str, str, bool], ...]  # name, definition, whether it makes an index
    indexes: tuple[tuple[str, str], ...]
    triggers: tuple[tuple[str, str, str], ...]  # name, definition, comment
    grants: tuple[tuple[str, str], ...]  # role, privileges
    points_at: tuple[str, ...]  # tables: a foreign key is made and dropped under a lock of both sides


def count(table: str) -> int:
    """How many partitions a table is in; 0 for one that is whole."""
    return int(_one("SELECT count(*) FROM pg_inherits WHERE inhparent = %s::regclass", table))


def convert(partitions: int, progress: Progress = lambda _: None, *, batch: int = BATCH) -> list[str]:
    """Put each search table into so many partitions (0: none). Returns the tables that were changed.

    As their owner, on a session of its own (not through a pooler), outside a transaction. Indexes of big teams are
    not taken along: run `manage.py vector_indexes` afterwards. Raises `Busy`, or ValueError for a wrong number.
    """
    if not 0 <= partitions <= MOST or partitions == 1:
        raise ValueError(f"the number of partitions is 0 or 2 to {MOST}")
    if not _one("SELECT pg_try_advisory_lock(%s)", _LOCK):
        raise Busy("Another process converts the search tables.")
    try:
        for shape in map(_shape, TABLES):
            if _one("SELECT to_regclass(%s) IS NOT NULL", f"{shape.table}{_NEW}"):
                _tidy(shape, progress)
        changed = [table for table in TABLES if count(table) != partitions]
        for table in changed:
            _convert(_shape(table), partitions, progress, batch)
    finally:
        _one("SELECT pg_advisory_unlock(%s)", _LOCK)
    vector_indexes.forget()
    return changed


def _convert(shape: _Shape, partitions: int, progress: Progress, batch: int) -> None:
    _in_a_free_moment(shape, "SHARE ROW EXCLUSIVE", lambda: _make(shape, partitions), progress)
    try:
        _copy(shape, progress, batch)
        _compare(shape)
        _in_a_free_moment(shape, "ACCESS EXCLUSIVE", lambda: _replace(shape), progress)
    except BaseException:
        with suppress(Busy):  # the next run does it, whatever it is asked for
            _tidy(shape, progress)
        raise
    _run(f"ANALYZE {shape.table}")


def _tidy(shape: _Shape, progress: Progress) -> None:
    """Remove what a run leaves that was killed or went wrong."""
    _in_a_free_moment(shape, "ACCESS EXCLUSIVE", lambda: _remove_leftovers(shape.table), progress)


def _shape(table: str) -> _Shape:
    columns = _rows(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " ORDER BY attnum",
        table,
    )
    key = _rows(
        "SELECT a.attname::text FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(attnum, n)"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
        " WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY k.n",
        table,
    )
    return _Shape(
        table=table,
        columns=tuple(name for (name,) in columns),
        key=tuple(name for (name,) in key),
        constraints=tuple(
            _rows(
                "SELECT conname::text, pg_get_constraintdef(oid), contype IN ('p', 'u') FROM pg_constraint"
                " WHERE conrelid = %s::regclass AND contype IN ('p', 'u', 'f') ORDER BY contype DESC, conname",
                table,
            )
        ),
        indexes=tuple(
            _rows(
                "SELECT c.relname::text, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
                " WHERE i.indrelid = %s::regclass AND NOT starts_with(c.relname, %s)"
                " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid) ORDER BY 1",
                table,
                vector_indexes.PREFIX,
            )  # fmt: skip
        ),
        triggers=tuple(
            _rows(
                "SELECT tgname::text, pg_get_triggerdef(oid), coalesce(obj_description(oid, 'pg_trigger'), '')"
                " FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal AND tgname <> %s ORDER BY 1",
                table,
                f"{table}{_SYNC}",
            )  # fmt: skip
        ),
        grants=tuple(
            _rows(
                "SELECT grantee::regrole::text, string_agg(privilege_type, ', ') FROM pg_class, aclexplode(relacl)"
                " WHERE oid = %s::regclass AND grantee <> 0 AND grantee <> relowner GROUP BY grantee",
                table,
            )
        ),
        points_at=tuple(
            name
            for (name,) in _rows(
                "SELECT DISTINCT confrelid::regclass::text FROM pg_constraint"
                " WHERE conrelid = %s::regclass AND contype = 'f' ORDER BY 1",
                table,
            )
        ),
    )


def _make(shape: _Shape, partitions: int) -> None:
    """The new table, empty, and the trigger that carries over what is written from now on."""
    new = f"{shape.table}{_NEW}"
    parted = "PARTITION BY HASH (team_id)" if partitions else ""
    _run(f"CREATE TABLE {new} (LIKE {shape.table} INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING CONSTRAINTS) {parted}")
    for number in range(partitions):
        _run(
            f"CREATE TABLE {shape.table}_{partitions}_{number:04d} PARTITION OF {new}"
            f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
        )
    for name, definition, has_index in shape.constraints:
        _run(f'ALTER TABLE {new} ADD CONSTRAINT "{name}{_NEW if has_index else ""}" {definition}')
    for name, definition in shape.indexes:
        # A partitioned table's own index is said to be ON ONLY it; the new one's is wanted on all partitions.
        told = definition.replace(f" ON ONLY public.{shape.table} ", f" ON public.{shape.table} ")
        _run(told.replace(f"{name} ON public.{shape.table} ", f"{name}{_NEW} ON public.{new} ", 1))
    for name, definition, comment in shape.triggers:
        _run(re.sub(rf" ON (public\.)?{shape.table} ", f" ON {new} ", definition, count=1))
        if comment:
            _run(sql.SQL("COMMENT ON TRIGGER {} ON {} IS {}").format(
                sql.Identifier(name), sql.Identifier(new), sql.Literal(comment)
            ))  # fmt: skip
    for role, privileges in shape.grants:
        _run(f"GRANT {privileges} ON {new} TO {role}")
    _carry_over(shape, new)


def _carry_over(shape: _Shape, new: str) -> None:
    """Have each later write of the old table done on the new one too, in the same transaction."""
    where = " AND ".join(f"{name} = OLD.{name}" for name in shape.key)
    values = ", ".join(f"NEW.{name}" for name in shape.columns)
    _run(
        f"""
        CREATE FUNCTION {shape.table}{_SYNC}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP <> 'INSERT' THEN DELETE FROM {new} WHERE {where}; END IF;
            IF TG_OP <> 'DELETE' THEN INSERT INTO {new} ({", ".join(shape.columns)}) VALUES ({values}); END IF;
            RETURN NULL;
        END $$
        """
    )
    _run(
        f"CREATE TRIGGER {shape.table}{_SYNC} AFTER INSERT OR UPDATE OR DELETE ON {shape.table}"
        f" FOR EACH ROW EXECUTE FUNCTION {shape.table}{_SYNC}()"
    )


def _copy(shape: _Shape, progress: Progress, batch: int) -> None:
    """The rows that were there before, team by team.

    FOR SHARE: whoever changes or deletes a row waits until its copy is there, and then changes that too.
    """
    columns = ", ".join(shape.columns)
    statement = (
        f"INSERT INTO {shape.table}{_NEW} ({columns}) SELECT {columns} FROM {shape.table}"
        " WHERE team_id = %s AND memory_id > %s AND memory_id <= %s FOR SHARE ON CONFLICT DO NOTHING"
    )  # fmt: skip
    edge = (
        f"SELECT max(memory_id::text)::uuid, count(*) FROM (SELECT memory_id FROM {shape.table} WHERE team_id = %s"
        " AND memory_id > %s ORDER BY memory_id LIMIT %s) part"
    )
    teams = [team for (team,) in _rows("SELECT id FROM accounts_team ORDER BY id")]
    done = 0
    for number, team in enumerate(teams, start=1):
        last = uuid.UUID(int=0)
        while True:
            upto, size = _rows(edge, team, last, batch)[0]
            if not size:
                break
            with transaction.atomic():
                _run(statement, team, last, upto)
            last, done = upto, done + size
            progress(f"{shape.table}: {done:,} rows, team {number:,} of {len(teams):,}")


def _compare(shape: _Shape) -> None:
    """Raise RuntimeError unless old and new hold as many rows: of one moment, for each write goes to both at once."""
    there, copied = _rows(f"SELECT (SELECT count(*) FROM {shape.table}), (SELECT count(*) FROM {shape.table}{_NEW})")[0]
    if there != copied:
        raise RuntimeError(f"{shape.table} has {there:,} rows and its copy {copied:,}: nothing has changed")


def _in_a_free_moment(shape: _Shape, mode: str, work: Callable[[], None], progress: Progress) -> None:
    """Do quick work under a lock of the table and of those it points at. Raises `Busy` when they are never free."""
    tables = ", ".join((*shape.points_at, shape.table))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic():
                _run(f"SET LOCAL statement_timeout = {LOCK_MS}")
                _run(f"LOCK TABLE {tables} IN {mode} MODE")
                _run("SET LOCAL statement_timeout = 0")
                work()
            return
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != "57014":  # the time-out
                raise
            progress(f"{shape.table}: in use, attempt {attempt} of {ATTEMPTS}")
            time.sleep(PAUSE_SECONDS)
    raise Busy(f"{shape.table} was never free for a moment: nothing has changed. Try again when less is going on.")


def _replace(shape: _Shape) -> None:
    """Put the new table in the old one's place."""
    new = f"{shape.table}{_NEW}"
    _run(f"DROP TABLE {shape.table}")  # with its indexes, triggers and partitions
    _run(f"DROP FUNCTION {shape.table}{_SYNC}()")
    _run(f"ALTER TABLE {new} RENAME TO {shape.table}")
    for name, _, has_index in shape.constraints:
        if has_index:
            _run(f'ALTER TABLE {shape.table} RENAME CONSTRAINT "{name}{_NEW}" TO "{name}"')
    for name, _ in shape.indexes:
        _run(f"ALTER INDEX {name}{_NEW} RENAME TO {name}")


def _remove_leftovers(table: str) -> None:
    _run(f"DROP TRIGGER IF EXISTS {table}{_SYNC} ON {table}")
    _run(f"DROP FUNCTION IF EXISTS {table}{_SYNC}()")
    _run(f"DROP TABLE IF EXISTS {table}{_NEW}")


def _run(statement: str | sql.Composed, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)


def _rows(statement: str, *values: Any) -> Sequence[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall()


def _one(statement: str, *values: Any):  # noqa: ANN202 - what the statement says
    return _rows(statement, *values)[0][0]
