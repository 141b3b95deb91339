"""The SQL for a Citus cluster against the real schema: nothing is left out, and nothing in it would be refused.

No Citus runs here. Its two functions are stood in for by ones that refuse what its documentation says it refuses.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from hindsight_site import citus
from memories.search import partitions

pytestmark = pytest.mark.django_db

# What Citus asks of a table before it takes it, as far as the catalog shows it.
STAND_IN = """
CREATE TABLE taken (name text PRIMARY KEY, how text NOT NULL);
CREATE FUNCTION create_reference_table(t regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = t AND contype = 'f' AND confrelid <> t
               AND confrelid::regclass::text NOT IN (SELECT name FROM taken WHERE how = 'reference')) THEN
        RAISE 'reference table % points at one that is none', t;
    END IF;
    INSERT INTO taken VALUES (t::text, 'reference');
END $$;
CREATE FUNCTION create_distributed_table(t regclass, col text, colocate_with text DEFAULT '', shard_count int DEFAULT 0)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE number smallint := (SELECT attnum FROM pg_attribute WHERE attrelid = t AND attname = col);
BEGIN
    IF EXISTS (SELECT FROM pg_index WHERE indrelid = t AND indisunique AND number <> ALL (indkey)) THEN
        RAISE 'a unique index of % lacks %', t, col;
    END IF;
    IF EXISTS (
        SELECT FROM pg_constraint f LEFT JOIN taken ON taken.name = f.confrelid::regclass::text
        WHERE f.conrelid = t AND f.contype = 'f' AND f.confrelid <> t
          AND (taken.how IS NULL OR (taken.how <> 'reference' AND number <> ALL (f.conkey)))
    ) THEN
        RAISE 'a foreign key of % lacks % or points at what is not there yet', t, col;
    END IF;
    IF (SELECT NOT attnotnull FROM pg_attribute WHERE attrelid = t AND attname = col) THEN
        RAISE '% of % may be null', col, t;
    END IF;
    IF colocate_with <> '' AND NOT EXISTS (SELECT FROM taken WHERE name = colocate_with AND how = 'distributed') THEN
        RAISE '% is not distributed', colocate_with;
    END IF;
    INSERT INTO taken VALUES (t::text, 'distributed');
END $$;
"""


def printed() -> str:
    out = io.StringIO()
    call_command("citus_sql", stdout=out)
    return out.getvalue()


def all_tables() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        return {name for (name,) in cursor.fetchall()}


def test_every_table_is_told_once_where_it_goes() -> None:
    text = printed()
    spread = re.findall(r"^SELECT create_distributed_table\('(\w+)'", text, re.MULTILINE)
    copied = re.findall(r"^SELECT create_reference_table\('(\w+)'", text, re.MULTILINE)
    kept = re.findall(r"^--   (\w+)(?::|$)", text.partition("-- On the coordinator only:")[2], re.MULTILINE)
    told = spread + copied + kept
    assert len(told) == len(set(told))
    assert set(told) == all_tables()
    assert {"memories_memory", "memories_memoryvector", "reflection_step", "accounts_auditevent"} <= set(spread)


def test_every_table_with_a_team_goes_by_team_or_has_a_reason_not_to() -> None:
    tables = citus.read()
    with_team = {name for name, table in tables.items() if "team_id" in table.columns}
    found = citus.plan(tables)
    assert with_team - {table.name for table in found.distributed} == citus.KEPT_WHOLE.keys()
    assert {table.name for table in found.reference} == citus.REFERENCE.keys()


def test_the_real_schema_is_ready_when_the_script_has_run() -> None:
    text = printed()
    assert text.count("\nBEGIN;\n") == text.count("\nCOMMIT;\n") == 1
    inner = text.partition("\nBEGIN;\n")[2].partition("\nCOMMIT;\n")[0]
    with connection.cursor() as cursor:
        cursor.execute(STAND_IN)
        cursor.execute(inner)
        cursor.execute("SELECT how, count(*) FROM taken GROUP BY how")
        assert dict(cursor.fetchall()) == {"reference": 2, "distributed": len(citus.plan(citus.read()).distributed)}
        cursor.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'pgtrigger_team_never_changes%%'")
        assert cursor.fetchone()[0] == 0
        cursor.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'pgtrigger_append_only%%'")
        assert cursor.fetchone()[0] > 0, "the audit stays append-only"
    assert all(
        citus.COLUMN in unique.columns for table in citus.plan(citus.read()).distributed for unique in table.uniques
    )


def test_the_stand_in_refuses_the_schema_as_it_is() -> None:
    """So the test above can fail."""
    with connection.cursor() as cursor:
        cursor.execute(STAND_IN)
        with pytest.raises(Exception, match="lacks team_id"), transaction.atomic():
            cursor.execute("SELECT create_distributed_table('memories_memory', 'team_id')")


def test_what_citus_would_refuse_is_named() -> None:
    tables = citus.read()
    memory = tables["memories_memory"]
    loose = citus.Unique("by_name", ("content",), is_primary=False, is_constraint=True)
    for changed, told in (
        (replace(memory, uniques=(*memory.uniques, loose)), "by_name of memories_memory is unique without team_id"),
        (replace(memory, points_at=((("scope_id",), "memories_scope"),)), "points at memories_scope without team_id"),
        (replace(memory, points_at=((("x_id",), "django_session"),)), "django_session, which stays"),
    ):
        with pytest.raises(citus.NotReady, match=told):
            citus.plan({**tables, "memories_memory": changed})


@pytest.mark.django_db(transaction=True)
def test_partitions_are_taken_back_first() -> None:
    try:
        partitions.convert(2)
        with pytest.raises(CommandError, match="partition_search --partitions 0"):
            printed()
    finally:
        partitions.convert(0)
