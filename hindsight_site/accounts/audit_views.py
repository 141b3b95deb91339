"""The page of the audit: who did what, to be narrowed and taken away as CSV."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_GET

from hindsight_site import cursors
from hindsight_site.accounts import audit_queries, permissions
from hindsight_site.accounts.audit_queries import AuditFilters
from hindsight_site.accounts.pages import TeamRequest, team_page

NAMES = ("actor", "verb", "object", "since", "until")


@require_GET
@team_page(permissions.READ_AUDIT)
def audit_page(request: TeamRequest) -> HttpResponse:
    """The team's events, newest first. Both days of a range are included."""
    chosen = chosen_of(request.GET)
    events = audit_queries.found(request.team, filters_of(chosen))
    page = cursors.newest_first(events, request.GET)
    context = {
        "page": page,
        # In pairs: a template would take a detail called "items" for the method of that name.
        "rows": [(event, sorted(event.detail.items())) for event in page.rows],
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "download": request.GET.urlencode(),
    }
    return render(request, "accounts/audit.html", context)


@require_GET
@team_page(permissions.READ_AUDIT)
def audit_download(request: TeamRequest) -> StreamingHttpResponse:
    """What the page finds, all of it, as CSV. Times are UTC."""
    lines = audit_queries.lines(request.team, filters_of(chosen_of(request.GET)))
    name = f"audit-{request.team.slug}-{timezone.now():%Y-%m-%d}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


def chosen_of(query: QueryDict) -> dict[str, str]:
    """The filters as typed. NUL is dropped: PostgreSQL has no text with it, so nothing could match."""
    return {name: query.get(name, "").replace("\x00", "").strip()[:254] for name in NAMES}


def filters_of(chosen: dict[str, str]) -> AuditFilters:
    """Read what was typed; a day that is none is no filter. A kind of object is letters only, an id never is."""
    until, kind = _midnight(chosen["until"]), chosen["object"].isalpha()
    return AuditFilters(
        actor=chosen["actor"],
        verb=chosen["verb"],
        object_type=chosen["object"].lower() if kind else "",
        object_id="" if kind else chosen["object"],
        since=_midnight(chosen["since"]),
        until=until and until + timedelta(days=1),
    )


def _midnight(day: str) -> datetime | None:
    """The beginning of a day in the reader's time zone."""
    try:
        parsed = parse_date(day)
        # One day of room at either end of the calendar, for the zone and the day that is added.
        if parsed is None or not 1 < parsed.year < 9999:
            return None
        return timezone.make_aware(datetime.combine(parsed, datetime.min.time()))
    except ValueError:
        return None
