"""Deleting what was noted of mails about the review, once nobody can be told of the same thing again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from reflection.enums import MailStatus
from reflection.models import ReviewMail

# What a mail is about is news for a week at most: a row that is older keeps nobody from being told twice.
KEPT = timedelta(days=90)
ENDED = (MailStatus.SENT, MailStatus.DROPPED, MailStatus.FAILED)


@transaction.atomic
def purge(*, team: Team, by: Actor, before: datetime, most: int) -> int:
    """Delete the oldest rows that ended before a moment, at most so many; returns how many."""
    old = ReviewMail.objects.of(team).filter(status__in=ENDED, changed_at__lt=before).order_by("changed_at", "pk")
    ids = list(old.values_list("pk", flat=True)[:most])
    if not ids:
        return 0
    gone, _ = ReviewMail.objects.of(team).filter(pk__in=ids).delete()
    before_it = audit.fingerprint({"mails": sorted(map(str, ids))})
    detail = {"count": gone, "before": before.isoformat()}
    audit.record(team=team, by=by, verb="review.mails_purged", on=team, before=before_it, after="", detail=detail)
    return gone
