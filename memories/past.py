"""What a memory was at an earlier time: its text from the revisions, its status from the audit.

Serves `as_of`: the answer that a recall would have given then, as far as it is still known. What was
forgotten since is gone, and what a person took out of recall since stays out.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from hindsight_site.accounts.models import AuditEvent, Team
from memories.enums import Status
from memories.models import Memory, Revision

MOST_REVISED = 500  # memories with another text then, the latest of them


@dataclass(frozen=True, slots=True)
class Then:
    """A memory's text and the number of its revision at that time."""

    content: str
    revision: int
    confidence: float
    tier: str


def texts_then(team: Team, scope_ids: Sequence[uuid.UUID], as_of: datetime) -> dict[uuid.UUID, Then]:
    """Return what those memories of the scopes said at `as_of` that say something else now."""
    revisions = Revision.objects.of(team).filter(
        memory__scope__in=list(scope_ids), valid_from__lte=as_of, valid_until__gt=as_of
    )
    rows = revisions.order_by("-valid_from").values_list("memory_id", "content", "number", "confidence", "tier")
    return {
        pk: Then(content, number, confidence, tier) for pk, content, number, confidence, tier in rows[:MOST_REVISED]
    }


def statuses_then(team: Team, memory_ids: Sequence[uuid.UUID], as_of: datetime) -> dict[uuid.UUID, str]:
    """Return the status at `as_of` of those that have changed it since: what the next change came from.

    The rules of life archive what is live and do not say from which of the two statuses.
    """
    events = (
        AuditEvent.objects.of(team)
        .filter(
            object_type=Memory._meta.model_name,
            object_id__in=[str(pk) for pk in memory_ids],
            at__gt=as_of,
        )
        .filter(Q(detail__has_key="from") | Q(verb="memory.archived"))
    )
    then: dict[uuid.UUID, str] = {}
    for object_id, came_from in events.order_by("at", "pk").values_list("object_id", "detail__from"):
        then.setdefault(uuid.UUID(object_id), came_from or Status.ACTIVE)
    return then
