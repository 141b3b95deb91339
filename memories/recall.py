"""Query → ranked hits with reasons, and a receipt, in time. No model call unless asked for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.utils import timezone

from hindsight_site.accounts import replica
from hindsight_site.accounts.models import Agent, ApiToken, Team
from hindsight_site.refusals import FieldError, Invalid
from memories import contents, packing, queries, ranking, receipts, retrieval, team_policy
from memories.advice import is_warning
from memories.enums import Kind, ScopeKind
from memories.models import Scope
from memories.past import Then
from memories.policies import is_trusted
from memories.policy import Ranking
from memories.retrieval import Retrieved
from memories.search.evidence import Row
from memories.search.fusion import Fused

LeftOut = dict[str, list[Fused]]  # reason → what was found and not taken, best first


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


@dataclass(frozen=True, slots=True)
class Look:
    """What a question finds, before anybody is handed it: the answer without its receipt.

    `left_out` holds what was found and not taken, by reason (see `filtered` of an answer), best first.
    """

    hits: list[Hit]
    context: str
    best_relevance: float
    floor: float  # what relevance had to reach
    searched_scopes: list[str]
    took_ms: float
    left_out: LeftOut
    late: tuple[str, ...] = ()


def recall(
    *,
    team: Team,
    agent: Agent | None,
    scopes: Sequence[Scope],
    question: Question,
    token: ApiToken | None = None,
) -> Answer:
    """Find what matters in `scopes`, best first, and leave a receipt. Raises `Invalid`."""
    _check(question)
    found = _found(team, agent, scopes, question)
    receipt = receipts.write(
        team=team, agent=agent, token=token, question=question, hits=found.hits, context=found.context,
        best_relevance=found.best_relevance, degraded=bool(found.late), searched=found.searched_scopes,
        took_ms=found.took_ms,
    )  # fmt: skip
    return Answer(
        recall_id=receipt, status=receipts.status(found.hits), hits=found.hits, context=found.context,
        best_relevance=round(found.best_relevance, 4), searched_scopes=found.searched_scopes,
        degraded=bool(found.late), took_ms=round(found.took_ms, 2),
        filtered={reason: len(those) for reason, those in found.left_out.items() if those}, late=found.late,
    )  # fmt: skip


def look(*, team: Team, agent: Agent | None, scopes: Sequence[Scope], question: Question) -> Look:
    """Find what `recall` would, and leave no trace of having asked: no receipt, no hit counted. Raises `Invalid`."""
    _check(question)
    return _found(team, agent, scopes, question)


def _found(team: Team, agent: Agent | None, scopes: Sequence[Scope], question: Question) -> Look:
    """Look on the replica where there is one that has what the team wrote last, otherwise here."""
    there = replica.ask(team, lambda: _look(team, agent, scopes, question))
    return there or _look(team, agent, scopes, question)


def _look(team: Team, agent: Agent | None, scopes: Sequence[Scope], question: Question) -> Look:
    started = time.perf_counter()
    now = question.at or timezone.now()
    retrieved = retrieval.retrieve(team=team, scopes=scopes, question=question, now=now)
    found = retrieved.found
    left_out: LeftOut = {"below_floor": [fused for fused in found.fused if fused.relevance < retrieved.floor]}
    relevant = [fused for fused in found.fused if fused.relevance >= retrieved.floor]
    policy = team_policy.of(team).ranking
    ranked, contested = _weigh_contested(team, _rank(retrieved, agent, relevant, question, now, left_out, policy))
    ranked = _folded(team, ranked, left_out)
    chosen = _choose(ranked, found.vectors, question, left_out, policy)
    texts = retrieval.texts_of(team, [one.memory.pk for one in chosen], retrieved.then)
    hits = _hits(chosen, {scope.pk: scope for scope in scopes}, contested, texts)
    return Look(
        hits=hits, context=_context(hits, question),
        best_relevance=max((fused.relevance for fused in found.fused), default=0.0), floor=retrieved.floor,
        searched_scopes=[scope.slug for scope in scopes], took_ms=(time.perf_counter() - started) * 1000,
        left_out=left_out, late=found.late,
    )  # fmt: skip


def _check(question: Question) -> None:
    if not question.query.strip():
        raise Invalid("query must not be empty.", errors=(FieldError("query", "must not be empty."),))
    if len(question.query) > settings.MAX_QUERY_CHARS:
        message = f"is over the limit of {settings.MAX_QUERY_CHARS:,} characters."
        raise Invalid(f"query {message}", errors=(FieldError("query", message),))
    contents.check_json_size("environment", question.environment)  # the receipt keeps it


def _rank(
    retrieved: Retrieved, agent: Agent | None, relevant: Sequence[Fused], question: Question, now: datetime,
    left_out: LeftOut, policy: Ranking,
) -> list[_Scored]:  # fmt: skip
    scored = []
    for fused in relevant:
        memory = _as_then(retrieved.found.rows[fused.memory_id], retrieved.then.get(fused.memory_id))
        if question.environment and ranking.contradicts(memory.environment, question.environment):
            left_out.setdefault("other_environment", []).append(fused)
            continue
        standing = _standing(memory, agent)
        parts = ranking.parts_of(standing, fused.relevance, question.as_of or now, policy)
        scored.append(_Scored(memory, fused, parts, standing, parts.score(policy)))
    return scored


def _as_then(memory: Row, then: Then | None) -> Row:
    if then is None:
        return memory
    return replace(memory, revision=then.revision, confidence=then.confidence, tier=then.tier)


def _folded(team: Team, ranked: list[_Scored], left_out: LeftOut) -> list[_Scored]:
    """Of an episode and the lesson drawn from it, keep the lesson."""
    kinds = [one.memory.kind for one in ranked]
    if not {Kind.TASK, Kind.EXPERIENCE} <= set(kinds):
        return ranked
    traces = queries.traces_behind(team, [one.memory.pk for one in ranked])
    places = ranking.fold(kinds, [traces.get(one.memory.pk, frozenset()) for one in ranked])
    return _taken(ranked, places, left_out, "folded_into_lesson")


def _weigh_contested(team: Team, ranked: list[_Scored]) -> tuple[list[_Scored], set[uuid.UUID]]:
    """Sort, the more believed side of a contradiction before the other. Also returns what is contested."""
    pairs = queries.contradicting(team, [one.memory.pk for one in ranked])
    if pairs:
        belief: dict[Hashable, tuple[bool, float]] = {
            one.memory.pk: (is_trusted(one.memory), one.memory.confidence) for one in ranked
        }
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
    ranked: list[_Scored], vectors: dict[uuid.UUID, np.ndarray], question: Question, left_out: LeftOut,
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
    return _taken(ranked, places, left_out, "over_top_k_or_alike")


def _taken(ranked: list[_Scored], places: list[int], left_out: LeftOut, reason: str) -> list[_Scored]:
    """Those in `places`; the others are noted as left out."""
    taken = set(places)
    left_out[reason] = [one.fused for place, one in enumerate(ranked) if place not in taken]
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
    shown |= {name: getattr(one.parts, name) for name in ("recency", "confidence", "weight", "heat")}
    return {name: round(value, 4) for name, value in shown.items()}


def _context(hits: list[Hit], question: Question) -> str:
    lines = [packing.Line(hit.snippet, hit.kind, hit.scope, hit.contested, hit.warning) for hit in hits]
    return packing.pack(lines, question.token_budget)
