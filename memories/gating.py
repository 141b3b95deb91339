"""What a scope's review mode holds back: it reaches no agent until a person has looked at it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from hindsight_site.accounts.models import Team
from memories import team_policy
from memories.enums import ReviewMode, Status
from memories.models import Scope
from memories.policy import Life


def holds_back(scope: Scope, confidence: float, life: Life) -> bool:
    """Whether what is new in `scope` waits for a person."""
    low = confidence < life.low_confidence
    return scope.review_mode == ReviewMode.GATE_ALL or (scope.review_mode == ReviewMode.GATE_LOW_CONFIDENCE and low)


@dataclass(frozen=True, slots=True)
class Gates:
    """Scopes that hold back everything, scopes that hold back what is less confident than `low_confidence`.

    A candidate is held back; and so is what was put aside or replaced before anybody had judged it.
    """

    everything: tuple[uuid.UUID, ...] = ()
    unsure: tuple[uuid.UUID, ...] = ()
    low_confidence: float = 0.0

    def held(self) -> Q:
        """The memories that are held back."""
        unjudged = Q(needs_review=True, approved_at=None) & ~Q(status=Status.ACTIVE)
        gated = Q(scope__in=self.everything) | Q(scope__in=self.unsure, confidence__lt=self.low_confidence)
        return gated & (Q(status=Status.CANDIDATE) | unjudged)

    def sql(self) -> tuple[str, dict[str, Any]]:
        """Return the same as a condition on `m`, the memory's own row, and its named parameters."""
        if not self.everything and not self.unsure:
            return "FALSE", {}
        gated = "m.scope_id = ANY(%(gated)s) OR (m.scope_id = ANY(%(gated_unsure)s) AND m.confidence < %(unsure)s)"
        unjudged = "m.status <> 'active' AND m.needs_review AND m.approved_at IS NULL"
        params = {"gated": list(self.everything), "gated_unsure": list(self.unsure), "unsure": self.low_confidence}
        return f"(({gated}) AND (m.status = 'candidate' OR ({unjudged})))", params


def gates_of(team: Team, scopes: Iterable[Scope]) -> Gates:
    """The gates of these scopes. The policy is read only where a scope asks how sure a memory is."""
    modes = [(scope.pk, scope.review_mode) for scope in scopes]
    everything = tuple(pk for pk, mode in modes if mode == ReviewMode.GATE_ALL)
    unsure = tuple(pk for pk, mode in modes if mode == ReviewMode.GATE_LOW_CONFIDENCE)
    return Gates(everything, unsure, team_policy.of(team).life.low_confidence if unsure else 0.0)
