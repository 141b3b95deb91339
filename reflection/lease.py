"""The lease of a reflection: `hindsight_site.accounts.leases` with this app's row, times and attempts."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import settings

from hindsight_site.accounts import leases
from hindsight_site.accounts.leases import Claim, LeaseLost, held, kept, renew
from hindsight_site.accounts.models import Team
from reflection.models import Reflection

__all__ = ["Claim", "LeaseLost", "claim", "held", "kept", "renew"]


def claim(team: Team, reflection_id: uuid.UUID) -> Claim | None:
    """Claim a reflection that is due, or whose worker stopped renewing. None: somebody else has it."""
    return leases.claim(
        Reflection,
        team,
        reflection_id,
        lease=timedelta(seconds=settings.REFLECTION_LEASE_SECONDS),
        max_attempts=settings.REFLECTION_MAX_ATTEMPTS,
    )
