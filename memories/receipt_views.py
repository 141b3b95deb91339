"""Pages of receipts: which memory text reached which agent when."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hindsight_site import cursors
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.days import beginning_of
from memories import playground, receipt_queries
from memories.enums import RecallStatus
from memories.models import RecallHit
from memories.receipt_queries import ReceiptFilters

NAMES = ("q", "agent", "status", "memory", "since", "until")


@require_safe
@team_page()
def recall_list(request: TeamRequest) -> HttpResponse:
    """The team's recalls, newest first. Both days of a range are included."""
    chosen = chosen_of(request.GET)
    found = receipt_queries.narrow(receipt_queries.visible(request.team, None), request.team, filters_of(chosen))
    page = cursors.newest_first(found, request.GET)
    found_hits = RecallHit.objects.of(request.team).filter(recall__in=[recall.pk for recall in page.rows])
    hits = list(found_hits.select_related("memory"))
    counts, texts = Counter(hit.recall_id for hit in hits), receipt_queries.first_texts(request.team, hits)
    context = {
        "page": page,
        "rows": [(recall, counts[recall.pk], texts.get(recall.pk)) for recall in page.rows],
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "agents": Agent.objects.of(request.team).order_by("name").values_list("slug", "name")[:500],
        "statuses": RecallStatus.choices,
    }
    return render(request, "memories/recalls.html", context)


@require_safe
@team_page()
def recall_receipt(request: TeamRequest, recall_id: uuid.UUID) -> HttpResponse:
    """One recall: who asked what where, and the text of each memory at the revision that was served."""
    recall = receipt_queries.get(request.team, None, recall_id)
    handed_out = receipt_queries.served(recall, None)
    quotes = receipt_queries.quotes_behind(request.team, handed_out)
    context = {
        "recall": recall,
        "served": [(one, quotes.get(one.hit.memory_id, [])) for one in handed_out],
        "context": receipt_queries.context_of(recall, handed_out),
        "again": playground.of_receipt(recall, then=False),
        "again_then": playground.of_receipt(recall, then=True),
        "asked": sorted((name, value) for name, value in recall.options.items() if value not in (None, [], {}, False)),
    }
    return render(request, "memories/recall.html", context)


def chosen_of(query: QueryDict) -> dict[str, str]:
    """The filters as typed. NUL is dropped: PostgreSQL has no text with it, so nothing could match."""
    return {name: query.get(name, "").replace("\x00", "").strip()[:120] for name in NAMES}


def filters_of(chosen: dict[str, str]) -> ReceiptFilters:
    """Read what was chosen; a day that is none is no filter, an id that is none is nobody's."""
    until = beginning_of(chosen["until"])
    return ReceiptFilters(
        memory=_memory(chosen["memory"]),
        words=chosen["q"],
        agent=chosen["agent"],
        status=chosen["status"],
        created_after=beginning_of(chosen["since"]),
        created_before=until and until + timedelta(days=1),
    )


def _memory(text: str) -> uuid.UUID | None:
    if not text:
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.UUID(int=0)
