"""What the queue and the schedule call. Arguments are ids; everything else is read from the rows."""

from __future__ import annotations

import uuid

from hindsight_site.accounts import deletion
from hindsight_site.accounts.models import Team


def delete_team(team_id: str, deletion_id: str) -> str:
    """Go on deleting a team; harmless when it is gone or another worker is at it."""
    team = Team.objects.filter(pk=team_id).first()
    return deletion.run(team, uuid.UUID(deletion_id)) if team else "gone"


def resume_deletions() -> str:
    """Wake workers for deletions whose wake-up or worker was lost."""
    suspended = Team.objects.exclude(suspended_at=None)
    return f"{sum(deletion.wake_lost(team) for team in suspended)} woken"
