"""Whose turn it is: the order in which a person meets a batch's memories, and their claim on one.

Order and claim are the server's: two reviewers start at different ends and do not meet on one memory.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.enums import ActorKind
from hindsight_site.accounts.models import AuditEvent, Team, User
from memories.enums import Status
from reflection.enums import Decision, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.drawing import rank

RULE = audit.system("review: the memory is gone")
CLAIM = timedelta(minutes=10)
MOST_SKIPS = 2  # after that the memory is left to somebody else
UNDECIDED = (ItemState.PENDING, ItemState.CONFLICTED)
# Nothing is left to judge: forgotten, refused for good, or replaced by another memory.
GONE = (Status.FORGOTTEN, Status.REJECTED, Status.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Place:
    """One item of a batch as one reviewer meets it."""

    item: ReviewItem
    mine: Verdict | None  # this reviewer's standing opinion
    opinions: int  # how many judged it so far, this reviewer included
    held: bool  # on a colleague's screen right now
    mine_to_do: bool  # this reviewer can be asked about it
    is_own_work: bool  # this reviewer wrote the memory, or gave the answer that is known

    @property
    def is_judged(self) -> bool:
        """Whether nothing is left to do here for this reviewer: it is over, or it waits for somebody else only."""
        has_judged = self.mine is not None and self.mine.decision != Decision.CANNOT_TELL
        return self.item.state != ItemState.PENDING or has_judged


@dataclass(frozen=True, slots=True)
class Turns:
    """A batch in one reviewer's order: what is decided in order of time, then what is to do."""

    places: tuple[Place, ...]
    verdicts: tuple[Verdict, ...] = ()  # the standing ones, by time

    @property
    def next(self) -> ReviewItem | None:
        """The item to open next: to do, and on nobody else's screen."""
        return next((place.item for place in self.places if place.mine_to_do and not place.held), None)

    def index(self, item_id: uuid.UUID) -> int:
        """Return the 0-based place of an item."""
        return next(at for at, place in enumerate(self.places) if place.item.pk == item_id)

    def neighbours(self, item_id: uuid.UUID) -> tuple[ReviewItem | None, ReviewItem | None]:
        """Return the items before and after this one."""
        at = self.index(item_id)
        before = self.places[at - 1].item if at else None
        return before, self.places[at + 1].item if at + 1 < len(self.places) else None

    @property
    def judged(self) -> int:
        """How many items are over for this reviewer, void ones included."""
        return sum(place.is_judged for place in self.places)

    def count(self, state: str) -> int:
        """Return how many items are in an `enums.ItemState`."""
        return sum(place.item.state == state for place in self.places)


def turns_of(team: Team, reviewer: User, batch: ReviewBatch, now: datetime | None = None) -> Turns:
    """Return the whole batch in this reviewer's order (two queries, however large the batch)."""
    now = now or timezone.now()
    of_batch = ReviewItem.objects.of(team).filter(batch=batch).order_by("position")
    items = list(with_what_bars(team, reviewer, of_batch))
    for item in items:
        if item.is_gone and item.state in UNDECIDED:
            _void(team, item)
    verdicts = Verdict.objects.of(team).filter(item__batch=batch, undone_at=None).select_related("reviewer")
    verdicts = list(verdicts.order_by("created_at", "pk"))
    authored = {item.memory_id for item in items if item.is_written_by or item.is_known_to}
    return Turns(tuple(_arrange(batch.seed, reviewer, items, verdicts, authored, now)), tuple(verdicts))


