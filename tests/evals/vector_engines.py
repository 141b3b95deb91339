"""Compare the engines that VECTOR_INDEX can name, on the same vectors, beside exact search.

    .venv-engines/bin/python -m tests.evals.vector_engines --sizes 10000 50000

A team of that size and a small one beside it, in one collection; vectors of the default embedder, mixed so that
there are enough. Runs what is installed: PostgreSQL, Chroma's server, Milvus Lite's server, and Qdrant's client in
its local mode, which searches exactly, in Python: its figures say nothing about Qdrant's server, nor do those of
Milvus Lite about Milvus. Use a database that can be thrown away.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import django
import numpy as np

SMALL, QUESTIONS, LIMIT, ROWS = 300, 50, 10, 2_000
SHARE = 20  # of the big team's memories, one in so many is in the small scope
ENGINES = ("pgvector", "qdrant", "milvus", "chroma")
HEADER = (
    "| vectors | engine | big team: recall@10 | p50 ms | p95 ms | small team | p50 ms | scope of 5 % | p50 ms"
    " | with PostgreSQL's check, p50 ms | filled in s | holds MB |\n" + "|---" * 12 + "|"
)


@dataclass(frozen=True)
class Part:
    """A team, the scopes searched, and what exact search finds for each question."""

    team: Any
    scopes: list[uuid.UUID]
    ids: list[uuid.UUID]
    vectors: np.ndarray
    questions: np.ndarray

    def exact(self) -> list[set[uuid.UUID]]:
        best = np.argsort(-(self.questions @ self.vectors.T), axis=1)[:, :LIMIT]
        return [{self.ids[place] for place in row} for row in best]


def measure(nearest: Callable[..., list[Any]], part: Part, model: str) -> tuple[float, float, float]:
    """Recall@10 beside exact search, and milliseconds: p50 and p95."""
    from hindsight_site.accounts.tenancy import team_transaction

    shares, times = [], []
    asked = {"team_id": part.team.pk, "scope_ids": part.scopes, "model_id": model, "statuses": ["active"]}
    with team_transaction(part.team):
        for vector in part.questions[:5]:
            nearest(**asked, embedding=vector, limit=LIMIT)
        for vector, right in zip(part.questions, part.exact(), strict=True):
            began = time.perf_counter()
            hits = nearest(**asked, embedding=vector, limit=LIMIT)
            times.append((time.perf_counter() - began) * 1000)
            shares.append(len({hit.memory_id for hit in hits} & right) / len(right))
    return float(np.mean(shares)), median(times), float(np.percentile(times, 95))


@contextmanager
def teams(size: int, model: str) -> Iterator[tuple[Part, Part, Part]]:
    """The big team, its small scope, and the small team, all in PostgreSQL; gone afterwards."""
    from django.db import connection

    from hindsight_site.accounts.models import Team
    from memories.evaluation import latency
    from memories.evaluation.crowd import mixed

    latency.remove_leftovers()
    vectors = mixed(latency._bases(), size + SMALL + QUESTIONS).astype(np.float16).astype(np.float32)
    chance = np.random.default_rng(3)
    try:
        big, small = (
            Team.objects.create(name="Engines", slug=f"{latency.SLUG}-{name}-{size}") for name in ("big", "small")
        )
        parts = [store(big, vectors[:size], model), store(small, vectors[size : size + SMALL], model)]
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE memories_memory, memories_memoryvector")

        def asked(of: np.ndarray) -> np.ndarray:
            """Like something in the team, as what is asked is."""
            noisy = of[chance.integers(0, len(of), QUESTIONS)] + 0.5 * vectors[-QUESTIONS:]
            return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)

        (ids, at, scopes), (few, beside, its) = parts[0], parts[1]
        inside = np.arange(size) % SHARE == 0
        some = [ids[place] for place in np.flatnonzero(inside)]
        yield (
            Part(big, scopes, ids, at, asked(at)),
            Part(big, scopes[:1], some, at[inside], asked(at[inside])),
            Part(small, its, few, beside, asked(beside)),
        )
    finally:
        latency.remove_leftovers()


def store(team: Any, vectors: np.ndarray, model: str) -> tuple[list[uuid.UUID], np.ndarray, list[uuid.UUID]]:
    """Write memories with these vectors, one in `SHARE` into the first of two scopes."""
    from hindsight_site.accounts.tenancy import team_transaction
    from memories.enums import Kind, ScopeKind, Status, Tier
    from memories.models import Memory, Scope
    from memories.search import vectors as rows

    with team_transaction(team):
        scopes = [
            Scope.objects.create(team=team, slug=slug, name=slug, kind=ScopeKind.SHARED) for slug in ("few", "rest")
        ]
    ids: list[uuid.UUID] = []
    for start in range(0, len(vectors), ROWS):
        part = vectors[start : start + ROWS]
        memories = [
            Memory(
                team=team, scope=scopes[(start + place) % SHARE != 0], kind=Kind.FACT, tier=Tier.SEMANTIC,
                status=Status.ACTIVE, content="x", snippet="x", fingerprint=str(start + place),
            )
            for place in range(len(part))
        ]  # fmt: skip
        with team_transaction(team):
            Memory.objects.bulk_create(memories)
            given = [(m.pk, m.scope_id, "active", vector) for m, vector in zip(memories, part, strict=True)]
            rows.upsert(team_id=team.pk, model_id=model, rows=given)
        ids += [memory.pk for memory in memories]
    return ids, vectors, [scope.pk for scope in scopes]


def fill(engine: Any, parts: Sequence[Part], model: str) -> float:
    """Write the teams' vectors into an engine as a reindex does, and return the seconds."""
    from memories.search.engines import Point

    began = time.perf_counter()
    for part in parts:
        first, rest = part.scopes
        for start in range(0, len(part.ids), 500):
            points = [
                Point(memory, first if (start + place) % SHARE == 0 else rest, "active", "x" * 32, vector)
                for place, (memory, vector) in enumerate(
                    zip(part.ids[start : start + 500], part.vectors[start : start + 500], strict=True)
                )
            ]
            engine.upsert(team_id=part.team.pk, model_id=model, points=points)
    return time.perf_counter() - began


