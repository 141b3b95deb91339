"""What held more than once lives on without an expiry."""

from __future__ import annotations

from django.db import transaction

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict
from memories.actions.changing import change
from memories.actions.governing import may_become_semantic
from memories.enums import Tier
from memories.models import Memory


@transaction.atomic
def make_lasting(*, team: Team, by: Actor, memory: Memory) -> Memory:
    """Move what independent traces confirmed into the semantic tier. Raises `Conflict` for what may not."""
    if memory.tier == Tier.SEMANTIC:
        return memory
    if not may_become_semantic(memory):
        raise Conflict("Only what holds beyond one run can become semantic.", code="invalid_transition")
    return change(team=team, by=by, memory=memory, verb="memory.made_lasting", values={"tier": Tier.SEMANTIC})
