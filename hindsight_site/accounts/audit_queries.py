"""Reading the audit: filters shared by the page, the API and the download."""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from hindsight_site import sheets
from hindsight_site.accounts.audit_choices import kinds_of, verbs_of
from hindsight_site.accounts.models import AuditEvent, AuditReason, Team
from hindsight_site.accounts.tenancy import team_transaction

CHUNK = 1_000  # rows of a download that are read in one transaction
COLUMNS = (
    "at", "actor_kind", "actor_id", "actor_label", "verb", "object_type", "object_id", "before", "after", "detail",
    "reason", "request_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """What to show. An empty filter lets everything through; `since` is included, `until` is not.

    `actor` is an id, or part of a label; with `actor_kind` an id only. `verb` is whole (memory.approved)
    or a family (memory).
    """

    actor: str = ""
    actor_kind: str = ""  # enums.ActorKind
    verb: str = ""
    object_type: str = ""
    object_id: str = ""
    request_id: str = ""
    since: datetime | None = None
    until: datetime | None = None


def narrow(events: QuerySet[AuditEvent], filters: AuditFilters) -> QuerySet[AuditEvent]:
    """Return the events of `events` that `filters` let through."""
    if filters.actor_kind:
        events = events.filter(actor_kind=filters.actor_kind)
        events = events.filter(actor_id=filters.actor) if filters.actor else events
    elif filters.actor:
        events = events.filter(Q(actor_id=filters.actor) | Q(actor_label__icontains=filters.actor))
    if filters.verb:
        events = events.filter(verb=filters.verb)
    if filters.object_type:
        events = events.filter(object_type=filters.object_type)
    if filters.object_id:
        events = events.filter(object_id=filters.object_id)
    if filters.request_id:
        events = events.filter(request_id=filters.request_id)
    if filters.since is not None:
        events = events.filter(at__gte=filters.since)
    if filters.until is not None:
        events = events.filter(at__lt=filters.until)
    return events


def found(team: Team, filters: AuditFilters) -> QuerySet[AuditEvent]:
    """Return the team's events that `filters` let through, each with its `reason`; None without, or when it is gone.

    `created_at` is there for `cursors`.
    """
    events = AuditEvent.objects.of(team)
    if filters.verb and "." not in filters.verb:  # a family: the verbs of it that there are
        events = events.filter(verb__in=verbs_of(team).get(filters.verb, []))
        filters = replace(filters, verb="")
    if filters.object_id and not filters.object_type:
        events = events.filter(object_type__in=kinds_of(team))  # an id alone could use no index
    words = AuditReason.objects.of(team).filter(event_id=OuterRef("pk")).values("words")[:1]
    return narrow(events, filters).annotate(created_at=F("at"), reason=Subquery(words))


def lines(team: Team, filters: AuditFilters, chunk: int = CHUNK) -> Iterator[str]:
    """Yield the found events as CSV, newest first, a chunk of lines at a time.

    Each chunk is a short transaction of its own, so that a long download holds nothing; it goes on
    after the last row, so new events neither repeat nor hide one.
    """
    yield _csv([COLUMNS])
    last: tuple[datetime, uuid.UUID] | None = None
    while True:
        with team_transaction(team):
            rows = list(_beyond(found(team, filters), last).order_by("-at", "-id")[:chunk])
        if not rows:
            return
        yield _csv([[_cell(getattr(event, name)) for name in COLUMNS] for event in rows])
        last = (rows[-1].at, rows[-1].pk)


def _beyond(events: QuerySet[AuditEvent], last: tuple[datetime, uuid.UUID] | None) -> QuerySet[AuditEvent]:
    if last is None:
        return events
    at, pk = last
    return events.filter(Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=pk)))


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: object) -> str:
    """The value as text that a spreadsheet does not run: one that begins like a formula is quoted."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return sheets.safe(text)
