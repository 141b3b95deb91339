"""What a reviewer must not look up before they have judged it: the sample of a week that holds known answers."""

from __future__ import annotations

import uuid
from typing import Any

from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts.models import Team, User
from reflection.enums import Stratum
from reflection.review import queries


def to_judge_blind(*, team: Team, reader: User, **_: Any) -> dict[uuid.UUID, str]:
    """The memories that wait for this reader in such a week, with the address of each one's page in the review."""
    waiting = queries.to_judge(team, reader, timezone.now()).filter(batch__population__has_key=Stratum.CANARY)
    return {memory: reverse("review-item", args=[item]) for item, memory in waiting.values_list("pk", "memory_id")}
