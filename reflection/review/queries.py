"""Reading the review: what the pages show of batches, people and one memory."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from hindsight_site.accounts.models import Team, User
from memories import indexing, scopes
from memories.embeddings import get_embedder
from memories.models import Evidence, Memory, MemoryVector, RecallHit, Revision
from reflection.enums import ITEM_DONE, BatchStatus, Decision, ItemState, Stratum
from reflection.forms import step_text
from reflection.models import ReviewBatch, ReviewItem, Step, Verdict
from reflection.review.statistics import PACE_WINDOW, Share, acceptance
from reflection.review.turns import MOST_SKIPS, with_what_bars

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


def outcomes_by_stratum(team: Team, batches: Collection[ReviewBatch]) -> dict[tuple[uuid.UUID, str], Outcomes]:
    """Return outcomes by (batch, stratum), in one query: one for each item, however many judged it.

    What two people differ on has none until it is settled; what nobody could tell counts as skipped.
    """
    skipped = Verdict.objects.of(team).filter(item=OuterRef("pk"), decision=Decision.CANNOT_TELL, undone_at=None)
    rows = (
        ReviewItem.objects.of(team)
        .filter(batch__in=batches)
        .exclude(state=ItemState.VOID, outcome="")
        .annotate(left=Exists(skipped))
        .values_list("batch", "stratum", "outcome", "left")
        .annotate(n=Count("pk"))
    )
    counts: dict[tuple[uuid.UUID, str], dict[str, int]] = {}
    for batch_id, stratum, outcome, left, n in rows:
        ended = outcome or (Decision.CANNOT_TELL if left else "")
        mine = counts.setdefault((batch_id, stratum), {})
        mine[ended] = mine.get(ended, 0) + n
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
    ended = {
        f"random_{decision}": Count("items", filter=Q(items__stratum=Stratum.RANDOM, items__outcome=decision))
        for decision in Decision.values
    }
    batches = (
        ReviewBatch.objects.of(team)
        .filter(closes_at__lte=before)
        .annotate(
            items_count=Count("items", filter=~Q(items__state=ItemState.VOID)),
            decided_count=Count("items", filter=Q(items__state__in=ITEM_DONE)),
            **ended,
        )
        .order_by("-closes_at")[:most]
    )
    return [
        BatchLine(
            batch=batch,
            items=batch.items_count,
            decided=batch.decided_count,
            random=outcomes_of({decision: getattr(batch, f"random_{decision}") for decision in Decision.values}),
        )
        for batch in batches
    ]


def pooled(lines: list[BatchLine]) -> Share | None:
    """The acceptance rate of several weeks together."""
    return sum((line.random for line in lines), Outcomes()).rate


def current_batch(team: Team, now: datetime) -> ReviewBatch | None:
    """The batch of the running week, if it was opened."""
    return ReviewBatch.objects.of(team).filter(closes_at__gt=now).order_by("closes_at").first()


def waiting_items(team: Team, now: datetime) -> QuerySet[ReviewItem]:
    """The sampled memories that wait for a decision this week."""
    items = ReviewItem.objects.of(team).filter(batch__status=BatchStatus.OPEN, batch__closes_at__gt=now)
    return items.filter(state=ItemState.PENDING)


def to_judge(team: Team, reviewer: User, now: datetime) -> QuerySet[ReviewItem]:
    """Those that still wait for this reviewer: what they could not tell once comes back to them, twice it does not.

    Never what they wrote themselves, or gave the known answer to.
    """
    over = ~Q(decision=Decision.CANNOT_TELL) | Q(before__skips__gte=MOST_SKIPS)
    mine = Verdict.objects.of(team).filter(over, item=OuterRef("pk"), reviewer=reviewer, undone_at=None)
    theirs = with_what_bars(team, reviewer, waiting_items(team, now).exclude(Exists(mine)))
    return theirs.exclude(is_written_by=True).exclude(is_known_to=True)  # type: ignore[misc]  # annotated there


def pace(team: Team, reviewer: User) -> list[datetime]:
    """When this reviewer gave their last 50 verdicts."""
    mine = Verdict.objects.of(team).filter(reviewer=reviewer).order_by("-created_at")
    return list(mine.values_list("created_at", flat=True)[:PACE_WINDOW])


def decided_by_person(verdicts: Iterable[Verdict]) -> list[tuple[str, int]]:
    """Who decided how many, by name: a division of work, not a ranking."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.settles or verdict.decision == Decision.CANNOT_TELL:
            continue
        name = str(verdict.reviewer or "Somebody who left the team")
        counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items(), key=lambda pair: pair[0].casefold())


