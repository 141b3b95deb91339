"""The receipt of a recall: what was asked, where, and which memory at which revision reached whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db.models import F
from django.utils import timezone

from hindsight_site.accounts.models import Agent, ApiToken, Team
from memories.enums import RecallStatus
from memories.models import Memory, Recall, RecallHit
from memories.safety.masking import mask_text

if TYPE_CHECKING:
    from memories.recall import Hit, Question


def write(
    *, team: Team, agent: Agent | None, token: ApiToken | None, question: Question, hits: Sequence[Hit],
    best_relevance: float, degraded: bool, searched: list[str], took_ms: float,
) -> Recall:  # fmt: skip
    """Store the receipt (the query masked) and count the memories as handed out."""
    receipt = Recall.objects.create(
        team=team, agent=agent, token=token, session_id=question.session_id, query=mask_text(question.query),
        options=_options(question), searched_scopes=searched,
        status=RecallStatus.MATCHED if hits else RecallStatus.NO_MATCH, best_relevance=best_relevance,
        degraded=degraded, took_ms=took_ms,
    )  # fmt: skip
    RecallHit.objects.bulk_create(
        RecallHit(
            team=team, recall=receipt, memory_id=hit.memory, revision=hit.revision, rank=rank, score=hit.score,
            relevance=hit.relevance, parts=hit.parts,
        )
        for rank, hit in enumerate(hits, start=1)
    )  # fmt: skip
    _count(team, [hit.memory for hit in hits])
    return receipt


def _options(question: Question) -> dict[str, object]:
    return {
        "top_k": question.top_k, "kinds": list(question.kinds), "tiers": list(question.tiers),
        "tags": list(question.tags), "min_relevance": question.min_relevance,
        "include_archived": question.include_archived,
        "as_of": question.as_of.isoformat() if question.as_of else None,
    }  # fmt: skip


def _count(team: Team, memory_ids: list) -> None:
    """Count accesses. Rows are locked in one order, so that parallel recalls cannot lock each other out."""
    if not memory_ids:
        return
    rows = Memory.objects.of(team).filter(pk__in=memory_ids)
    list(rows.order_by("pk").select_for_update(of=("self",), no_key=True).values_list("pk", flat=True))
    rows.update(
        access_count=F("access_count") + 1,
        unused_streak=F("unused_streak") + 1,
        last_accessed_at=timezone.now(),
    )
