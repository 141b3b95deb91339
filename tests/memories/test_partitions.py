"""The search tables in hash partitions and whole again, with writers at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.models import Memory, MemoryTerms, MemoryVector
from memories.search import partitions, vector_indexes
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


@pytest.fixture(autouse=True)
def _whole_again() -> Iterator[None]:
    yield
    partitions.convert(0)


def looks(table: str) -> set[tuple]:
    """Columns, keys, indexes, triggers and rights of a table, as PostgreSQL tells them."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT 'column', attname::text, format_type(atttypid, atttypmod) || attnotnull::text || attstorage::text
            FROM pg_attribute WHERE attrelid = %(t)s::regclass AND attnum > 0
            UNION SELECT 'constraint', conname, pg_get_constraintdef(oid)
            FROM pg_constraint WHERE conrelid = %(t)s::regclass AND contype <> 'n'
            UNION SELECT 'index', indexrelid::regclass::text, replace(pg_get_indexdef(indexrelid), ' ONLY ', ' ')
            FROM pg_index WHERE indrelid = %(t)s::regclass
            UNION SELECT 'trigger', tgname, pg_get_triggerdef(oid) || coalesce(obj_description(oid, 'pg_trigger'), '')
            FROM pg_trigger WHERE tgrelid = %(t)s::regclass AND NOT tgisinternal
            UNION SELECT 'right', grantee::regrole::text, privilege_type
            FROM pg_class, aclexplode(relacl) WHERE oid = %(t)s::regclass AND grantee <> relowner AND grantee <> 0
            """,
            {"t": table},
        )
        return set(cursor.fetchall())


def rows() -> set[tuple]:
    return {("terms", *row) for row in MemoryTerms.objects.values_list("team_id", "memory_id", "status", "tokens")} | {
        ("vector", *row, tuple(vector))
        for *row, vector in MemoryVector.objects.values_list("team_id", "memory_id", "status", "embedding")
    }


def test_there_and_back_nothing_is_lost(agent, other_agent, api) -> None:
    for of in (agent, other_agent):
        for number in range(4):
            factories.memory(of, f"The certificate number {number} of {of.slug} is blue.")
    before, shape = rows(), {table: looks(table) for table in partitions.TABLES}
    assert partitions.convert(4, batch=2) == list(partitions.TABLES)
    assert [partitions.count(table) for table in partitions.TABLES] == [4, 4]
    assert rows() == before
    assert {table: looks(table) for table in partitions.TABLES} == shape
    found = api.post("/api/v1/recall", {"query": "certificate number 2", "min_relevance": 0}).json()
    assert found["hits"][0]["snippet"] == f"The certificate number 2 of {agent.slug} is blue."
    assert partitions.convert(4) == [], "they are already"
    assert partitions.convert(8) == list(partitions.TABLES)
    assert rows() == before
    partitions.convert(0)
    assert rows() == before
    assert {table: looks(table) for table in partitions.TABLES} == shape


def test_a_partition_keeps_vectors_in_line(agent) -> None:
    """STORAGE PLAIN: out of line, each vector would be read by a second look-up."""
    factories.memory(agent)
    partitions.convert(2)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT attstorage::text FROM pg_attribute a JOIN pg_inherits i ON i.inhrelid = a.attrelid"
            " WHERE i.inhparent = 'memories_memoryvector'::regclass AND attname = 'embedding'"
        )
        assert cursor.fetchall() == [("p",)]


def test_what_is_written_meanwhile_is_there_afterwards(agent, monkeypatch) -> None:
    kept = [factories.memory(agent, f"Standing order number {number}.") for number in range(12)]
    going, wrong = threading.Event(), []

    def write() -> None:
        try:
            going.wait(20)
            for number, memory in enumerate(kept):
                factories.memory(agent, f"Fresh order number {number}.")
                with team_transaction(agent.team):
                    if number % 3 == 0:
                        actions.forget(team=agent.team, by=SYSTEM, memory=memory)
                    elif number % 3 == 1:
                        actions.archive(team=agent.team, by=SYSTEM, memory=memory)
        except Exception as error:  # noqa: BLE001 - told below
            wrong.append(error)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    told: list[str] = []

    def progress(what: str) -> None:
        going.set()
        told.append(what)

    partitions.convert(3, progress, batch=1)
    writer.join(60)
    assert not wrong
    assert len(told) >= 24
    with team_transaction(agent.team):
        alive = dict(Memory.objects.of(agent.team).exclude(status="forgotten").values_list("pk", "status"))
    assert len(alive) == 20
    for table in (MemoryTerms, MemoryVector):
        assert dict(table.objects.of(agent.team).values_list("memory_id", "status")) == alive


def test_the_database_still_refuses_what_it_refused(agent, other_agent) -> None:
    memory = factories.memory(agent)
    partitions.convert(4)
    with pytest.raises(DatabaseError, match="Cannot update rows"):
        MemoryTerms.objects.filter(memory_id=memory.pk).update(team=other_agent.team)
    with pytest.raises(IntegrityError, match="same_team"):  # at the commit
        MemoryTerms.objects.filter(memory_id=memory.pk).update(scope_id=other_agent.pk)


def test_a_big_team_gets_its_index_on_its_partition(agent, monkeypatch) -> None:
    monkeypatch.setattr(vector_indexes, "BUILD_ABOVE", 3)
    monkeypatch.setattr(vector_indexes, "DROP_BELOW", 1)
    for number in range(5):
        factories.memory(agent, f"The certificate number {number} is blue.")
    partitions.convert(4)
    model = MemoryVector.objects.values_list("model_id", flat=True)[0]
    assert not vector_indexes.is_ready(agent.team.pk, model)
    assert len(vector_indexes.sync().built) == 1
    assert vector_indexes.is_ready(agent.team.pk, model)
    assert vector_indexes.sync().built == (), "it is found again"


@pytest.mark.parametrize("then", [0, 4])
def test_what_was_killed_on_the_way_is_cleared_away(agent, monkeypatch, then: int) -> None:
    memory, shape = factories.memory(agent), looks("memories_memoryterms")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(partitions, "_remove_leftovers", lambda table: None)  # as with kill -9
        patch.setattr(partitions, "_compare", die)
        with pytest.raises(KeyboardInterrupt):
            partitions.convert(4)
    factories.memory(agent, "Writing goes on meanwhile, and is carried over to a table that nobody reads.")
    assert partitions.convert(then) == (list(partitions.TABLES) if then else [])
    assert looks("memories_memoryterms") == shape
    assert MemoryTerms.objects.count() == 2
    assert MemoryTerms.objects.filter(memory_id=memory.pk).exists()


def test_it_gives_up_when_the_table_is_never_free(agent, monkeypatch) -> None:
    monkeypatch.setattr(partitions, "ATTEMPTS", 2)
    monkeypatch.setattr(partitions, "LOCK_MS", 200)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT count(*) FROM memories_memoryterms")
            with pytest.raises(CommandError, match="never free"):
                call_command("partition_search", partitions=4, verbosity=0)
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert partitions.count("memories_memoryterms") == 0


@pytest.mark.parametrize("number", [-1, 1, 1025])
def test_a_wrong_number_is_refused(number: int) -> None:
    with pytest.raises(CommandError, match="0 or 2 to 1024"):
        call_command("partition_search", partitions=number)
