"""Pages of a list by cursor: newest first, stable while rows are added, no slower on long lists."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import QueryDict

PAGE_SIZE = 40


@dataclass(frozen=True)
class Page:
    """One page. `newer` and `older` are query strings of the neighbouring pages, empty at the ends."""

    rows: list[Any]
    newer: str
    older: str


def newest_first(rows: QuerySet, query: QueryDict, size: int = PAGE_SIZE) -> Page:
    """Return the page that `?before=` or `?after=` points at; without a cursor of ours, the first."""
    before, after = _read(query.get("before", "")), _read(query.get("after", ""))
    if after:
        found = list(rows.filter(_beyond(after, "gt")).order_by("created_at", "id")[: size + 1])
        page, more_newer, more_older = found[:size][::-1], len(found) > size, True
    else:
        older = rows.filter(_beyond(before, "lt")) if before else rows
        found = list(older.order_by("-created_at", "-id")[: size + 1])
        page, more_newer, more_older = found[:size], before is not None, len(found) > size
    return Page(
        rows=page,
        newer=_link(query, "after", page[0]) if page and more_newer else "",
        older=_link(query, "before", page[-1]) if page and more_older else "",
    )


def _beyond(cursor: tuple[datetime, uuid.UUID], side: str) -> Q:
    moment, ident = cursor
    # The first condition alone is what the index can use.
    return Q(**{f"created_at__{side}e": moment}) & (
        Q(**{f"created_at__{side}": moment}) | Q(**{"created_at": moment, f"id__{side}": ident})
    )


def _link(query: QueryDict, name: str, row: Any) -> str:
    changed = query.copy()
    for old in ("before", "after"):
        changed.pop(old, None)
    changed[name] = f"{row.created_at.isoformat()}_{row.pk.hex}"
    return f"?{changed.urlencode()}"


def _read(text: str) -> tuple[datetime, uuid.UUID] | None:
    moment, _, ident = text.partition("_")
    try:
        parsed, row = datetime.fromisoformat(moment), uuid.UUID(ident)
    except ValueError:
        return None
    return (parsed, row) if parsed.tzinfo else None
