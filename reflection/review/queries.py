"""Reading the review: what the pages show of batches, people and one memory."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Count, Q

from hindsight_site.accounts.models import Team, User
from memories import indexing, scopes
from memories.embeddings import get_embedder
from memories.models import Evidence, Memory, MemoryVector, RecallHit, Revision
from reflection.enums import BatchStatus, Decision, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Step, Verdict
from reflection.review.statistics import PACE_WINDOW, Share, acceptance

ALIKE = 0.6  # cosine from which another memory is worth a look beside this one
MOST_ALIKE = 3
MOST_RECALLS = 5


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many items ended how, by the standing verdicts."""

    approved: int = 0
    demoted: int = 0
    edited: int = 0
    skipped: int = 0
    sensitive: int = 0

    @property
    def rate(self) -> Share | None:
        """The acceptance rate; meaningful for the random stratum only."""
        return acceptance(approved=self.approved, demoted=self.demoted, edited=self.edited)

    @property
    def decided(self) -> int:
        return self.approved + self.demoted + self.edited + self.sensitive

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(
            self.approved + other.approved,
            self.demoted + other.demoted,
            self.edited + other.edited,
            self.skipped + other.skipped,
            self.sensitive + other.sensitive,
        )


def outcomes_of(counts: dict[str, int]) -> Outcomes:
    """Return the outcomes from counts by `enums.Decision`."""
    return Outcomes(
        approved=counts.get(Decision.APPROVE, 0),
        demoted=counts.get(Decision.DEMOTE, 0),
        edited=counts.get(Decision.EDIT, 0),
        skipped=counts.get(Decision.CANNOT_TELL, 0),
        sensitive=counts.get(Decision.SENSITIVE, 0),
    )


def outcomes_by_stratum(
    team: Team, batches: Collection[ReviewBatch]
) -> dict[tuple[uuid.UUID, str], Outcomes]:
    """Return outcomes by (batch, stratum), in one query."""
    rows = (
        Verdict.objects.of(team)
        .filter(item__batch__in=batches, undone_at=None)
        .values_list("item__batch", "item__stratum", "decision")
        .annotate(n=Count("pk"))
    )
    counts: dict[tuple[uuid.UUID, str], dict[str, int]] = {}
    for batch_id, stratum, decision, n in rows:
        counts.setdefault((batch_id, stratum), {})[decision] = n
    return {key: outcomes_of(by_decision) for key, by_decision in counts.items()}


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One batch in the table of past weeks."""

    batch: ReviewBatch
    items: int
    decided: int
    random: Outcomes


def batch_lines(team: Team, before: datetime, most: int = 12) -> list[BatchLine]:
    """Return the latest batches that ended by `before`, newest first."""
    batches = list(
        ReviewBatch.objects.of(team)
        .filter(closes_at__lte=before)
        .annotate(
            items_count=Count("items", filter=~Q(items__state=ItemState.VOID)),
            decided_count=Count("items", filter=Q(items__state=ItemState.DECIDED)),
        )
        .order_by("-closes_at")[:most]
    )
    outcomes = outcomes_by_stratum(team, batches)
    return [
        BatchLine(
            batch=batch,
            items=batch.items_count,
            decided=batch.decided_count,
            random=outcomes.get((batch.pk, Stratum.RANDOM), Outcomes()),
        )
        for batch in batches
    ]


def pooled(lines: list[BatchLine]) -> Share | None:
    """The acceptance rate of several weeks together."""
    return sum((line.random for line in lines), Outcomes()).rate


def current_batch(team: Team, now: datetime) -> ReviewBatch | None:
    """The batch of the running week, if it was opened."""
    return ReviewBatch.objects.of(team).filter(closes_at__gt=now).order_by("closes_at").first()


def open_count(team: Team, now: datetime) -> int:
    """How many sampled memories wait for a decision this week: the number in the navigation."""
    return (
        ReviewItem.objects.of(team)
        .filter(batch__status=BatchStatus.OPEN, batch__closes_at__gt=now, state=ItemState.PENDING)
        .count()
    )


def pace(team: Team, reviewer: User) -> list[datetime]:
    """When this reviewer gave their last 50 verdicts."""
    mine = Verdict.objects.of(team).filter(reviewer=reviewer).order_by("-created_at")
    return list(mine.values_list("created_at", flat=True)[:PACE_WINDOW])


def decided_by_person(team: Team, batch: ReviewBatch) -> list[tuple[str, int]]:
    """Who decided how many, by name: a division of work, not a ranking."""
    verdicts = (
        Verdict.objects.of(team)
        .filter(item__batch=batch, undone_at=None)
        .exclude(decision=Decision.CANNOT_TELL)
        .select_related("reviewer")
    )
    counts: dict[str, int] = {}
    for verdict in verdicts:
        name = str(verdict.reviewer or "Somebody who left the team")
        counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items(), key=lambda pair: pair[0].casefold())


def evidence_of(memory: Memory) -> list[dict[str, Any]]:
    """Return the quotes in the order of their traces, each with its step's text when that still exists."""
    rows = list(
        Evidence.objects.of(memory.team).filter(memory=memory).order_by("trace_id", "step_sequence", "start")
    )
    steps = Step.objects.of(memory.team).in_bulk([row.step_id for row in rows if row.step_id])
    return [{"quote": row, "text": steps[row.step_id].text if row.step_id in steps else ""} for row in rows]


