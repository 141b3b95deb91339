"""Two colleagues of the demo person, and the part of the week's sample that they have judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts import audit, people
from hindsight_site.accounts.enums import TeamRole
from hindsight_site.accounts.models import Membership, Team, User
from hindsight_site.accounts.tenancy import enter_team, team_transaction
from hindsight_site.demo import BY
from hindsight_site.demo.knowing import STALE
from memories.enums import Kind
from reflection.enums import Decision, DemoteReason, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review import sampling, turns, verdicts

# Nobody can sign in as one of them: they have no password, and no mail reaches a name under .invalid.
COLLEAGUES = (("robin@demo.invalid", "Robin (demo)"), ("kim@demo.invalid", "Kim (demo)"))
APPROVED = 4  # the rest is left to whoever looks at the demo


@dataclass(frozen=True, slots=True)
class Judged:
    """The week's batch, and how far it is."""

    batch: ReviewBatch
    items: int
    decided: int
    differing: int
    half: int  # one opinion is there and a second one awaited


def add_colleagues(team: Team) -> list[User]:
    """Return the demo's reviewers, added to the team where they are missing."""
    return [_colleague(team, email, name) for email, name in COLLEAGUES]


@transaction.atomic
def _colleague(team: Team, email: str, name: str) -> User:
    user = User.objects.filter(email=email).first()
    if user is None:
        user = User.objects.create_user(email)
        people.change_person(person=user, name=name, time_zone="UTC", theme="")
    enter_team(team)
    if not Membership.objects.of(team).filter(user=user).exists():
        people.add(team=team, by=BY, person=user, role=TeamRole.REVIEWER)
    return user


def judge(team: Team) -> Judged:
    """Open the week's batch and let the colleagues judge part of it, once a week."""
    first, second = add_colleagues(team)
    with team_transaction(team):
        batch = sampling.open_batch(team=team, by=BY, at=timezone.now())
        if not Verdict.objects.of(team).filter(item__batch=batch, reviewer=first).exists():
            _demote_what_is_stale(team, batch, [first, second])
            _judge_alone(team, batch, first)
            _judge_together(team, batch, first, second)
        return _standing(team, batch, first)


def _judge_alone(team: Team, batch: ReviewBatch, reviewer: User) -> None:
    """What takes one person only: some of it is true and worth keeping, lessons first."""
    alone = [item for item in _waiting(team, batch) if item.quorum == 1]
    alone.sort(key=lambda item: item.memory.kind != Kind.EXPERIENCE)
    for item in alone[:APPROVED]:
        _decide(team, reviewer, item, Decision.APPROVE)


def _judge_together(team: Team, batch: ReviewBatch, first: User, second: User) -> None:
    """Of what was drawn for two: on one they differ, on another the second opinion is still to come."""
    both = [item for item in _waiting(team, batch) if item.quorum > 1]
    for item in both[:2]:
        _decide(team, first, item, Decision.APPROVE)
    for item in both[:1]:
        _decide(team, second, item, Decision.DEMOTE, reason=DemoteReason.TRIVIAL, note="We all know this by now.")


def _demote_what_is_stale(team: Team, batch: ReviewBatch, reviewers: Sequence[User]) -> None:
    """As many of them as the draw asked for."""
    for item in _waiting(team, batch):
        if item.memory.content == STALE:
            for reviewer in reviewers[: item.quorum]:
                _decide(team, reviewer, item, Decision.DEMOTE, reason=DemoteReason.WRONG, note="By mail since 2019.")


def _waiting(team: Team, batch: ReviewBatch) -> list[ReviewItem]:
    items = ReviewItem.objects.of(team).filter(batch=batch, stratum=Stratum.RANDOM, state=ItemState.PENDING)
    return list(items.filter(memory__needs_review=False).select_related("batch", "memory").order_by("position"))


def _decide(
    team: Team, reviewer: User, item: ReviewItem, decision: Decision, *, reason: str = "", note: str = ""
) -> None:
    item.refresh_from_db(fields=["version"])
    verdicts.decide(
        team=team, by=audit.person(reviewer), reviewer=reviewer, item=item, decision=decision, reason=reason,
        note=note, version=item.version,
    )  # fmt: skip


def _standing(team: Team, batch: ReviewBatch, reader: User) -> Judged:
    now = turns.turns_of(team, reader, batch)
    items = [place for place in now.places if place.item.state != ItemState.VOID]
    return Judged(
        batch=batch,
        items=len(items),
        decided=now.count(ItemState.DECIDED) + now.count(ItemState.RESOLVED),
        differing=now.count(ItemState.CONFLICTED),
        half=sum(place.opinions > 0 and place.item.state == ItemState.PENDING for place in items),
    )
