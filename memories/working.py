"""The working memory of a session, packed to a token budget: what matters most stays, not what came last."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hindsight_site.accounts.models import Agent, Team
from memories import queries
from memories.contents import cut
from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END
from memories.enums import Tier
from memories.importance import word_of
from memories.packing import token_estimate
from memories.policies import LIVE

MOST = 500  # items of one session that are looked at
LEAST_CHARS = 40  # an item is cut to what is left, but not to less than this


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of working memory. `revision` and `expires_at` are the memory's."""

    memory: uuid.UUID
    content: str
    importance: float
    created_at: datetime
    expires_at: datetime | None
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """What fits: the text for the prompt, the items in it in their order, and how many did not fit."""

    context: str
    items: list[Item]
    tokens: int
    left_out: int


def items_of(team: Team, agent: Agent | None, session_id: str) -> list[Item]:
    """The unexpired working memory of a session that the caller may see, the most important first."""
    visible = queries.visible(team, agent).filter(queries.unexpired(), session_id=session_id, tier=Tier.WORKING)
    rows = visible.filter(status__in=LIVE).order_by("-importance", "-created_at", "-pk")[:MOST]
    return [
        Item(row.pk, row.content, row.importance, row.created_at, row.expires_at, row.revision)
        for row in rows.only(
            "id", "content", "importance", "created_at", "expires_at", "revision", "scope__slug", "agent__slug"
        )
    ]


def pack(items: Sequence[Item], token_budget: int) -> Packed:
    """Pack items into `token_budget`, the most important first, of equal ones the newest.

    Strictly so: an item is left out only when everything less important is. The last one may be cut.
    """
    ordered = sorted(items, key=lambda item: (item.importance, item.created_at), reverse=True)
    left = token_budget - token_estimate(CONTEXT_BEGIN) - token_estimate(CONTEXT_END) - 2
    lines: list[str] = []
    for item in ordered:
        line = _line(item, left - 1)
        if line is None:
            break
        lines.append(line)
        left -= token_estimate(line) + 1
    context = "\n".join([CONTEXT_BEGIN, *lines, CONTEXT_END]) if lines else ""
    return Packed(context, ordered[: len(lines)], token_estimate(context), len(ordered) - len(lines))


def _line(item: Item, tokens: int) -> str | None:
    """The line of an item in at most `tokens`, cut when it must be; None when hardly anything would be left."""
    words = " ".join(item.content.split())
    line = f"- [{word_of(item.importance)}] {words}"
    if token_estimate(line) <= tokens:
        return line
    low, high = 0, len(words)
    while low < high:  # the longest cut that fits
        middle = (low + high + 1) // 2
        if token_estimate(f"- [{word_of(item.importance)}] {cut(words, middle)}") <= tokens:
            low = middle
        else:
            high = middle - 1
    if low < min(LEAST_CHARS, len(words)):
        return None
    return f"- [{word_of(item.importance)}] {cut(words, low)}"