def resident_mb(group: int) -> float:
    """Resident memory of a process group; 0: of this process."""
    import os

    import psutil

    if not group:
        return psutil.Process().memory_info().rss / 2**20
    mine = [process for process in psutil.process_iter(["pid"]) if _group(process.pid) == group]
    return sum(process.memory_info().rss for process in mine) / 2**20 if os.name == "posix" else 0.0


def _group(pid: int) -> int:
    import os

    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def tables_mb(part: Part, model: str) -> float:
    """What PostgreSQL keeps of all vectors, with the graph of the team when it has one."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size('memories_memoryvector')")
        return cursor.fetchone()[0] / 2**20


def compare(size: int, names: Sequence[str], model: str) -> Iterator[str]:
    """One line of the table for each engine."""
    from memories.search import vector_indexes
    from memories.search.engines import pgvector
    from tests.memories import vector_engines

    with teams(size, model) as (big, scope, small):
        for name in names:
            if name == "pgvector":
                began = time.perf_counter()
                vector_indexes.sync()
                seconds = time.perf_counter() - began
                yield row(size, name, pgvector, (big, scope, small), model, seconds, tables_mb(big, model))
                continue
            if not vector_engines.runs_here(name):
                continue
            with tempfile.TemporaryDirectory() as folder, vector_engines.running(name, Path(folder)) as there:
                before = 0.0 if there.group else resident_mb(0)
                engine = vector_engines.connect(name, there.url, timeout_seconds=60.0)
                seconds = fill(engine, (big, small), model)
                held = resident_mb(there.group) - before
                yield row(size, name, engine, (big, scope, small), model, seconds, held)


def row(
    size: int, name: str, engine: Any, parts: tuple[Part, Part, Part], model: str, seconds: float, held: float
) -> str:
    from functools import partial

    from memories.search.deadline import Deadline
    from memories.search.engines import external

    big, scope, small = (measure(engine.nearest, part, model) for part in parts)
    checked = big[1]
    if name != "pgvector":
        external.current = lambda: engine  # type: ignore[assignment]
        checked = measure(partial(external.nearest, deadline=Deadline(None)), parts[0], model)[1]
    shown = {"qdrant": "qdrant (local mode)", "milvus": "milvus (Lite)"}.get(name, name)
    return (
        f"| {size:,} | {shown} | {big[0]:.3f} | {big[1]:.1f} | {big[2]:.1f} | {small[0]:.3f} | {small[1]:.1f}"
        f" | {scope[0]:.3f} | {scope[1]:.1f} | {checked:.1f} | {seconds:.0f} | {held:.0f} |"
    )


def main() -> None:
    from django.conf import settings

    from memories.embeddings import get_embedder

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000])
    options.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    given = options.parse_args()
    settings.VECTOR_INDEX_TIMEOUT_MS = 60_000
    print(HEADER, flush=True)
    for size in given.sizes:
        for line in compare(size, given.engines, get_embedder().model_id):
            print(line, flush=True)


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
    django.setup()
    main()
