"""Whose turn it is: the order in which a person meets a batch's memories, and their claim on one.

Order and claim are the server's: two reviewers start at different ends and do not meet on one memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.enums import ActorKind
from hindsight_site.accounts.models import AuditEvent, Team, User
from memories.enums import Status
from reflection.enums import Decision, ItemState
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.drawing import rank

RULE = audit.system("review: the memory is gone")
CLAIM = timedelta(minutes=10)
MOST_SKIPS = 2  # after that the memory is left to somebody else
# Nothing is left to judge: forgotten, refused for good, or replaced by another memory.
GONE = (Status.FORGOTTEN, Status.REJECTED, Status.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Place:
    """One item of a batch as one reviewer meets it."""

    item: ReviewItem
    mine: Verdict | None  # this reviewer's standing verdict
    held: bool  # on a colleague's screen right now
    mine_to_do: bool  # this reviewer can be asked about it


@dataclass(frozen=True, slots=True)
class Turns:
    """A batch in one reviewer's order: what is decided in order of time, then what is to do."""

    places: tuple[Place, ...]

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

    def count(self, state: str) -> int:
        """Return how many items are in an `enums.ItemState`."""
        return sum(place.item.state == state for place in self.places)


def turns_of(team: Team, reviewer: User, batch: ReviewBatch, now: datetime | None = None) -> Turns:
    """Return the whole batch in this reviewer's order (four queries, however large the batch)."""
    now = now or timezone.now()
    void_gone(team, batch)
    items = list(ReviewItem.objects.of(team).filter(batch=batch).order_by("position"))
    verdicts = list(Verdict.objects.of(team).filter(item__batch=batch, undone_at=None).order_by("created_at", "pk"))
    authored = written_by(team, reviewer, [item.memory_id for item in items])
    return Turns(tuple(_arrange(batch.seed, reviewer, items, verdicts, authored, now)))


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
    mine = ReviewItem.objects.of(team).filter(pk=item.pk, claimed_by=reviewer, state=ItemState.PENDING)
    mine.update(claimed_until=timezone.now() + CLAIM)


def void_gone(team: Team, batch: ReviewBatch) -> int:
    """Mark undecided items whose memory has gone meanwhile; they are left out of the rates."""
    gone = ReviewItem.objects.of(team).filter(batch=batch, state=ItemState.PENDING, memory__status__in=GONE)
    return sum(_void(team, item) for item in gone.order_by("pk"))


def _void(team: Team, item: ReviewItem) -> int:
    """Void one item unless somebody was faster. Returns 1 or 0."""
    before = audit.state_of(item)
    ends = {"state": ItemState.VOID, "claimed_by": None, "claimed_until": None}
    won = ReviewItem.objects.of(team).filter(pk=item.pk, state=ItemState.PENDING).update(**ends)
    if won:
        for name, value in ends.items():
            setattr(item, name, value)
        audit.record(team=team, by=RULE, verb="review.voided", on=item, before=before)
    return won


def written_by(team: Team, person: User, memory_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these memories this person wrote by hand: they cannot judge them."""
    written = AuditEvent.objects.of(team).filter(
        object_type="memory",
        object_id__in=[str(ident) for ident in memory_ids],
        verb="memory.remembered",
        actor_kind=ActorKind.PERSON,
        actor_id=str(person.pk),
    )
    return {uuid.UUID(ident) for ident in written.values_list("object_id", flat=True)}


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
    mine = {verdict.item_id: verdict for verdict in verdicts if verdict.reviewer_id == reviewer.pk}
    decided_at = {v.item_id: at for at, v in enumerate(verdicts) if v.decision != Decision.CANNOT_TELL}

    def place(item: ReviewItem) -> Place:
        held = item.claimed_by_id not in (None, reviewer.pk) and bool(item.claimed_until and item.claimed_until > now)
        waiting = item.state == ItemState.PENDING
        able = item.memory_id not in authored and skips(mine.get(item.pk)) < MOST_SKIPS
        return Place(item, mine.get(item.pk), held=waiting and held, mine_to_do=waiting and able)

    def order(one: Place) -> tuple[int, int, bytes]:
        if one.item.state != ItemState.PENDING:
            return 0, decided_at.get(one.item.pk, -1), b""
        return 1 if one.mine_to_do else 2, skips(one.mine), rank(seed, reviewer.pk, one.item.pk)

    return sorted((place(item) for item in items), key=order)
