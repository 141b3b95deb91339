"""How recall grows with the number of memories: in one team, and over many teams.

    python -m tests.evals.scale_curve --one-team 1000 10000 100000 1000000
    python -m tests.evals.scale_curve --teams 1000 --each 1000 --partitions 16

Fills the database of DATABASE_URL, as the owner of its tables: use one that can be thrown away. What is real:
the tables and indexes, the tokenizer, the embedding of the questions, and a recall as a request does it, with
row-level security (connect as a role that it binds) and receipt. What is made up: the texts (words as frequent as
Zipf's law has them, see memories.evaluation.crowd) and their vectors, mixed from embeddings of real sentences.

Prints one line of JSON for each measurement: milliseconds, bytes, seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import django

BATCH = 5_000  # memories written in one transaction
QUESTIONS = 60
TABLES = ("memories_memory", "memories_memoryterms", "memories_memoryvector")
GIN = "memoryterms_tokens"


class Place:
    """A team with one scope, and how many memories it has."""

    def __init__(self, slug: str) -> None:
        from hindsight_site.accounts.models import Team
        from hindsight_site.accounts.tenancy import team_transaction
        from memories.enums import ScopeKind
        from memories.models import Scope

        self.team = Team.objects.create(name=slug, slug=slug)
        with team_transaction(self.team):
            self.scope = Scope.objects.create(team=self.team, slug="crowd", name="Crowd", kind=ScopeKind.SHARED)
        self.memories = 0

    def add(self, texts: Sequence[str], vectors: Any) -> None:
        """Write the memories and their search rows, as bulk writing does."""
        from hindsight_site.accounts.tenancy import team_transaction
        from memories import indexing

        with team_transaction(self.team):
            rows = _copied(self, texts)
            indexing.keywords.upsert(
                team_id=self.team.pk,
                rows=[(pk, self.scope.pk, "active", indexing.document_tokens(text)) for pk, text in rows],
            )
            indexing.vectors.upsert(
                team_id=self.team.pk, model_id=indexing.get_embedder().model_id,
                rows=[(pk, self.scope.pk, "active", vector) for (pk, _), vector in zip(rows, vectors, strict=True)],
            )  # fmt: skip
        self.memories += len(texts)

    def copy_to(self, others: Sequence[Place]) -> None:
        """Give other teams the same memories under ids of their own, inside the database: quicker by far."""
        from django.db import connection, transaction

        from hindsight_site.accounts.tenancy import enter_team

        with transaction.atomic(), connection.cursor() as cursor:
            enter_team(self.team)
            for table in TABLES:
                cursor.execute(f"CREATE TEMP TABLE {table}_kept ON COMMIT DROP AS SELECT * FROM {table} WHERE FALSE")
                cursor.execute(f"INSERT INTO {table}_kept SELECT * FROM {table} WHERE team_id = %s", [self.team.pk])
            for other in others:
                enter_team(other.team)
                for table in TABLES:
                    cursor.execute(_copying(table), {"team": other.team.pk, "scope": other.scope.pk})
                other.memories = self.memories


def _copying(table: str) -> str:
    from django.apps import apps

    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    key = "id" if table == "memories_memory" else "memory_id"
    own = {"team_id": "%(team)s", "scope_id": "%(scope)s", key: f"md5({key}::text || %(team)s::text)::uuid"}
    columns = [field.column for field in model._meta.concrete_fields if field.column]
    chosen = ", ".join(own.get(name, f'"{name}"') for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    return f"INSERT INTO {table} ({names}) SELECT {chosen} FROM {table}_kept"


def _copied(place: Place, texts: Sequence[str]) -> list[tuple[Any, str]]:
    """Write rows of memories that differ in id, text and age; returns id and text of each.

    Row-level security takes no COPY, so by way of a table that is gone with the transaction.
    """
    from datetime import timedelta

    from django.db import connection

    from memories import contents
    from memories.enums import Kind, Status, Tier
    from memories.models import Memory

    model = Memory(team=place.team, scope=place.scope, kind=Kind.FACT, tier=Tier.SEMANTIC, status=Status.ACTIVE)
    fields = Memory._meta.concrete_fields
    constant = {f.column: f.get_db_prep_save(f.pre_save(model, True), connection) for f in fields}
    for name, value in constant.items():
        if hasattr(value, "obj"):  # psycopg's wrapper of JSON, which COPY as text does not know
            constant[name] = json.dumps(value.obj)
    chance, made = random.Random(place.memories), []
    columns = ", ".join(f'"{name}"' for name in constant)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE made (LIKE memories_memory) ON COMMIT DROP")
        with cursor.copy(f"COPY made ({columns}) FROM STDIN") as copy:
            for text in texts:
                pk = Memory._meta.pk.get_default()
                created = model.created_at - timedelta(days=chance.uniform(0, 400))
                own = {"id": pk, "created_at": created, "updated_at": created, **contents.text_fields(text)}
                copy.write_row([own.get(name, value) for name, value in constant.items()])
                made.append((pk, text))
        cursor.execute(f"INSERT INTO memories_memory ({columns}) SELECT {columns} FROM made")
    return made


def fill(places: Sequence[Place], each: int, *, seed: int) -> None:
    """Give every place so many more memories."""
    from memories.evaluation.crowd import crowd, mixed
    from memories.evaluation.latency import _bases

    bases = _bases()
    for number, place in enumerate(places):
        for start in range(0, each, BATCH):
            size = min(BATCH, each - start)
            part = seed + 1_000 * number + start
            place.add(crowd(size, 0, seed=part).texts, mixed(bases, size, seed=part))
            if start // BATCH % 10 == 9 or (len(places) > 1 and number % 100 == 99):
                say(f"{place.team.slug}: {place.memories:,} memories, load {os.getloadavg()[0]:.1f}")


def measure(label: str, asked: Iterator[tuple[Place, str]]) -> dict[str, Any]:
    """Recall once for each pair of a place and a question, after some to warm up."""
    from memories import recall
    from memories.evaluation.latency import _ms

    def ask(place: Place, text: str) -> recall.Answer:
        from django.db import transaction

        from hindsight_site.accounts.tenancy import enter_team

        with transaction.atomic():
            enter_team(place.team)
            return recall.recall(
                team=place.team, agent=None, scopes=[place.scope], question=recall.Question(query=text, deadline_ms=0)
            )

    pairs = list(asked)
    for place, text in pairs[:10]:
        ask(place, text)
    times = sorted(_ms(ask, place, text) for place, text in pairs)
    return {
        "what": label, "recalls": len(times), "p50_ms": round(times[len(times) // 2], 1),
        "p95_ms": round(times[int(len(times) * 0.95)], 1), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def sizes() -> dict[str, Any]:
    """Bytes of the tables and their indexes, partitions included, and of the vector indexes of big teams."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT t.name, sum(pg_table_size(p.oid)), sum(pg_indexes_size(p.oid)) FROM unnest(%s::text[]) t(name)
            CROSS JOIN LATERAL (
                SELECT t.name::regclass UNION SELECT relid FROM pg_partition_tree(t.name::regclass)
            ) p(oid) GROUP BY t.name
            """,
            [list(TABLES)],
        )
        found: dict[str, Any] = {name: {"table": int(a), "indexes": int(b)} for name, a, b in cursor.fetchall()}
        cursor.execute(
            "SELECT coalesce(sum(pg_relation_size(oid)), 0) FROM pg_class WHERE relname LIKE 'memoryvector_hnsw_%%'"
        )
        found["hnsw"] = int(cursor.fetchone()[0])
    return found


def without_gin(load: Callable[[], None]) -> float:
    """Load without the index over tokens, which grows faster at once than row by row. Returns seconds to build it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef(%s::regclass)", [GIN])
        definition = cursor.fetchone()[0]
        cursor.execute(f"DROP INDEX {GIN}")
    try:
        load()
    finally:
        started = time.perf_counter()
        with connection.cursor() as cursor:
            cursor.execute(definition)
    return time.perf_counter() - started


