"""A batch as a table: its rows as one reader may see them, filtered and sorted, and as a sheet to take along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hindsight_site.accounts.models import Team, User
from reflection.enums import BatchStatus, Decision, ItemState
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review import queries
from reflection.review.canaries import keep_private

FILTERS = ("decision", "reason", "kind", "agent", "reviewer", "conflict")
SORTS = ("position", "memory", "decision", "stratum", "reviewer", "time")
NONE = "-"  # stands for "has none" in an address
NOBODY = "somebody who left"


@dataclass(frozen=True, slots=True)
class Line:
    """One item as its reader may see it. While it is blind, only their own verdict is in it."""

    item: ReviewItem
    verdicts: tuple[Verdict, ...]  # the one that counts first
    is_blind: bool
    mine: Verdict | None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that the table shows."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def decision(self) -> str:
        """What was decided (`enums.Decision`), or where it stands (`enums.ItemState`) while nothing was."""
        if self.item.state in (ItemState.VOID, ItemState.CONFLICTED):
            return self.item.state
        return self.verdict.decision if self.verdict else self.item.state

    @property
    def stratum(self) -> str:
        """Why it was drawn (`enums.Stratum`); empty while it is blind."""
        return "" if self.is_blind else self.item.stratum


def lines(team: Team, reader: User, batch: ReviewBatch, *, manages: bool) -> list[Line]:
    """Return all items of a batch in their order, each with what this reader may know (two queries)."""
    items = ReviewItem.objects.of(team).filter(batch=batch).select_related("batch", "memory__agent")
    items = items.order_by("position")
    standing = queries.standing_verdicts(team, items)
    is_open = batch.status == BatchStatus.OPEN
    return [_line(item, standing.get(item.pk, []), reader, is_open=is_open, manages=manages) for item in items]


def _line(item: ReviewItem, verdicts: Sequence[Verdict], reader: User, *, is_open: bool, manages: bool) -> Line:
    mine = next((one for one in verdicts if one.reviewer_id == reader.pk and not one.settles), None)
    is_blind = is_open and item.state == ItemState.PENDING
    if is_blind or keep_private(item, is_own=mine is not None, manages=manages):
        seen: Sequence[Verdict] = [mine] if mine is not None else []
        return Line(item, tuple(seen), is_blind=True, mine=mine)
    return Line(item, tuple(verdicts), is_blind=False, mine=mine)


def chosen_of(query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters and the order that an address asks for; what is not offered is left out."""
    chosen = {name: query.get(name, "").replace("\x00", "")[:100] for name in FILTERS}
    sort = query.get("sort", "")
    chosen["sort"] = sort if sort.removeprefix("-") in SORTS and sort != "position" else ""
    return chosen


def narrowed(rows: Iterable[Line], chosen: Mapping[str, str]) -> list[Line]:
    """Return the rows that pass every filter, in the chosen order."""
    passing = [row for row in rows if all(_PASSES[name](row, chosen[name]) for name in FILTERS if chosen[name])]
    sort = chosen["sort"]
    if sort:
        key = _KEYS[sort.removeprefix("-")]
        passing.sort(key=key, reverse=sort.startswith("-"))
        passing.sort(key=lambda row: key(row) in ("", None))  # what has no value stands last, both ways
    return passing


_PASSES: dict[str, Callable[[Line, str], bool]] = {
    "decision": lambda row, value: value == (row.item.state if value in ItemState.values else row.decision),
    "reason": lambda row, value: any((one.reason or NONE) == value for one in row.verdicts if one.decision == "demote"),
    "kind": lambda row, value: row.item.memory.kind == value,
    "agent": lambda row, value: (row.item.memory.agent.slug if row.item.memory.agent else NONE) == value,
    "reviewer": lambda row, value: any(str(one.reviewer_id) == value for one in row.verdicts),
    "conflict": lambda row, value: _CONFLICT[value](row) if value in _CONFLICT else True,
}
_CONFLICT: dict[str, Callable[[Line], bool]] = {
    "two": lambda row: row.item.quorum > 1 and not row.is_blind,
    "differ": lambda row: row.item.state == ItemState.CONFLICTED,
    "settled": lambda row: row.item.state == ItemState.RESOLVED,
}
_KEYS: dict[str, Callable[[Line], Any]] = {
    "position": lambda row: row.item.position,
    "memory": lambda row: row.item.memory.content.casefold(),
    "decision": lambda row: row.decision,
    "stratum": lambda row: row.stratum,
    "reviewer": lambda row: str(row.verdict.reviewer or NOBODY).casefold() if row.verdict else "",
    "time": lambda row: row.verdict.created_at.isoformat() if row.verdict else "",
}

COLUMNS = (
    "position", "item", "memory", "content", "kind", "agent", "stratum", "inclusion_probability", "state", "outcome",
    "decision", "reason", "note", "reviewer", "decided_at", "opinions",
)  # fmt: skip


def records(rows: Iterable[Line]) -> Iterator[dict[str, Any]]:
    """Each row as plain values under `COLUMNS`. `opinions` lists every verdict that the reader may see."""
    for row in rows:
        item, verdict = row.item, row.verdict
        yield {
            "position": item.position + 1,
            "item": str(item.pk),
            "memory": str(item.memory_id),
            "content": item.memory.content,
            "kind": item.memory.kind,
            "agent": item.memory.agent.slug if item.memory.agent else None,
            "stratum": row.stratum or None,
            "inclusion_probability": None if row.is_blind else item.inclusion_probability,
            "state": item.state,
            "outcome": None if row.is_blind else item.outcome or None,
            "decision": verdict.decision if verdict else None,
            "reason": verdict.reason or None if verdict else None,
            "note": verdict.note or None if verdict else None,
            "reviewer": str(verdict.reviewer or NOBODY) if verdict else None,
            "decided_at": verdict.created_at.isoformat() if verdict else None,
            "opinions": [
                {"decision": one.decision, "reason": one.reason or None, "reviewer": str(one.reviewer or NOBODY),
                 "settles": one.settles}
                for one in row.verdicts
            ],
        }  # fmt: skip


def csv_rows(rows: Iterable[Line]) -> Iterator[list[Any]]:
    """The records as rows of `COLUMNS`, the opinions in one cell."""
    for record in records(rows):
        said = "; ".join(f"{one['reviewer']}: {one['decision']}" for one in record["opinions"])
        yield [*(record[name] for name in COLUMNS[:-1]), said]


DECISIONS = [
    (ItemState.PENDING.value, "Not decided yet"),
    *Decision.choices,
    (ItemState.CONFLICTED.value, ItemState.CONFLICTED.label),
    (ItemState.VOID.value, "Void"),
]
CONFLICTS = [("two", "Judged by two"), ("differ", "They differ"), ("settled", "Settled")]
