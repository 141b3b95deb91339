"""Data sets put through the real thing: written with `actions.remember_many`, asked with `recall.recall`.

Everything happens in one transaction that is rolled back: a run leaves nothing behind.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import enter_team
from memories import recall
from memories.actions import Draft, remember_many
from memories.enums import Kind, ScopeKind, Tier
from memories.models import Scope
from memories.policies import LIVE
from memories.search import candidates

from .datasets import MOST_CHARS, Asked, Haystack, Item

BATCH = 200  # memories in one call of `remember_many`
DEPTH = 60  # hits asked for; the metrics look at the first ten, sessions are ranked from all

Progress = Callable[[str, int, int], None]  # what is being done, done so far, in all


@dataclass(frozen=True, slots=True)
class Ranked:
    """One question and what came back: item keys, best first, and (session, relevance) of each."""

    asked: Asked
    keys: list[str]
    sessions: list[tuple[str, float]]
    covered: dict[str, float]  # by session: the share of the question that it covers as a whole
    best: float  # relevance of the best hit, 0..1
    milliseconds: float
    by_keywords: list[str]
    by_vectors: list[str]


@dataclass(frozen=True, slots=True)
class Run:
    """All answers of a data set, and the best relevance of each question asked of the wrong scope."""

    ranked: list[Ranked]
    wrong_scope: list[float]
    memories: int
    writing_seconds: float


@dataclass(frozen=True, slots=True)
class _Stored:
    haystack: Haystack
    scope: Scope
    items: dict[uuid.UUID, Item]


def run(haystacks: Sequence[Haystack], *, progress: Progress, wrong_scope: bool = True) -> Run:
    """Store the haystacks as scopes of one team, ask every question of its scope, and of the next one."""
    with transaction.atomic():
        team = Team.objects.create(name="Evaluation", slug=f"evaluation-{new_id().hex}")
        enter_team(team)
        started = time.perf_counter()
        stored = _store(team, haystacks, progress)
        writing = time.perf_counter() - started
        ranked, elsewhere = _ask_all(team, stored, progress, wrong_scope=wrong_scope and len(stored) > 1)
        transaction.set_rollback(True)
    return Run(ranked, elsewhere, sum(len(h.items) for h in haystacks), writing)


def _store(team: Team, haystacks: Sequence[Haystack], progress: Progress) -> list[_Stored]:
    total, done, stored = sum(len(h.items) for h in haystacks), 0, []
    for haystack in haystacks:
        scope = Scope.objects.create(team=team, slug=new_id().hex, name=haystack.name, kind=ScopeKind.SHARED)
        items: dict[uuid.UUID, Item] = {}
        for start in range(0, len(haystack.items), BATCH):
            batch = haystack.items[start : start + BATCH]
            drafts = [_draft(haystack, item) for item in batch]
            for item, result in zip(
                batch, remember_many(team=team, by=SYSTEM, scope=scope, drafts=drafts), strict=True
            ):
                items.setdefault(result.memory.pk, item)
            done += len(batch)
            progress("writing", done, total)
        stored.append(_Stored(haystack, scope, items))
    with connection.cursor() as cursor:  # the planner has not seen the new rows
        cursor.execute("ANALYZE memories_memory, memories_memoryterms, memories_memoryvector")
    return stored


def _draft(haystack: Haystack, item: Item) -> Draft:
    """Semantic, so that age does not enter the ranking: relevance is what is measured here."""
    return Draft(
        content=item.content[:MOST_CHARS] if any(char.isalnum() for char in item.content) else "(empty)",
        kind=Kind.EXPERIENCE,
        tier=Tier.SEMANTIC,
        actor=item.actor,
        session_id=f"{haystack.name}:{item.session_id}" if item.session_id else "",
        sequence=item.sequence,
        occurred_at=item.occurred_at,
    )


def _ask_all(
    team: Team, stored: Sequence[_Stored], progress: Progress, *, wrong_scope: bool
) -> tuple[list[Ranked], list[float]]:
    total, done = sum(len(s.haystack.questions) for s in stored), 0
    ranked: list[Ranked] = []
    elsewhere: list[float] = []
    for place, here in enumerate(stored):
        for asked in here.haystack.questions:
            ranked.append(_ask(team, here, asked))
            if wrong_scope:
                other = stored[(place + 1) % len(stored)].scope
                elsewhere.append(_recall(team, other, asked.text).best_relevance)
            done += 1
            progress("asking", done, total)
    return ranked, elsewhere


def _ask(team: Team, here: _Stored, asked: Asked) -> Ranked:
    started = time.perf_counter()
    answer = _recall(team, here.scope, asked.text)
    milliseconds = (time.perf_counter() - started) * 1000
    found = [(here.items[hit.memory], hit.relevance) for hit in answer.hits]
    by_keywords, by_vectors = _alone(team, here, asked.text)
    return Ranked(
        asked=asked,
        keys=[item.key for item, _ in found],
        sessions=[(item.session_id, relevance) for item, relevance in found],
        covered={here.items[hit.memory].session_id: hit.parts["session"] for hit in answer.hits},
        best=answer.best_relevance,
        milliseconds=milliseconds,
        by_keywords=by_keywords,
        by_vectors=by_vectors,
    )


def _recall(team: Team, scope: Scope, text: str) -> recall.Answer:
    """Ask without a floor and deep, for lessons only: of those the caller gets as many as it asks for.

    Undone at once: a memory that was handed out counts more the next time, which is not measured here.
    """
    question = recall.Question(query=text, kinds=[Kind.EXPERIENCE], top_k=DEPTH, min_relevance=0.0, deadline_ms=0)
    with transaction.atomic():
        answer = recall.recall(team=team, agent=None, scopes=[scope], question=question)
        transaction.set_rollback(True)
    return answer


def _alone(team: Team, here: _Stored, text: str) -> tuple[list[str], list[str]]:
    """The same candidates ranked by either kind of evidence alone: the ablation."""
    found = candidates.find(
        team=team,
        scope_ids=[here.scope.pk],
        text=text,
        statuses=[str(status) for status in LIVE],
        only={"now": timezone.now()},
    ).fused
    by_keywords = sorted((one for one in found if one.keyword > 0), key=lambda one: -one.keyword)
    by_vectors = sorted((one for one in found if one.vector > 0), key=lambda one: -one.vector)
    return (
        [here.items[one.memory_id].key for one in by_keywords],
        [here.items[one.memory_id].key for one in by_vectors],
    )