def tidy() -> None:
    """Statistics and visibility, which autovacuum would bring in its own time."""
    from django.db import connection

    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"VACUUM (ANALYZE) {table}")
    _forget_counts()


def _forget_counts() -> None:
    from memories.search import background, frequencies, vector_indexes
    from memories.search.caches import TimedCache

    for module in (background, frequencies, vector_indexes):
        for cache in vars(module).values():
            if isinstance(cache, TimedCache):
                cache.clear()


def one_team(steps: Sequence[int], hnsw: bool) -> None:
    """One team that grows: recall at each size, exact and through its own index where it gets one."""
    from memories.evaluation.crowd import crowd
    from memories.search import vector_indexes

    place = Place(f"scale-{os.getpid()}")
    for size in steps:
        more, started = size - place.memories, time.perf_counter()
        gin = without_gin(lambda n=more, seed=size: fill([place], n, seed=seed))
        filled = time.perf_counter() - started
        tidy()
        # The questions share words with memories of the last part.
        asked = crowd(min(BATCH, more), QUESTIONS, seed=size).questions
        exact = measure(f"{size:,} memories, exact", ((place, text) for text in asked))
        show({**exact, "fill_s": round(filled), "gin_build_s": round(gin, 1), "bytes": sizes()})
        if hnsw and size > vector_indexes.BUILD_ABOVE:
            started = time.perf_counter()
            vector_indexes.sync(say)
            built = time.perf_counter() - started
            _forget_counts()
            through = measure(f"{size:,} memories, through the team's index", ((place, text) for text in asked))
            show({**through, "hnsw_build_s": round(built), "bytes": sizes()})
            if size != steps[-1]:
                _drop_hnsw()


