"""What the queue and the schedule call. Arguments are ids; everything else is read from the rows."""

from __future__ import annotations

import uuid

from hindsight_site.accounts import deletion, kept_answers, limits
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.webhooks import delivering
from hindsight_site.queue import oldest_waiting


def delete_team(team_id: str, deletion_id: str) -> str:
    """Go on deleting a team; harmless when it is gone or another worker is at it."""
    team = Team.objects.filter(pk=team_id).first()
    return deletion.run(team, uuid.UUID(deletion_id)) if team else "gone"


def resume_deletions() -> str:
    """Wake workers for deletions whose wake-up or worker was lost."""
    suspended = Team.objects.exclude(suspended_at=None)
    return f"{sum(deletion.wake_lost(team) for team in suspended)} woken"


def purge_kept_answers(after: str = "") -> str:
    """Remove the answers of Idempotency-Keys that are older than a day, from the team after `after` on."""
    return f"{kept_answers.purge(uuid.UUID(after) if after else None)} removed"


def deliver_webhook(team_id: str, delivery_id: str) -> str:
    """Send one message to a webhook; harmless when it is being sent or has ended."""
    team = Team.objects.filter(pk=team_id, suspended_at=None).first()
    return delivering.deliver(team, uuid.UUID(delivery_id)) if team else "gone"


def sweep_webhooks() -> str:
    """Wake workers for messages that are due again or were lost, and purge the delivery log."""
    oldest = oldest_waiting()
    return f"{sum(delivering.sweep(team, oldest) for team in Team.objects.filter(suspended_at=None))} woken"


def tidy_buckets() -> str:
    """Remove the buckets of the rate limits that are full again."""
    return f"{limits.tidy()} removed"
