"""Deleting receipts that a team does not keep any longer."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from memories.models import Feedback, Recall, RecallHit


@transaction.atomic
def purge(*, team: Team, by: Actor, before: datetime, most: int) -> int:
    """Delete the oldest receipts from before a moment, at most so many, with their feedback; returns how many."""
    old = Recall.objects.of(team).filter(created_at__lt=before).order_by("created_at", "pk")
    ids = list(old.values_list("pk", flat=True)[:most])
    if not ids:
        return 0
    for rows in (Feedback, RecallHit):
        rows.objects.of(team).filter(recall__in=ids).delete()
    gone, _ = Recall.objects.of(team).filter(pk__in=ids).delete()
    before_it = audit.fingerprint({"receipts": sorted(map(str, ids))})
    detail = {"count": gone, "before": before.isoformat()}
    audit.record(team=team, by=by, verb="recalls.purged", on=team, before=before_it, after="", detail=detail)
    return gone