def _drop_hnsw() -> None:
    """Filling through the index would take longer than building it anew."""
    from memories.search import vector_indexes

    for name in vector_indexes._there():
        vector_indexes._drop(name)


def many_teams(teams: int, each: int, distinct: int, partitions: int) -> None:
    """Many small teams: recall in teams drawn at random, and the same with the search tables in partitions.

    `distinct` of them have memories of their own, the others copies: no search of one team notices another's.
    """
    from memories.evaluation.crowd import crowd
    from memories.search import partitions as partitioning

    places = [Place(f"scale-{os.getpid()}-{number}") for number in range(teams)]

    def load() -> None:
        fill(places[:distinct], each, seed=1)
        for number in range(distinct):
            places[number].copy_to(places[number + distinct :: distinct])
            if number % 10 == 9:
                say(f"{number + 1} of {distinct} copied, load {os.getloadavg()[0]:.1f}")

    started = time.perf_counter()
    gin = without_gin(load)
    filled = time.perf_counter() - started
    tidy()
    chance = random.Random(5)
    drawn = [chance.randrange(teams) for _ in range(300)]
    asked = [(places[n], chance.choice(crowd(each, 5, seed=1 + 1_000 * (n % distinct)).questions)) for n in drawn]
    plain = measure(f"{teams:,} teams of {each:,}", iter(asked))
    show({**plain, "fill_s": round(filled), "gin_build_s": round(gin, 1), "bytes": sizes()})
    if partitions:
        started = time.perf_counter()
        partitioning.convert(partitions, say)
        converted = time.perf_counter() - started
        tidy()
        parted = measure(f"{teams:,} teams of {each:,}, {partitions} partitions", iter(asked))
        show({**parted, "convert_s": round(converted), "bytes": sizes()})


def show(figures: dict[str, Any]) -> None:
    print(json.dumps(figures), flush=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one-team", type=int, nargs="+", metavar="N", help="sizes to measure at, growing")
    parser.add_argument("--no-hnsw", action="store_true", help="one team: exact search only")
    parser.add_argument("--teams", type=int)
    parser.add_argument("--each", type=int, default=1_000)
    parser.add_argument("--distinct", type=int, default=100, help="teams not made of copies")
    parser.add_argument("--partitions", type=int, default=0, help="many teams: measure with partitions too")
    wanted = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
    django.setup()
    if wanted.one_team:
        one_team(sorted(wanted.one_team), not wanted.no_hnsw)
    if wanted.teams:
        many_teams(wanted.teams, wanted.each, min(wanted.distinct, wanted.teams), wanted.partitions)


if __name__ == "__main__":
    main()
