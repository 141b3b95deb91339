"""Query → ranked hits with reasons, and a receipt, in time. No model call unless asked for."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken, Team
from hindsight_site.refusals import FieldError, Invalid
from memories import packing, queries, ranking, receipts, retrieval, team_policy
from memories.advice import is_warning
from memories.enums import Kind, ScopeKind
from memories.models import Scope
from memories.past import Then
from memories.policies import is_trusted
from memories.policy import Ranking
from memories.retrieval import Retrieved
from memories.search.deadline import few_round_trips
from memories.search.evidence import Row
from memories.search.fusion import Fused


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
    as_of: datetime | None = None  # what would have been recalled then
    at: datetime | None = None  # the caller's present
    rerank: bool = False  # have a model look at the best ones
    deadline_ms: int | None = None  # None: the settings'; 0: as long as it takes


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
    shared: bool  # others read and write its scope too
    warning: bool  # it tells what not to do


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
    late: tuple[str, ...] = ()  # what was left out of a degraded answer


@dataclass(slots=True)
class _Scored:
    memory: Row
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
    with few_round_trips():
        return _answer(team, agent, scopes, question, token, started)


def _answer(
    team: Team, agent: Agent | None, scopes: Sequence[Scope], question: Question, token: ApiToken | None,
    started: float,
) -> Answer:  # fmt: skip
    now = question.at or timezone.now()
    retrieved = retrieval.retrieve(team=team, scopes=scopes, question=question, now=now)
    found = retrieved.found
    degraded = bool(found.late)
    best = max((fused.relevance for fused in found.fused), default=0.0)
    relevant = [fused for fused in found.fused if fused.relevance >= retrieved.floor]
    filtered: Counter[str] = Counter(below_floor=len(found.fused) - len(relevant))
    policy = team_policy.of(team).ranking
    ranked, contested = _weigh_contested(team, _rank(retrieved, agent, relevant, question, now, filtered, policy))
    ranked = _folded(team, ranked, filtered)
    chosen = _choose(ranked, found.vectors, question, filtered, policy)
    texts = retrieval.texts_of(team, [one.memory.pk for one in chosen], retrieved.then)
    hits = _hits(chosen, {scope.pk: scope for scope in scopes}, contested, texts)
    context, took_ms = _context(hits, question), (time.perf_counter() - started) * 1000
    receipt = receipts.write(
        team=team, agent=agent, token=token, question=question, hits=hits, context=context, best_relevance=best,
        degraded=degraded, searched=[scope.slug for scope in scopes], took_ms=took_ms,
    )  # fmt: skip
    return Answer(
        recall_id=receipt.pk, status=receipt.status, hits=hits, context=context,
        best_relevance=round(best, 4), searched_scopes=receipt.searched_scopes, degraded=degraded,
        took_ms=round(took_ms, 2), filtered={name: count for name, count in filtered.items() if count},
        late=found.late,
    )  # fmt: skip


def _check(question: Question) -> None:
    if not question.query.strip():
        raise Invalid("query must not be empty.", errors=(FieldError("query", "must not be empty."),))
    if len(question.query) > settings.MAX_QUERY_CHARS:
        message = f"is over the limit of {settings.MAX_QUERY_CHARS:,} characters."
        raise Invalid(f"query {message}", errors=(FieldError("query", message),))


def _rank(
    retrieved: Retrieved, agent: Agent | None, relevant: Sequence[Fused], question: Question, now: datetime,
    filtered: Counter[str], policy: Ranking,
) -> list[_Scored]:  # fmt: skip
    scored = []
    for fused in relevant:
        memory = _as_then(retrieved.found.rows[fused.memory_id], retrieved.then.get(fused.memory_id))
        if question.environment and ranking.contradicts(memory.environment, question.environment):
            filtered["other_environment"] += 1
            continue
        standing = _standing(memory, agent)
        parts = ranking.parts_of(standing, fused.relevance, question.as_of or now, policy)
        scored.append(_Scored(memory, fused, parts, standing, parts.score(policy)))
    return sorted(scored, key=lambda one: ranking.order_key(one.score, one.standing, one.fused.exact), reverse=True)


def _as_then(memory: Row, then: Then | None) -> Row:
    if then is None:
        return memory
    return replace(memory, revision=then.revision, confidence=then.confidence, tier=then.tier)


def _folded(team: Team, ranked: list[_Scored], filtered: Counter[str]) -> list[_Scored]:
    """Of an episode and the lesson drawn from it, keep the lesson."""
    kinds = [one.memory.kind for one in ranked]
    if not {Kind.TASK, Kind.EXPERIENCE} <= set(kinds):
        return ranked
    traces = queries.traces_behind(team, [one.memory.pk for one in ranked])
    places = ranking.fold(kinds, [traces.get(one.memory.pk, frozenset()) for one in ranked])
    filtered["folded_into_lesson"] = len(ranked) - len(places)
    return [ranked[place] for place in places]


def _weigh_contested(team: Team, ranked: list[_Scored]) -> tuple[list[_Scored], set[uuid.UUID]]:
    """Put the more believed side of a contradiction before the other. Also returns what is contested."""
    pairs = queries.contradicting(team, [one.memory.pk for one in ranked])
    belief = {one.memory.pk: (is_trusted(one.memory), one.memory.confidence) for one in ranked}
    scores = ranking.hold_back({one.memory.pk: one.score for one in ranked}, pairs, belief)
    for one in ranked:
        one.score = scores[one.memory.pk]
    ordered = sorted(ranked, key=lambda one: ranking.order_key(one.score, one.standing, one.fused.exact), reverse=True)
    return ordered, {pk for pair in pairs for pk in pair}


def _standing(memory: Row, agent: Agent | None) -> ranking.Standing:
    return ranking.Standing(
        tier=memory.tier, kind=memory.kind, confidence=memory.confidence, weight=memory.weight,
        access_count=memory.access_count, last_changed=memory.occurred_at or memory.created_at,
        is_own=agent is not None and memory.agent_id == agent.pk,
    )  # fmt: skip


def _choose(
    ranked: list[_Scored], vectors: dict[uuid.UUID, np.ndarray], question: Question, filtered: Counter[str],
    policy: Ranking,
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


def _hits(
    chosen: list[_Scored], scopes: dict[uuid.UUID, Scope], contested: set[uuid.UUID],
    texts: dict[uuid.UUID, tuple[str, str]],
) -> list[Hit]:  # fmt: skip
    return [
        Hit(
            memory=one.memory.pk, revision=one.memory.revision, scope=scopes[one.memory.scope_id].slug,
            kind=one.memory.kind, tier=one.memory.tier, status=one.memory.status, trust=one.memory.trust,
            score=round(one.score, 4), relevance=round(one.fused.relevance, 4), parts=_parts(one),
            snippet=texts[one.memory.pk][1] or texts[one.memory.pk][0], contested=one.memory.pk in contested,
            shared=scopes[one.memory.scope_id].kind == ScopeKind.SHARED, warning=is_warning(texts[one.memory.pk][0]),
        )
        for one in chosen
        if one.memory.pk in texts
    ]  # fmt: skip


def _parts(one: _Scored) -> dict[str, float]:
    shown = {name: getattr(one.fused, name) for name in ("vector", "keyword", "context", "session", "time", "exact")}
    shown |= asdict(one.parts)
    shown.pop("relevance")
    return {name: round(value, 4) for name, value in shown.items()}


def _context(hits: list[Hit], question: Question) -> str:
    lines = [packing.Line(hit.snippet, hit.kind, hit.scope, hit.contested, hit.warning) for hit in hits]
    return packing.pack(lines, question.token_budget)
