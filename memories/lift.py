"""Lift: whether tasks that adopted a memory ended better than those that were handed it and did not."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from hindsight_site.accounts.models import Team
from memories.models import Feedback


@dataclass(frozen=True, slots=True)
class Lift:
    """Recalls whose end is known, of those that adopted a memory and of those that left it aside."""

    adopted: int
    adopted_succeeded: int
    left_aside: int
    left_aside_succeeded: int

    @property
    def value(self) -> float | None:
        """Success rate with it minus success rate without, in -1..1; None without both."""
        if not self.adopted or not self.left_aside:
            return None
        return self.adopted_succeeded / self.adopted - self.left_aside_succeeded / self.left_aside


def lifts(team: Team, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Lift]:
    """The lift of each memory that anything is known of."""
    told = Feedback.objects.of(team).filter(memory_id__in=list(memory_ids), success__isnull=False)
    counted = told.values_list("memory_id").annotate(
        adopted_n=Count("pk", filter=Q(adopted=True)),
        adopted_succeeded=Count("pk", filter=Q(adopted=True, success=True)),
        aside=Count("pk", filter=Q(adopted=False)),
        aside_succeeded=Count("pk", filter=Q(adopted=False, success=True)),
    )
    return {memory: Lift(*numbers) for memory, *numbers in counted}
