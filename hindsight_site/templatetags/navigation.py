"""The main navigation: where one can go, and how much waits there for this person."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from django import template
from django.db import connection, models
from django.db.models import Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts import permissions
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.actions.settling import open_edges
from memories.enums import Status
from memories.models import Memory
from reflection.review.queries import to_judge

register = template.Library()
MOST = 99  # beyond that the exact number says nothing more

# Title, view, icon; what belongs together is a group.
GROUPS = (
    (("Overview", "overview", "overview"),),
    (("Review", "review", "review"), ("Conflicts", "conflicts", "warning"),
     ("Quarantine", "quarantine", "quarantined")),
    (("Memories", "memories", "memories"), ("Traces", "traces", "traces"), ("Recalls", "recalls", "recall"),
     ("Playground", "playground", "playground")),
    (("Connect", "connect", "connect"), ("Audit", "audit", "audit")),
)  # fmt: skip
# Entries that are shown only to those who may.
GUARDED = {"audit": permissions.READ_AUDIT}
# On a small screen these stand in the bar; the others are behind "More".
IN_THE_BAR = ("overview", "review", "memories", "traces")
WAITS = {"review": "to judge", "conflicts": "to settle", "quarantine": "to look at"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One link. `count` is how much waits there, "" for nothing; `waits` says for what."""

    title: str
    icon: str
    url: str
    is_current: bool
    in_the_bar: bool
    count: str
    waits: str


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> dict[str, Any]:
    """Return `groups` of entries, and for small screens `more`: those beside the bar, and what waits there."""
    request: HttpRequest | None = context.get("request")
    here = request.path if request else ""
    may = context.get("may", frozenset())
    waiting = waiting_for(context["team"], request.user) if request and permissions.REVIEW in may else Counter()
    groups = [
        [_entry(title, view, icon, here, waiting) for title, view, icon in group if GUARDED.get(view, "") in ("", *may)]
        for group in GROUPS
    ]
    more = [entry for group in groups for entry in group if not entry.in_the_bar]
    hidden = sum(count for view, count in waiting.items() if view not in IN_THE_BAR)
    return {
        "groups": groups,
        "more": more,
        "more_count": _short(hidden),
        "is_in_more": any(entry.is_current for entry in more),
    }


def _entry(title: str, view: str, icon: str, here: str, waiting: Counter[str]) -> Entry:
    url = reverse(view)
    return Entry(
        title=title,
        icon=icon,
        url=url,
        is_current=here == url if url == "/" else here.startswith(url),
        in_the_bar=view in IN_THE_BAR,
        count=_short(waiting[view]),
        waits=WAITS.get(view, ""),
    )


def _short(count: int) -> str:
    return f"{MOST}+" if count > MOST else str(count or "")


def waiting_for(team: Team, person: User) -> Counter[str]:
    """How much waits by view, each counted up to 100, in one query."""
    # Some pages are drawn after their transaction has ended, and the team was at work in that only.
    with nullcontext() if connection.in_atomic_block else team_transaction(team):
        judging, conflicts, held = (
            rows.order_by().values_list(Value(view, models.CharField()))[: MOST + 1]
            for view, rows in (
                ("review", to_judge(team, person, timezone.now())),
                ("conflicts", open_edges(team)),
                ("quarantine", Memory.objects.of(team).filter(status=Status.QUARANTINED)),
            )
        )
        return Counter(view for (view,) in judging.union(conflicts, held, all=True))
