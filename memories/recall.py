"""Query → ranked hits with reasons, and a receipt. No model call."""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken, Team
from hindsight_site.refusals import FieldError, Invalid
from memories import packing, queries, ranking, receipts
from memories.embeddings import EmbeddingError, get_embedder
from memories.enums import Status
from memories.models import Memory, Scope
from memories.policies import LIVE
from memories.policy import RANKING, Ranking
from memories.search import candidates
from memories.search.fusion import Fused

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `min_relevance` None means the default floor, 0 switches it off."""

    query: str
    session_id: str = ""
    kinds: Sequence[str] = ()
    tiers: Sequence[str] = ()
    tags: Sequence[str] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    top_k: int = 5
    min_relevance: float | None = None
    token_budget: int = 800
    include_archived: bool = False
    as_of: datetime | None = None
    at: datetime | None = None  # the caller's present


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory handed out, and why."""

    memory: uuid.UUID
    revision: int
    scope: str
    kind: str
    tier: str
    status: str
    trust: str
    score: float
    relevance: float
    parts: dict[str, float]
    snippet: str
    contested: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole answer; `hits` is empty exactly when the status is `no_match`."""

    recall_id: uuid.UUID
    status: str
    hits: list[Hit]
    context: str
    best_relevance: float
    searched_scopes: list[str]
    degraded: bool
    took_ms: float
    filtered: dict[str, int]


@dataclass(slots=True)
class _Scored:
    memory: Memory
    fused: Fused
    parts: ranking.Parts
    standing: ranking.Standing
    score: float


def recall(
    *,
    team: Team,
    agent: Agent | None,
    scopes: Sequence[Scope],
    question: Question,
    token: ApiToken | None = None,
) -> Answer:
    """Find what matters in `scopes`, best first, and leave a receipt. Raises `Invalid`."""
    started = time.perf_counter()
    _check(question)
    now = question.at or timezone.now()
    embedding, degraded = _embed(question.query)
    found = candidates.find(
        team=team, scope_ids=[scope.pk for scope in scopes], text=question.query, embedding=embedding,
        statuses=_statuses(question), only=_narrowing(question, now),
    )  # fmt: skip
    best = found.fused[0].relevance if found.fused else 0.0
    floor = candidates.floor(degraded) if question.min_relevance is None else question.min_relevance
    relevant = [fused for fused in found.fused if fused.relevance >= floor]
    filtered: Counter[str] = Counter(below_floor=len(found.fused) - len(relevant))
    ranked = _rank(team, agent, relevant, question, now, filtered)
    chosen = _choose(ranked, found.vectors, question, filtered)
    hits = _hits(team, chosen, {scope.pk: scope for scope in scopes})
    took_ms = (time.perf_counter() - started) * 1000
    receipt = receipts.write(
        team=team, agent=agent, token=token, question=question, hits=hits, best_relevance=best, degraded=degraded,
        searched=[scope.slug for scope in scopes], took_ms=took_ms,
    )  # fmt: skip
    return Answer(
        recall_id=receipt.pk, status=receipt.status, hits=hits, context=_context(hits, question),
        best_relevance=round(best, 4), searched_scopes=receipt.searched_scopes, degraded=degraded,
        took_ms=round(took_ms, 2), filtered={name: count for name, count in filtered.items() if count},
    )  # fmt: skip


def _check(question: Question) -> None:
    if not question.query.strip():
        raise Invalid("query must not be empty.", errors=(FieldError("query", "must not be empty."),))
    if len(question.query) > settings.MAX_QUERY_CHARS:
        message = f"is over the limit of {settings.MAX_QUERY_CHARS:,} characters."
        raise Invalid(f"query {message}", errors=(FieldError("query", message),))


def _embed(query: str) -> tuple[np.ndarray | None, bool]:
    """The question's vector; without an embedder the answer comes from keywords alone, flagged."""
    try:
        return get_embedder().embed([query], kind="query")[0], False
    except EmbeddingError:
        logger.warning("recall without vectors", exc_info=True)
        return None, True


