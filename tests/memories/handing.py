"""A receipt as a recall leaves one, without a search: for tests of what comes after it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hindsight_site.accounts.models import Agent, ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from memories import receipts
from memories.models import Memory, Recall
from memories.recall import Hit, Question


def handed_out(agent: Agent, *memories: Memory, at: datetime, token: ApiToken | None = None) -> Recall:
    """Hand these memories to the agent, and date the receipt `at`."""
    hits: Sequence[Hit] = [
        Hit(
            memory=memory.pk, revision=1, scope="", kind=memory.kind, tier=memory.tier, status=memory.status,
            trust=memory.trust, score=1.0, relevance=1.0, parts={}, snippet="", contested=False, shared=False,
            warning=False,
        )
        for memory in memories
    ]  # fmt: skip
    with team_transaction(agent.team):
        receipt = receipts.write(
            team=agent.team, agent=agent, token=token, question=Question("invoices"), hits=hits, context="",
            best_relevance=1.0, degraded=False, searched=[], took_ms=1.0,
        )  # fmt: skip
        recalls = Recall.objects.of(agent.team).filter(pk=receipt)
        recalls.update(created_at=at)
        return recalls.get()
