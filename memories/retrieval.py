"""What a recall chooses from: both searches, an earlier time, a model's look, all before the deadline."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection

from hindsight_site.accounts.models import Team
from memories import past, reranking
from memories.enums import Status
from memories.gating import Gates, gates_of
from memories.models import Scope
from memories.past import Then
from memories.policies import LIVE
from memories.safety.sessions import stored_session_id
from memories.search import candidates
from memories.search.candidates import Found
from memories.search.deadline import Deadline

if TYPE_CHECKING:
    from memories.recall import Question


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The candidates, best first, the floor under them, and what those said that say something else now."""

    found: Found
    floor: float
    then: dict[uuid.UUID, Then] = field(default_factory=dict)


def retrieve(*, team: Team, scopes: Sequence[Scope], question: Question, now: datetime) -> Retrieved:
    """Search `scopes` for the question. What is late or fails is left out and named in `found.late`."""
    deadline = _deadline(question)
    scope_ids = [scope.pk for scope in scopes]
    gates = gates_of(team, scopes)
    then = past.texts_then(team, scope_ids, question.as_of) if question.as_of else {}

    def search(text: str) -> Found:
        return candidates.find(
            team=team, scope_ids=scope_ids, text=text, statuses=_statuses(question),
            only=_narrowing(question, now, gates), at=now, deadline=deadline,
            said={pk: one.content for pk, one in then.items()},
        )  # fmt: skip

    rewriting = reranking.start_rewriting(question.query) if question.rerank and settings.RECALL_REWRITE else None
    found = search(question.query)
    if rewriting is not None:
        rewritten, wrong = reranking.wait(rewriting, deadline, "")
        found = _together(found, search(rewritten)) if rewritten else _late(found, wrong)
    if question.as_of is not None:
        found = _as_it_was(team, found, question)
    floor = candidates.floor(found.by_keywords_alone) if question.min_relevance is None else question.min_relevance
    if question.rerank:
        best = [one.memory_id for one in found.fused if one.relevance >= floor][: reranking.MOST_READ]
        texts = {pk: content for pk, (content, _) in texts_of(team, best, then).items()}
        fused, wrong = reranking.reranked(question.query, found.fused, texts, deadline)
        found = _late(replace(found, fused=fused), wrong)
    return Retrieved(found, floor, then)


def texts_of(
    team: Team, memory_ids: Sequence[uuid.UUID], then: dict[uuid.UUID, Then]
) -> dict[uuid.UUID, tuple[str, str]]:
    """Return content and snippet of these memories, as of then where that differs."""
    # Asked at every recall, in SQL: putting it together through the ORM takes longer than running it.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, content, snippet FROM memories_memory WHERE team_id = %s AND id = ANY(%s)",
            [team.pk, list(memory_ids)],
        )
        rows = cursor.fetchall()
    return {pk: (then[pk].content, "") if pk in then else (content, snippet) for pk, content, snippet in rows}


def _deadline(question: Question) -> Deadline:
    if question.deadline_ms is not None:
        return Deadline.after(question.deadline_ms)
    return Deadline.after(settings.RECALL_RERANK_DEADLINE_MS if question.rerank else settings.RECALL_DEADLINE_MS)


def _statuses(question: Question) -> list[str]:
    """The present statuses that are searched. What a person took out of recall stays out of the past too."""
    statuses = [str(status) for status in LIVE]
    if question.include_archived or question.as_of is not None:
        statuses.append(Status.ARCHIVED)
    if question.as_of is not None:
        statuses.append(Status.SUPERSEDED)
    return statuses


def _narrowing(question: Question, now: datetime, gates: Gates) -> dict[str, Any]:
    """What a candidate must be, decided before any limit is applied."""
    return {
        "kinds": list(question.kinds), "tiers": list(question.tiers), "tags": list(question.tags),
        "session_id": stored_session_id(question.session_id), "now": question.as_of or now, "as_of": question.as_of,
        "include_archived": question.include_archived, "gates": gates,
    }  # fmt: skip


def _as_it_was(team: Team, found: Found, question: Question) -> Found:
    """Only what could be recalled then, at the status it had."""
    assert question.as_of is not None  # noqa: S101 - the caller has looked
    then = past.statuses_then(team, list(found.rows), question.as_of)
    allowed = {*LIVE, Status.ARCHIVED} if question.include_archived else set(LIVE)
    rows = {pk: replace(row, status=then.get(pk, row.status)) for pk, row in found.rows.items()}
    fused = [one for one in found.fused if rows[one.memory_id].status in allowed]
    return replace(found, fused=fused, rows=rows)


def _together(first: Found, second: Found) -> Found:
    """What either wording of the question found, at the higher relevance."""
    best = {one.memory_id: one for one in second.fused}
    for one in first.fused:
        other = best.get(one.memory_id)
        if other is None or (one.exact > 0, one.relevance) >= (other.exact > 0, other.relevance):
            best[one.memory_id] = one
    fused = sorted(best.values(), key=lambda one: (one.exact <= 0, -one.relevance, one.memory_id))
    late = tuple(dict.fromkeys((*first.late, *second.late)))
    return Found(fused, first.vectors | second.vectors, first.rows | second.rows, late, first.by_keywords_alone)


def _late(found: Found, wrong: str) -> Found:
    return replace(found, late=(*found.late, wrong)) if wrong else found
