"""One partial HNSW index for each big team and model: which there are, which there should be.

An index over all teams would be wrong: a team of 1,000 beside one of 100,000 gets 0 to 50 % of the right
rows. So each has its own, above a size at which exact search grows slow; below, exact search is always right.

The role that serves owns no table and cannot make an index, and CREATE INDEX CONCURRENTLY runs in no function.
So `sync` runs in `manage.py vector_indexes`, which connects as the owner of the tables.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from psycopg import sql

from .caches import TimedCache

BUILD_ABOVE = 20_000  # vectors of one team and model
DROP_BELOW = 10_000  # far enough below that a team at the edge is not built and dropped in turns
MOST_DIMENSIONS = 4_000  # that an index over halfvec takes
M, EF_CONSTRUCTION = 16, 64

PREFIX = "memoryvector_hnsw_"
_LOCK = 0x686E7377  # "hnsw": one builder at a time
_KEPT_SECONDS = 60.0

_ready: TimedCache[str, bool] = TimedCache(size=10_000, seconds=_KEPT_SECONDS)


@dataclass(frozen=True, slots=True)
class Synced:
    """The names of the indexes that were built and dropped; `skipped`: another process is at it."""

    built: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    skipped: bool = False


def name_of(team_id: uuid.UUID, model_id: str) -> str:
    """Return the name of the index over one team's vectors of one model."""
    return f"{PREFIX}{team_id.hex}_{zlib.crc32(model_id.encode()):08x}"


def is_ready(team_id: uuid.UUID, model_id: str) -> bool:
    """Whether the index is there and whole. Kept in the process for a minute."""
    name = name_of(team_id, model_id)
    return _ready.get_or_make(name, lambda: _there().get(name, False))


def forget() -> None:
    """Look again, at the next question, which indexes there are."""
    _ready.clear()


def is_due() -> bool:
    """Whether there is anything to build or to drop."""
    counts, there = _counts(), _there()
    missing = any(count > BUILD_ABOVE and not there.get(name_of(*key)) for key, count in counts.items())
    return missing or bool(_unneeded(counts, there))


def _unneeded(counts: Mapping[tuple[uuid.UUID, str], int], there: Mapping[str, bool]) -> list[str]:
    sizes = {name_of(*key): count for key, count in counts.items()}
    return [name for name, whole in sorted(there.items()) if not whole or sizes.get(name, 0) < DROP_BELOW]


def sync(progress: Callable[[str], None] = lambda _: None) -> Synced:
    """Build what is missing and drop what is not needed. As the owner, outside a transaction.

    Nobody waits: both go on beside reads and writes. An index whose building was killed is invalid and
    is built anew.
    """
    with _only_one() as mine:
        if not mine:
            return Synced(skipped=True)
        counts, there = _counts(), _there()
        dropped = _unneeded(counts, there)
        for name in dropped:
            progress(f"dropping {name}")
            _drop(name)
        standing = there.keys() - set(dropped)
        wanted = [key for key, count in sorted(counts.items()) if count > BUILD_ABOVE and name_of(*key) not in standing]
        made = [_build(*key, progress) for key in wanted]
    forget()
    return Synced(tuple(name for name in made if name), tuple(dropped))


def _build(team_id: uuid.UUID, model_id: str, progress: Callable[[str], None]) -> str:
    """Build one index; returns its name, or "" for vectors that are too long for one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT vector_dims(embedding), tableoid::regclass::text FROM memories_memoryvector"
            " WHERE team_id = %s AND model_id = %s LIMIT 1",
            [team_id, model_id],
        )
        row = cursor.fetchone()
        if row is None or row[0] > MOST_DIMENSIONS:
            return ""
        name = name_of(team_id, model_id)
        progress(f"building {name}")
        cursor.execute(
            sql.SQL(
                "CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw"
                " ((embedding::halfvec({dimensions})) halfvec_cosine_ops) WITH (m = {m}, ef_construction = {ef})"
                " WHERE team_id = {team} AND model_id = {model}"
            ).format(
                name=sql.Identifier(name),
                table=sql.Identifier(row[1]),  # the partition that has the team, where there are partitions
                dimensions=sql.Literal(row[0]),
                m=sql.Literal(M),
                ef=sql.Literal(EF_CONSTRUCTION),
                team=sql.Literal(team_id),
                model=sql.Literal(model_id),
            )
        )
    return name


def _drop(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))


def _counts() -> dict[tuple[uuid.UUID, str], int]:
    """Vectors by team and model. The search tables are under no row-level security, and hold no text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT team_id, model_id, count(*) FROM memories_memoryvector GROUP BY team_id, model_id")
        return {(team, model): count for team, model, count in cursor.fetchall()}


def _there() -> dict[str, bool]:
    """The indexes by name, and whether each is whole."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE i.indrelid IN (SELECT 'memories_memoryvector'::regclass UNION"
            " SELECT relid FROM pg_partition_tree('memories_memoryvector')) AND c.relname LIKE %s",
            [f"{PREFIX}%"],
        )
        return dict(cursor.fetchall())


@contextmanager
def _only_one() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        mine = cursor.fetchone()[0]
        try:
            yield mine
        finally:
            if mine:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
