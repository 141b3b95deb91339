"""How fast it is: recall beside what it cannot do without, callers at once, and writing.

Works on committed rows, as several callers at once must see them: a team of its own, deleted at the end,
and at the beginning when an earlier run was killed.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pgtrigger
from django.db import connection, transaction
from pgvector import HalfVector

from hindsight_site.accounts import deletion
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import AuditEvent, Team
from hindsight_site.accounts.tenancy import enter_team, team_transaction
from memories import contents, indexing, recall
from memories.actions import Draft, remember, remember_many
from memories.embeddings import get_embedder
from memories.enums import Kind, ScopeKind, Status, Tier
from memories.models import Memory, Scope
from memories.search import vector_indexes

from . import own
from .crowd import Crowd, crowd, mixed
from .report import Figure

SLUG = "evaluation-latency"
QUESTIONS = 60
CALLERS = 16
RECALLS = 320  # of all callers together
BULK = 500  # memories in one call, the limit of the service
BATCH = 2_000  # rows stored at once while preparing

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class _Place:
    team: Team
    scope: Scope
    crowd: Crowd


def measure(sizes: Sequence[int], *, progress: Progress) -> list[Figure]:
    """Return the figures for each number of memories; callers and writing at 10,000 (or the nearest size)."""
    middle = min(sizes, key=lambda size: abs(size - 10_000))
    embedding = _embedding_ms(crowd(1, QUESTIONS).questions)
    rows = [Figure("embedding of a question, p50 ms", embedding, QUESTIONS)]
    for size in sizes:
        with _filled(size, progress) as place:
            rows += _alone(place, size, embedding)
            if size > vector_indexes.BUILD_ABOVE:
                rows += _through_index(place, size)
            if size == middle:
                rows += _together(place, size)
                rows += _writing(place)
    return rows


@contextmanager
def _filled(size: int, progress: Progress) -> Iterator[_Place]:
    remove_leftovers()
    made = crowd(size, QUESTIONS)
    rows = mixed(_bases(), size)
    team = Team.objects.create(name="Latency", slug=f"{SLUG}-{size}-{os.getpid()}")
    try:
        with team_transaction(team):
            scope = Scope.objects.create(team=team, slug="crowd", name="Crowd", kind=ScopeKind.SHARED)
        for start in range(0, size, BATCH):
            with team_transaction(team):
                _store(team, scope, made.texts[start : start + BATCH], rows[start : start + BATCH])
            progress("filling", min(start + BATCH, size), size)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE memories_memory, memories_memoryterms, memories_memoryvector")
        yield _Place(team, scope, made)
    finally:
        remove_leftovers()


def _bases() -> np.ndarray:
    texts = [item.content for haystack in (own.identifiers(), own.paraphrases()) for item in haystack.items]
    return get_embedder().embed(texts, "passage")


def _store(team: Team, scope: Scope, texts: Sequence[str], embeddings: np.ndarray) -> None:
    memories = [
        Memory(team=team, scope=scope, kind=Kind.FACT, tier=Tier.SEMANTIC, status=Status.ACTIVE, **fields)
        for fields in map(contents.text_fields, texts)
    ]
    Memory.objects.bulk_create(memories)
    indexing.index(team, memories, embeddings)


def remove_leftovers() -> None:
    """Delete the teams of this measurement, table by table, and their audit, which nobody has a use for."""
    for team in Team.objects.filter(slug__startswith=f"{SLUG}-"):
        for model in deletion.tables():
            with team_transaction(team):
                model._default_manager.filter(team_id=team.pk)._raw_delete("default")
        with pgtrigger.ignore("accounts.AuditEvent:append_only"), team_transaction(team):
            AuditEvent.objects.filter(team_id=team.pk)._raw_delete("default")
            Team.objects.filter(pk=team.pk)._raw_delete("default")


def _embedding_ms(questions: Sequence[str]) -> float:
    embedder = get_embedder()
    embedder.embed(["warm up"], "query")
    return _p50([_ms(embedder.embed, [q], "query") for q in questions])


def _alone(place: _Place, size: int, embedding: float) -> list[Figure]:
    vectors = get_embedder().embed(place.crowd.questions, "query")
    with team_transaction(place.team):
        for vector in vectors[:3]:
            _bare(place, vector)
        bare = _p50([_ms(_bare, place, v) for v in vectors])
    for question in place.crowd.questions[:5]:
        _recall(place, question)
    times = sorted(_ms(_recall, place, q) for q in place.crowd.questions)
    p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
    n = len(times)
    return [
        Figure(f"{size:,}: bare exact query, p50 ms", bare, n),
        Figure(f"{size:,}: recall, p50 ms", p50, n),
        Figure(f"{size:,}: recall, p95 ms", p95, n),
        Figure(f"{size:,}: recall / (embedding + bare)", p50 / (embedding + bare), n, 2.0, 1.3, at_most=True),
        Figure(f"{size:,}: recall / bare", p50 / bare, n),
        Figure(f"{size:,}: recall / embedding", p50 / embedding, n),
    ]


def _through_index(place: _Place, size: int) -> list[Figure]:
    """The team's own index: how many of the exact neighbours it finds, and how fast. Needs the owner's role."""

    def search(vector: np.ndarray) -> tuple[float, set[uuid.UUID]]:
        found: list[uuid.UUID] = []
        taken = _ms(lambda: found.extend(hit.memory_id for hit in indexing.nearest(place.team, scopes, vector, 30)))
        return taken, set(found)

    scopes = [place.scope.pk]
    asked = mixed(_bases(), QUESTIONS, seed=2)
    with team_transaction(place.team):
        exact = [search(vector) for vector in asked]
    seconds = _ms(vector_indexes.sync) / 1000
    with team_transaction(place.team):
        through = [search(vector) for vector in asked]
    both = sum(len(right & found) for (_, right), (_, found) in zip(exact, through, strict=True))
    times = sorted(_ms(_recall, place, q) for q in place.crowd.questions)
    n = len(asked)
    return [
        Figure(f"{size:,}: building the index, s", seconds, 1),
        Figure(f"{size:,}: exact search, p50 ms", _p50([ms for ms, _ in exact]), n),
        Figure(f"{size:,}: through the index, p50 ms", _p50([ms for ms, _ in through]), n),
        Figure(f"{size:,}: through the index, recall@30", both / sum(len(right) for _, right in exact), n),
        Figure(f"{size:,}: recall through the index, p50 ms", times[n // 2], n),
    ]


def _together(place: _Place, size: int) -> list[Figure]:
    """`CALLERS` threads, each with its own connection, ask as fast as they are answered."""

    def ask(number: int) -> float:
        return _ms(lambda: _recall(place, place.crowd.questions[number % QUESTIONS]))

    def close(_: int) -> None:
        time.sleep(0.05)  # so that every thread gets one
        connection.close()

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(ask, range(2 * CALLERS)))
        started = time.perf_counter()
        times = sorted(pool.map(ask, range(RECALLS)))
        spent = time.perf_counter() - started
        list(pool.map(close, range(CALLERS)))
    return [
        Figure(f"{size:,}: recalls/s, {CALLERS} callers", RECALLS / spent, RECALLS, 60.0, 150.0),
        Figure(f"{size:,}: p95 ms, {CALLERS} callers", times[int(RECALLS * 0.95)], RECALLS, 400.0, at_most=True),
    ]


def _writing(place: _Place) -> list[Figure]:
    embedder = get_embedder()
    fresh = crowd(40 + 2 * BULK, 0, seed=2).texts
    one, many = fresh[:40], fresh[40:]
    embedding = _p50([_ms(embedder.embed, [t], "passage") for t in one])
    writing = _p50([_ms(_remember, place, t) for t in one])
    embedded = BULK / (_ms(lambda: embedder.embed(many[:BULK], "passage")) / 1000)
    drafts = [Draft(content=text, kind=Kind.FACT) for text in many[BULK:]]

    def bulk() -> None:
        with team_transaction(place.team):
            remember_many(team=place.team, by=SYSTEM, scope=place.scope, drafts=drafts)

    written = BULK / (_ms(bulk) / 1000)
    return [
        Figure("remember one, p50 ms", writing, len(one)),
        Figure("remember one / embedding", writing / embedding, len(one), 3.0, 1.5, at_most=True),
        Figure("embedder alone, texts/s", embedded, BULK),
        Figure("bulk remember, memories/s", written, BULK),
        Figure("bulk remember / embedder", written / embedded, BULK, 0.8, 0.95),
    ]


def _remember(place: _Place, text: str) -> None:
    with team_transaction(place.team):
        remember(team=place.team, by=SYSTEM, scope=place.scope, draft=Draft(content=text, kind=Kind.FACT))


def _recall(place: _Place, text: str) -> recall.Answer:
    """As a request does it: one transaction, receipt included."""
    with transaction.atomic():
        enter_team(place.team)
        return recall.recall(team=place.team, agent=None, scopes=[place.scope], question=recall.Question(query=text))


def _bare(place: _Place, vector: np.ndarray) -> None:
    """One exact vector query and nothing else: what a search by vectors costs at the least."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory_id FROM memories_memoryvector WHERE team_id = %s AND scope_id = %s AND model_id = %s"
            " AND status = 'active' ORDER BY (embedding <=> %s::halfvec) + 0 LIMIT 10",
            [place.team.pk, place.scope.pk, get_embedder().model_id, HalfVector(vector).to_text()],
        )
        cursor.fetchall()


def _ms(do: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter()
    do(*arguments)
    return (time.perf_counter() - started) * 1000


def _p50(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 2]
