"""Memories that somebody is to judge without knowing what was thought of them before.

The review mixes memories with a known answer into a week's sample, where a team wants that. Their own pages would
give the answer away, so until this reader has judged it a memory of such a sample is not told about: every one of
them, since to hide the known ones only would name them.
"""

from __future__ import annotations

import uuid
from typing import Any

from hindsight_site.accounts import permissions
from hindsight_site.accounts.models import Membership, User
from memories.signals import to_judge_blind


def unjudged(membership: Membership, reader: User) -> dict[uuid.UUID, str]:
    """The memories that this reader, the member, has to judge blind, each with the address where they do it."""
    if not permissions.can(membership, permissions.REVIEW):
        return {}
    answers: list[tuple[Any, Any]] = to_judge_blind.send(sender=None, team=membership.team, reader=reader)
    return {memory: address for _, found in answers for memory, address in found.items()}