def alike(memory: Memory) -> list[Memory]:
    """Return up to three live memories that say nearly the same, nearest first, in reach of its readers.

    Of the same kind only: the episode a lesson was drawn from is near to it and no duplicate.
    """
    team = memory.team
    vector = MemoryVector.objects.of(team).filter(memory=memory, model_id=get_embedder().model_id).first()
    if vector is None:
        return []
    reach = {memory.scope_id} | {scope.pk for scope in scopes.readable(team, memory.scope.agent)}
    hits = indexing.nearest(
        team, list(reach), np.asarray(vector.embedding, dtype=np.float32), limit=3 * MOST_ALIKE + 1
    )
    near = [hit.memory_id for hit in hits if hit.memory_id != memory.pk and hit.cosine >= ALIKE]
    found = Memory.objects.of(team).filter(kind=memory.kind).select_related("scope").in_bulk(near)
    return [found[pk] for pk in near if pk in found][:MOST_ALIKE]


def recalls_of(memory: Memory) -> list[RecallHit]:
    """Return the last five recalls that handed this memory out."""
    hits = RecallHit.objects.of(memory.team).filter(memory=memory)
    return list(hits.select_related("recall__agent").order_by("-id")[:MOST_RECALLS])


def text_before(verdict: Verdict) -> str | None:
    """What the memory said before this edit; None when the verdict is no edit, or it was forgotten."""
    if verdict.decision != Decision.EDIT:
        return None
    earlier = Revision.objects.of(verdict.team).filter(
        memory_id=verdict.item.memory_id, number=verdict.before["revision"]
    )
    return earlier.values_list("content", flat=True).first()


def changed_since_drawn(item: ReviewItem) -> bool:
    """Whether the memory says something else now than when it was drawn; an undone edit is no change."""
    if item.memory.revision == item.memory_revision:
        return False
    drawn = Revision.objects.of(item.team).filter(memory=item.memory, number=item.memory_revision).first()
    return drawn is not None and drawn.content != item.memory.content


def standing_verdicts(team: Team, items: Collection[ReviewItem]) -> dict[uuid.UUID, Verdict]:
    """Return each item's first standing verdict, a decision before a "could not tell"."""
    verdicts = Verdict.objects.of(team).filter(item__in=items, undone_at=None).select_related("reviewer")
    standing: dict[uuid.UUID, Verdict] = {}
    for verdict in verdicts.order_by("created_at"):
        kept = standing.get(verdict.item_id)
        if kept is None or kept.decision == Decision.CANNOT_TELL:
            standing[verdict.item_id] = verdict
    return standing


def batch_items(
    team: Team, batch: ReviewBatch, decision: str = "", kind: str = "", reviewer: str = ""
) -> list[dict[str, Any]]:
    """Return a batch's items in order, each with its standing verdict, narrowed by the filters.

    While the batch is open, what others could not tell about an undecided one is kept from its judges.
    """
    items = ReviewItem.objects.of(team).filter(batch=batch).select_related("memory").order_by("position")
    if kind:
        items = items.filter(memory__kind=kind)
    standing = standing_verdicts(team, items)
    is_blind = batch.status == BatchStatus.OPEN
    rows = [
        {
            "item": item,
            "verdict": None if is_blind and item.state == ItemState.PENDING else standing.get(item.pk),
        }
        for item in items
    ]
    return [row for row in rows if _passes(row, decision, reviewer)]


def _passes(row: dict[str, Any], decision: str, reviewer: str) -> bool:
    item, verdict = row["item"], row["verdict"]
    if decision in ItemState.values:
        decided_so = item.state == decision
    else:
        decided_so = not decision or (verdict is not None and verdict.decision == decision)
    return decided_so and (not reviewer or (verdict is not None and str(verdict.reviewer_id) == reviewer))