def evidence_of(memory: Memory) -> list[dict[str, Any]]:
    """Return the quotes in the order of their traces, each with its step's text when that still exists."""
    step = Step.objects.of(memory.team).filter(pk=OuterRef("step_id"))
    said = step.values(parts=JSONObject(content="content", tool="tool", arguments="arguments"))
    rows = Evidence.objects.of(memory.team).filter(memory=memory).annotate(step_parts=Subquery(said))
    return [
        {"quote": row, "text": step_text(**row.step_parts) if row.step_parts else ""}
        for row in rows.order_by("trace_id", "step_sequence", "start")
    ]


def for_page(team: Team) -> QuerySet[ReviewItem]:
    """The items of a team with all that one query can bring: memory, vector, and the words that were drawn."""
    vector = MemoryVector.objects.of(team).filter(memory=OuterRef("memory_id"), model_id=get_embedder().model_id)
    drawn = Revision.objects.of(team).filter(memory=OuterRef("memory_id"), number=OuterRef("memory_revision"))
    return (
        ReviewItem.objects.of(team)
        .select_related("batch", "memory__scope__agent", "memory__agent", "claimed_by")
        .annotate(embedding=Subquery(vector.values("embedding")[:1]), drawn=Subquery(drawn.values("content")[:1]))
    )


def alike(item: ReviewItem, memory: Memory) -> list[Memory]:
    """Return up to three live memories that say nearly the same, nearest first, in reach of its readers.

    Of the same kind only: the episode a lesson was drawn from is near to it and no duplicate.
    """
    team, embedding = memory.team, item.embedding
    if embedding is None:
        return []
    reach = {memory.scope_id} | {scope.pk for scope in scopes.readable(team, memory.scope.agent)}
    hits = indexing.nearest(team, list(reach), np.asarray(embedding, dtype=np.float32), limit=3 * MOST_ALIKE + 1)
    near = [hit.memory_id for hit in hits if hit.memory_id != memory.pk and hit.cosine >= ALIKE]
    found = Memory.objects.of(team).filter(kind=memory.kind).select_related("scope").in_bulk(near)
    return [found[pk] for pk in near if pk in found][:MOST_ALIKE]


def recalls_of(memory: Memory) -> list[RecallHit]:
    """Return the last five recalls that handed this memory out."""
    hits = RecallHit.objects.of(memory.team).filter(memory=memory)
    return list(hits.select_related("recall__agent").order_by("-id")[:MOST_RECALLS])


def text_before(item: ReviewItem, verdict: Verdict) -> str | None:
    """What the memory said before this edit; None when the verdict is no edit, or it was forgotten."""
    if verdict.decision != Decision.EDIT:
        return None
    earlier = Revision.objects.of(item.team).filter(memory_id=item.memory_id, number=verdict.before["revision"])
    return earlier.values_list("content", flat=True).first()


def changed_since_drawn(item: ReviewItem) -> bool:
    """Whether the memory says something else now than when it was drawn; an undone edit is no change.

    `item` comes from `for_page`. A revision holds the words as they were before a change.
    """
    is_old = item.memory.revision != item.memory_revision
    return is_old and item.drawn is not None and item.drawn != item.memory.content


def standing_verdicts(team: Team, items: Collection[ReviewItem]) -> dict[uuid.UUID, list[Verdict]]:
    """Return each item's standing verdicts: what settled it first, then decisions by time, "could not tell" last."""
    verdicts = Verdict.objects.of(team).filter(item__in=items, undone_at=None).select_related("reviewer")
    standing: dict[uuid.UUID, list[Verdict]] = {}
    for verdict in in_weight(verdicts):
        standing.setdefault(verdict.item_id, []).append(verdict)
    return standing


def in_weight(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Put verdicts on one item in the order of what they count."""
    return sorted(verdicts, key=_weight)


def _weight(verdict: Verdict) -> tuple[bool, bool, datetime, uuid.UUID]:
    return not verdict.settles, verdict.decision == Decision.CANNOT_TELL, verdict.created_at, verdict.pk