def with_what_bars(team: Team, reviewer: User, items: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """The items, each with whether its memory is gone, and whether the reviewer wrote it or gave its known answer."""
    written = _writings(team, reviewer).filter(object_id=Cast(OuterRef("memory_id"), CharField()))
    judged = Verdict.objects.of(team).filter(reviewer=reviewer, item__memory=OuterRef("memory_id"), undone_at=None)
    return items.annotate(
        is_gone=Q(memory__status__in=GONE),
        is_written_by=Exists(written),
        is_known_to=Q(stratum=Stratum.CANARY) & Exists(judged.exclude(item__batch=OuterRef("batch"))),
    )


def next_item(team: Team, reviewer: User, batch: ReviewBatch) -> ReviewItem | None:
    """Return the item this reviewer should open next, or None: all done, or the rest is not theirs to do."""
    return turns_of(team, reviewer, batch).next


def claim(team: Team, reviewer: User, item: ReviewItem, now: datetime | None = None) -> bool:
    """Take an undecided item for ten minutes (again when it is theirs already). False: a colleague has it."""
    now = now or timezone.now()
    free = Q(claimed_by=None) | Q(claimed_until__lte=now) | Q(claimed_by=reviewer)
    waiting = ReviewItem.objects.of(team).filter(free, pk=item.pk, state=ItemState.PENDING)
    return bool(waiting.update(claimed_by=reviewer, claimed_until=now + CLAIM))


def take_next(team: Team, reviewer: User, batch: ReviewBatch) -> ReviewItem | None:
    """Claim the next item for this reviewer and return it; None when there is none for them now."""
    for place in turns_of(team, reviewer, batch).places:
        if place.mine_to_do and not place.held and claim(team, reviewer, place.item):
            return place.item
    return None


def renew_claim(team: Team, reviewer: User, item: ReviewItem) -> None:
    """Keep a claim alive while its holder is on the page. Opening a direct link claims nothing."""
    if item.claimed_by_id != reviewer.pk:
        return
    mine = ReviewItem.objects.of(team).filter(pk=item.pk, claimed_by=reviewer, state=ItemState.PENDING)
    mine.update(claimed_until=timezone.now() + CLAIM)


def void_gone(team: Team, batch: ReviewBatch) -> int:
    """Mark undecided items whose memory has gone meanwhile; they are left out of the rates."""
    gone = ReviewItem.objects.of(team).filter(batch=batch, state__in=UNDECIDED, memory__status__in=GONE)
    return sum(_void(team, item) for item in gone.order_by("pk"))


def _void(team: Team, item: ReviewItem) -> int:
    """Void one item unless somebody was faster. Returns 1 or 0."""
    before = audit.state_of(item)
    ends = {"state": ItemState.VOID, "claimed_by": None, "claimed_until": None}
    won = ReviewItem.objects.of(team).filter(pk=item.pk, state__in=UNDECIDED).update(**ends)
    if won:
        Verdict.objects.of(team).filter(item=item).update(content="")  # what it was to say goes with it
        for name, value in ends.items():
            setattr(item, name, value)
        audit.record(team=team, by=RULE, verb="review.voided", on=item, before=before)
    return won


def written_by(team: Team, person: User, memory_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these memories this person wrote by hand: they cannot judge them."""
    written = _writings(team, person).filter(object_id__in=[str(ident) for ident in memory_ids])
    return {uuid.UUID(ident) for ident in written.values_list("object_id", flat=True)}


def _writings(team: Team, person: User) -> QuerySet[AuditEvent]:
    """The events that tell what this person wrote by hand."""
    return AuditEvent.objects.of(team).filter(
        object_type="memory", verb="memory.remembered", actor_kind=ActorKind.PERSON, actor_id=str(person.pk)
    )


def skips(verdict: Verdict | None) -> int:
    """How often in a row this verdict's author could not tell."""
    is_skip = verdict is not None and verdict.decision == Decision.CANNOT_TELL
    return int(verdict.before.get("skips", 1)) if verdict is not None and is_skip else 0


def _arrange(
    seed: str,
    reviewer: User,
    items: Sequence[ReviewItem],
    verdicts: Sequence[Verdict],
    authored: Collection[uuid.UUID],
    now: datetime,
) -> list[Place]:
    """Decided items by time, then the open ones by hash(seed, reviewer, item): the skipped last."""
    mine = {v.item_id: v for v in verdicts if v.reviewer_id == reviewer.pk and not v.settles}
    judged_by = Counter(v.item_id for v in verdicts if v.decision != Decision.CANNOT_TELL and not v.settles)
    decided_at = {v.item_id: at for at, v in enumerate(verdicts) if v.decision != Decision.CANNOT_TELL}

    def place(item: ReviewItem) -> Place:
        held = item.claimed_by_id not in (None, reviewer.pk) and bool(item.claimed_until and item.claimed_until > now)
        waiting = item.state == ItemState.PENDING
        own = mine.get(item.pk)
        has_judged = own is not None and own.decision != Decision.CANNOT_TELL
        able = item.memory_id not in authored and not has_judged and skips(own) < MOST_SKIPS
        return Place(item, own, judged_by[item.pk], waiting and held, waiting and able, item.memory_id in authored)

    def order(one: Place) -> tuple[int, int, bytes]:
        if one.is_judged:
            return 0, decided_at.get(one.item.pk, -1), b""
        return 1 if one.mine_to_do else 2, skips(one.mine), rank(seed, reviewer.pk, one.item.pk)

    return sorted((place(item) for item in items), key=order)
