"""Telling a team's webhooks what became of a memory. Ids and states only."""

from __future__ import annotations

from hindsight_site.accounts.enums import WebhookEvent
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.webhooks.emitting import emit
from memories.enums import Status
from memories.models import Memory


def announce(team: Team, memory: Memory, *, came_from: str = "", needed_review: bool = False) -> None:
    """Say that a memory was quarantined or waits for a person; nothing when it was so before."""
    data = {"memory": str(memory.pk), "kind": memory.kind, "status": memory.status, "revision": memory.revision}
    if memory.status == Status.QUARANTINED != came_from:
        emit(team, WebhookEvent.MEMORY_QUARANTINED, data)
    elif memory.needs_review and not needed_review and memory.status != Status.QUARANTINED:
        emit(team, WebhookEvent.MEMORY_NEEDS_REVIEW, data)