def _statuses(question: Question) -> list[str]:
    statuses = [str(status) for status in LIVE]
    if question.include_archived:
        statuses.append(Status.ARCHIVED)
    if question.as_of is not None:
        statuses += [Status.ARCHIVED, Status.SUPERSEDED]
    return statuses


def _narrowing(question: Question, now: datetime) -> dict[str, Any]:
    """What a candidate must be, decided before any limit is applied."""
    return {
        "kinds": list(question.kinds), "tiers": list(question.tiers), "tags": list(question.tags),
        "session_id": question.session_id, "now": question.as_of or now, "as_of": question.as_of,
        "include_archived": question.include_archived,
    }  # fmt: skip


def _rank(
    team: Team, agent: Agent | None, relevant: Sequence[Fused], question: Question, now: datetime,
    filtered: Counter[str], policy: Ranking = RANKING,
) -> list[_Scored]:  # fmt: skip
    memories = Memory.objects.of(team).in_bulk([fused.memory_id for fused in relevant])
    scored = []
    for fused in relevant:
        memory = memories.get(fused.memory_id)
        if memory is None:
            continue
        if question.environment and ranking.contradicts(memory.environment, question.environment):
            filtered["other_environment"] += 1
            continue
        standing = _standing(memory, agent)
        parts = ranking.parts_of(standing, fused.relevance, now, policy)
        scored.append(_Scored(memory, fused, parts, standing, parts.score(policy)))
    return sorted(scored, key=lambda one: ranking.order_key(one.score, one.standing), reverse=True)


def _standing(memory: Memory, agent: Agent | None) -> ranking.Standing:
    return ranking.Standing(
        tier=memory.tier, kind=memory.kind, confidence=memory.confidence, weight=memory.weight,
        access_count=memory.access_count, last_changed=memory.occurred_at or memory.created_at,
        is_own=agent is not None and memory.agent_id == agent.pk,
    )  # fmt: skip


def _choose(
    ranked: list[_Scored], vectors: dict[uuid.UUID, np.ndarray], question: Question, filtered: Counter[str],
    policy: Ranking = RANKING,
) -> list[_Scored]:  # fmt: skip
    only_lessons = list(question.kinds) == ["experience"]
    places = ranking.choose(
        [one.memory.kind for one in ranked],
        [vectors.get(one.memory.pk) for one in ranked],
        question.top_k,
        # Asked for lessons and nothing else, the caller gets as many as it asked for.
        question.top_k if only_lessons else policy.most_lessons,
    )
    filtered["over_top_k_or_alike"] = len(ranked) - len(places)
    return [ranked[place] for place in places]


def _hits(team: Team, chosen: list[_Scored], scopes: dict[uuid.UUID, Scope]) -> list[Hit]:
    contested = queries.contested(team, [one.memory.pk for one in chosen])
    return [
        Hit(
            memory=one.memory.pk, revision=one.memory.revision, scope=scopes[one.memory.scope_id].slug,
            kind=one.memory.kind, tier=one.memory.tier, status=one.memory.status, trust=one.memory.trust,
            score=round(one.score, 4), relevance=round(one.fused.relevance, 4), parts=_parts(one),
            snippet=one.memory.snippet or one.memory.content, contested=one.memory.pk in contested,
        )
        for one in chosen
    ]  # fmt: skip


def _parts(one: _Scored) -> dict[str, float]:
    shown = {"vector": one.fused.vector, "keyword": one.fused.keyword, **asdict(one.parts)}
    shown.pop("relevance")
    return {name: round(value, 4) for name, value in shown.items()}


def _context(hits: list[Hit], question: Question) -> str:
    lines = [packing.Line(hit.snippet, hit.kind, hit.scope, hit.contested) for hit in hits]
    return packing.pack(lines, question.token_budget)
