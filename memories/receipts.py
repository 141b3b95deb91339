"""The receipt of a recall: what was asked, where, and which memory at which revision reached whom."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import connection
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken, Team
from memories.enums import RecallStatus
from memories.models import Recall, RecallHit
from memories.safety.masking import mask_text

if TYPE_CHECKING:
    from memories.recall import Hit, Question


def write(
    *, team: Team, agent: Agent | None, token: ApiToken | None, question: Question, hits: Sequence[Hit],
    context: str, best_relevance: float, degraded: bool, searched: list[str], took_ms: float,
) -> Recall:  # fmt: skip
    """Store the receipt (the query masked) and count the memories as handed out.

    Of `context` a digest is kept: the text is put together again from the revisions, so that forgetting
    a memory takes it out of its receipts too.
    """
    receipt = Recall.objects.create(
        team=team, agent=agent, token=token, session_id=question.session_id, query=mask_text(question.query),
        options=_options(question), searched_scopes=searched,
        status=RecallStatus.MATCHED if hits else RecallStatus.NO_MATCH, best_relevance=best_relevance,
        degraded=degraded, took_ms=took_ms, context_digest=digest(context),
    )  # fmt: skip
    RecallHit.objects.bulk_create(
        RecallHit(
            team=team, recall=receipt, memory_id=hit.memory, revision=hit.revision, rank=rank, score=hit.score,
            relevance=hit.relevance, parts=hit.parts, contested=hit.contested,
        )
        for rank, hit in enumerate(hits, start=1)
    )  # fmt: skip
    _count(team, [hit.memory for hit in hits])
    return receipt


def digest(context: str) -> str:
    """SHA-256 of a context in hex; empty for an empty one."""
    return hashlib.sha256(context.encode()).hexdigest() if context else ""


def _options(question: Question) -> dict[str, object]:
    return {
        "top_k": question.top_k, "kinds": list(question.kinds), "tiers": list(question.tiers),
        "tags": list(question.tags), "min_relevance": question.min_relevance,
        "include_archived": question.include_archived, "token_budget": question.token_budget,
        "as_of": question.as_of.isoformat() if question.as_of else None,
    }  # fmt: skip


def _count(team: Team, memory_ids: list) -> None:
    """Count accesses. Rows are locked in one order, so that parallel recalls cannot lock each other out."""
    if not memory_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"team": team.pk, "ids": list(memory_ids), "now": timezone.now()})


_COUNT = """
WITH handed AS (
    SELECT id FROM memories_memory WHERE team_id = %(team)s AND id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE
)
UPDATE memories_memory m
SET access_count = access_count + 1, unused_streak = unused_streak + 1, last_accessed_at = %(now)s
FROM handed WHERE m.team_id = %(team)s AND m.id = handed.id
"""
