"""The receipt of a recall: what was asked, where, and which memory at which revision reached whom."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.utils import timezone

from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Agent, ApiToken, Team
from memories.enums import RecallStatus
from memories.safety.masking import MaskState, mask_text, mask_value
from memories.safety.sessions import stored_session_id

if TYPE_CHECKING:
    from memories.recall import Hit, Question


def write(
    *, team: Team, agent: Agent | None, token: ApiToken | None, question: Question, hits: Sequence[Hit],
    context: str, best_relevance: float, degraded: bool, searched: list[str], took_ms: float,
) -> uuid.UUID:  # fmt: skip
    """Store the receipt (query and environment masked), count the memories as handed out, and return the receipt's id.

    Of `context` a digest is kept: the text is put together again from the revisions, so that forgetting
    a memory takes it out of its receipts too.
    """
    receipt, mask = new_id(), MaskState()
    row: dict[str, Any] = {
        "id": receipt, "team": team.pk, "agent": agent.pk if agent else None, "token": token.pk if token else None,
        "session": stored_session_id(question.session_id), "query": mask_text(question.query, mask),
        "options": json.dumps(_options(question, mask)), "scopes": searched, "status": str(status(hits)),
        "best": best_relevance, "degraded": degraded, "digest": digest(context), "took": took_ms,
        "now": timezone.now(), "hits": json.dumps([_hit(rank, hit) for rank, hit in enumerate(hits, start=1)]),
        "handed": "{" + ",".join(str(hit.memory) for hit in hits) + "}",
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_WRITE if hits else _WRITE_EMPTY, row)
    return receipt


def status(hits: Sequence[Hit]) -> RecallStatus:
    """What a recall with these hits has come to."""
    return RecallStatus.MATCHED if hits else RecallStatus.NO_MATCH


def digest(context: str) -> str:
    """SHA-256 of a context in hex; empty for an empty one."""
    return hashlib.sha256(context.encode()).hexdigest() if context else ""


def _options(question: Question, mask: MaskState) -> dict[str, object]:
    return {
        "top_k": question.top_k, "kinds": list(question.kinds), "tiers": list(question.tiers),
        "tags": list(question.tags), "min_relevance": question.min_relevance,
        "include_archived": question.include_archived, "token_budget": question.token_budget,
        "as_of": question.as_of.isoformat() if question.as_of else None,
        "environment": mask_value(question.environment, mask) if question.environment else {},
    }  # fmt: skip


def _hit(rank: int, hit: Hit) -> dict[str, object]:
    return {
        "id": str(new_id()), "memory": str(hit.memory), "revision": hit.revision, "rank": rank, "score": hit.score,
        "relevance": hit.relevance, "parts": hit.parts, "contested": hit.contested,
    }  # fmt: skip


# In SQL, and one statement: every recall waits for it, and through the ORM three take six times as long.
_WRITE_EMPTY = """
INSERT INTO memories_recall (
    id, team_id, agent_id, token_id, session_id, query, options, searched_scopes, status, best_relevance, degraded,
    context_digest, took_ms, created_at
) VALUES (
    %(id)s, %(team)s, %(agent)s, %(token)s, %(session)s, %(query)s, %(options)s::jsonb, %(scopes)s::varchar[],
    %(status)s, %(best)s, %(degraded)s, %(digest)s, %(took)s, %(now)s
)
"""
# Accesses are counted on rows locked in one order, so that parallel recalls cannot lock each other out.
_WRITE = f"""
WITH receipt AS ({_WRITE_EMPTY}), hits AS (
    INSERT INTO memories_recallhit (
        id, team_id, recall_id, memory_id, revision, rank, score, relevance, parts, contested
    )
    SELECT h.id, %(team)s, %(id)s, h.memory, h.revision, h.rank, h.score, h.relevance, h.parts, h.contested
    FROM jsonb_to_recordset(%(hits)s::jsonb) AS h(
        id uuid, memory uuid, revision int, rank smallint, score float8, relevance float8, parts jsonb, contested bool
    )
), handed AS (
    SELECT id FROM memories_memory WHERE team_id = %(team)s AND id = ANY(%(handed)s::uuid[])
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE memories_memory m
SET access_count = access_count + 1, unused_streak = unused_streak + 1, last_accessed_at = %(now)s
FROM handed WHERE m.team_id = %(team)s AND m.id = handed.id
"""  # noqa: S608 - made of a constant
