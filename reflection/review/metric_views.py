"""The metrics of the review: a page of charts, and each table of it as CSV."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from hindsight_site import sheets
from hindsight_site.accounts import permissions
from hindsight_site.accounts.pages import TeamRequest, team_page
from reflection.review import metric_pages
from reflection.review.canaries import Caught, caught_by
from reflection.review.metric_pages import NONE, RANGES, SPLITS, TABLES, Gathered, Table
from reflection.review.metric_queries import Narrowing

FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


@require_safe
@team_page()
def metrics_page(request: TeamRequest) -> HttpResponse:
    """How quality moves: acceptance with its band and limits, reasons, agreement, coverage, edits, effect."""
    weeks, by, narrowing = chosen_of(request.GET)
    chosen = {"weeks": str(weeks), "by": by, "only": request.GET.get("only", "") if narrowing.by else ""}
    context: dict[str, Any] = {
        "weeks": weeks,
        "ranges": [(str(count), f"{count} weeks") for count in RANGES],
        "splits": list(SPLITS.items()),
        "split_title": SPLITS.get(by, ""),
        "chosen": chosen,
        "query": urlencode({name: value for name, value in chosen.items() if value}),
        "known_answers": _known_answers(request),
        **metric_pages.context_of(gathered(request), narrowing),
    }
    return render(request, "review/metrics.html", context)


@require_safe
@team_page()
def metrics_table(request: TeamRequest, table: str) -> HttpResponse:
    """One table of the page as CSV, oldest week first: shares are 0..1, empty where nothing was judged."""
    found = _table(request, table)
    body = sheets.as_csv([column.title for column in found.columns], found.rows)
    return _download(request, table, "csv", body)


@require_safe
@team_page()
def metrics_lines(request: TeamRequest, table: str) -> HttpResponse:
    """The same table as JSON Lines: null where nothing was judged."""
    found = _table(request, table)
    titles = [column.title for column in found.columns]
    return _download(
        request, table, "jsonl", sheets.as_jsonl(dict(zip(titles, row, strict=True)) for row in found.rows)
    )


def _table(request: TeamRequest, table: str) -> Table:
    if table not in TABLES:
        raise Http404
    return TABLES[table](gathered(request))


def _download(request: TeamRequest, table: str, form: str, body: str) -> HttpResponse:
    name = f"review-{table}-{request.team.slug}-{timezone.now():%Y-%m-%d}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(body, content_type=FORMATS[form], headers=headers)


def _known_answers(request: TeamRequest) -> list[Caught]:
    """How reviewers did on known answers: everybody's for who manages the team, else the reader's own."""
    if permissions.can(request.membership, permissions.MANAGE):
        return caught_by(request.team)
    return caught_by(request.team, request.user.pk)


def gathered(request: TeamRequest) -> Gathered:
    """Add up what the address asks for."""
    weeks, by, narrowing = chosen_of(request.GET)
    return metric_pages.gather(request.team, timezone.now(), weeks, by, narrowing)


def chosen_of(query: QueryDict) -> tuple[int, str, Narrowing]:
    """Return weeks, what to split by and what to narrow to; what is not offered is the default."""
    weeks = next((count for count in RANGES if str(count) == query.get("weeks", "")), RANGES[0])
    by = query.get("by", "") if query.get("by", "") in SPLITS else ""
    only = query.get("only", "").replace("\x00", "")[:200]
    narrowing = Narrowing(by, "" if only == NONE else only) if by and only else Narrowing()
    return weeks, by, narrowing
