"""The SQL that spreads this schema over a Citus cluster, made from the schema as it is.

Citus keeps the rows of a team together on one node when every table is distributed by the same column. It asks
that each primary key, unique constraint and foreign key between distributed tables holds that column: ours is team_id.
Tables that many teams' rows point at are copied to every node (reference tables); the rest stays on the coordinator,
which is where web and workers connect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from django.db import connection

COLUMN = "team_id"
SHARDS = 64  # of each table: how many nodes the cluster may grow to, with some to spare

# Rows of every team point at these, and they point at no team's.
REFERENCE = {
    "accounts_team": "each row of a team points at its team; its short name is unique over all of them",
    "accounts_user": "a person may belong to several teams",
}
# These have a team_id and stay where they are.
KEPT_WHOLE = {
    "accounts_ratebucket": "unlogged; one statement for each request, also for addresses that are no team's",
    "accounts_writemark": "unlogged; tells how far a replica of this very server has come",
}
# What is unique without the team → what it can be on a cluster, and what that costs.
UNIQUE_WITHOUT_TEAM: dict[tuple[str, tuple[str, ...]], str] = {
    ("accounts_apitoken", ("prefix",)): (
        "a token is looked up before its team is known, which asks every shard; two teams may by chance have the same "
        "eight characters, and the one whose secret's hash fits is meant"
    ),
}


class NotReady(Exception):
    """The schema is not there, or has something that Citus would refuse and this module does not know. One line."""


@dataclass(frozen=True, slots=True)
class Unique:
    """A primary key, unique constraint or unique index. `condition` is that of a partial index."""

    name: str
    columns: tuple[str, ...]
    is_primary: bool
    is_constraint: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table of ours. `points_at`: for each foreign key the columns here and the table there."""

    name: str
    columns: tuple[str, ...]
    is_partitioned: bool
    uniques: tuple[Unique, ...]
    points_at: tuple[tuple[tuple[str, ...], str], ...]
    team_triggers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every table once: distributed (in an order in which those pointed at come first), copied, or kept."""

    distributed: tuple[Table, ...]
    reference: tuple[Table, ...]
    local: tuple[Table, ...]


def plan(tables: Mapping[str, Table]) -> Plan:
    """Sort the tables. Raises `NotReady`, naming what Citus would refuse."""
    if not REFERENCE.keys() <= tables.keys():
        raise NotReady("The database lacks tables of this version: run `manage.py migrate` first.")
    spread = {name for name, table in tables.items() if COLUMN in table.columns and name not in KEPT_WHOLE}
    for name in sorted(spread):
        _check(tables[name], spread)
    order = TopologicalSorter({
        name: {there for _, there in tables[name].points_at if there in spread and there != name} for name in spread
    })  # fmt: skip
    return Plan(
        distributed=tuple(tables[name] for name in order.static_order()),
        reference=tuple(tables[name] for name in sorted(REFERENCE)),
        local=tuple(table for name, table in sorted(tables.items()) if name not in spread | REFERENCE.keys()),
    )


def _check(table: Table, spread: set[str]) -> None:
    if table.is_partitioned:
        raise NotReady(f"{table.name} is partitioned: run `manage.py partition_search --partitions 0` first.")
    for unique in table.uniques:
        known = unique.is_primary or (table.name, unique.columns) in UNIQUE_WITHOUT_TEAM
        if COLUMN not in unique.columns and not known:
            raise NotReady(f"{unique.name} of {table.name} is unique without {COLUMN}.")
    for columns, there in table.points_at:
        if there in spread and COLUMN not in columns:
            raise NotReady(f"A foreign key of {table.name} points at {there} without {COLUMN}.")
        if there not in spread and there not in REFERENCE:
            raise NotReady(f"A foreign key of {table.name} points at {there}, which stays on the coordinator.")


def script(found: Plan) -> str:
    """The whole of it, to be run once on the coordinator, as the owner of the tables."""
    first = found.distributed[0].name
    lines = [*_HEAD, "", "BEGIN;", "SET LOCAL citus.enable_unsafe_triggers TO on; -- append-only tables have one", ""]
    lines += [f"-- Citus takes no key without {COLUMN}, and itself refuses to change it in a row."]
    for table in found.distributed:
        lines += _prepared(table)
    lines += ["", "-- On every node."]
    for table in found.reference:
        lines.append(f"SELECT create_reference_table('{table.name}'); -- {REFERENCE[table.name]}")
    lines += ["", "-- By team, and all of a team on the same node."]
    for table in found.distributed:
        beside = f"colocate_with => '{first}'" if table.name != first else f"shard_count => {SHARDS}"
        lines.append(f"SELECT create_distributed_table('{table.name}', '{COLUMN}', {beside});")
    lines += ["", "COMMIT;", "", "-- On the coordinator only:"]
    lines += [f"--   {table.name}{_why_local(table.name)}" for table in found.local]
    return "\n".join(lines) + "\n"


_HEAD = (
    "-- Spreads the tables over a Citus cluster by team. Made by `manage.py citus_sql` from the schema as it is.",
    "-- Before: a backup; CREATE EXTENSION citus on every node; SELECT citus_set_coordinator_host(…);",
    "--   SELECT citus_add_node(…) for each worker; web and workers stopped.",
    "-- For good, on every node (row-level security is checked on the workers, which have to be told the team):",
    "--   ALTER SYSTEM SET citus.propagate_set_commands = 'local';",
    "-- docs/scaling.md says what has to be looked at on a trial cluster first.",
)


def _prepared(table: Table) -> list[str]:
    lines = []
    for unique in table.uniques:
        if COLUMN in unique.columns:
            continue
        columns = ", ".join((COLUMN, *unique.columns))
        kind = "PRIMARY KEY" if unique.is_primary else "UNIQUE"
        if not unique.is_primary:
            lines.append(f"-- {UNIQUE_WITHOUT_TEAM[table.name, unique.columns]}")
        lines.append(
            f'ALTER TABLE {table.name} DROP CONSTRAINT "{unique.name}",'
            f' ADD CONSTRAINT "{unique.name}" {kind} ({columns});'
        )
    return lines + [f'DROP TRIGGER "{name}" ON {table.name};' for name in table.team_triggers]


def _why_local(name: str) -> str:
    return f": {KEPT_WHOLE[name]}" if name in KEPT_WHOLE else ""


def read() -> dict[str, Table]:
    """The tables of the database we are connected to, by name, without what extensions brought."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        return {
            name: Table(
                name, tuple(columns), parted,
                tuple(Unique(u["name"], tuple(u["columns"]), u["primary"], u["constraint"]) for u in uniques),
                tuple((tuple(columns), there) for columns, there in points_at), tuple(triggers),
            )
            for name, columns, parted, uniques, points_at, triggers in cursor.fetchall()
        }  # fmt: skip


_TABLES = """
SELECT c.relname::text, (
    SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
), c.relkind = 'p', (
    SELECT coalesce(json_agg(json_build_object(
        'name', i.indexrelid::regclass::text, 'primary', i.indisprimary,
        'constraint', EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid AND contype IN ('p', 'u')),
        'columns', (
            SELECT json_agg(pg_get_indexdef(i.indexrelid, k.n::int, true) ORDER BY k.n)
            FROM unnest(i.indkey[:i.indnkeyatts - 1]) WITH ORDINALITY k(attnum, n)
        )
    ) ORDER BY i.indisprimary DESC, i.indexrelid::regclass::text), '[]')
    FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique
), (
    SELECT coalesce(json_agg(json_build_array((
        SELECT json_agg(a.attname ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY k(attnum, n)
        JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
    ), f.confrelid::regclass::text) ORDER BY f.conname), '[]')
    FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f'
), (
    SELECT coalesce(array_agg(tgname::text ORDER BY tgname), '{}') FROM pg_trigger
    WHERE tgrelid = c.oid AND tgname LIKE 'pgtrigger_team_never_changes_%'
)
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
"""
