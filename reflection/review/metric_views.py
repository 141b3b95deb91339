"""The metrics of the review: a page of charts, and each table of it as CSV."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from hindsight_site.accounts.pages import TeamRequest, team_page
from reflection.review import metric_pages
from reflection.review.metric_pages import NONE, RANGES, SPLITS, TABLES, Gathered, Table
from reflection.review.metric_queries import Narrowing

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what begins like this


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
        **metric_pages.context_of(gathered(request), narrowing),
    }
    return render(request, "review/metrics.html", context)


@require_safe
@team_page()
def metrics_table(request: TeamRequest, table: str) -> HttpResponse:
    """One table of the page as CSV, oldest week first: shares are 0..1, empty where nothing was judged."""
    if table not in TABLES:
        raise Http404
    name = f"review-{table}-{request.team.slug}-{timezone.now():%Y-%m-%d}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    body = csv_of(TABLES[table](gathered(request)))
    return HttpResponse(body, content_type="text/csv; charset=utf-8", headers=headers)


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


def csv_of(table: Table) -> str:
    """Write a table as CSV."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow([column.title for column in table.columns])
    writer.writerows([[_cell(value) for value in row] for row in table.rows])
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
