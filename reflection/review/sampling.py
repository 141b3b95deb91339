"""The week's sample of a team: drawn once, the same whoever asks first."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from hindsight_site.accounts import audit, permissions
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Membership, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict
from memories import team_policy
from memories.enums import Tier
from memories.models import Memory, Revision
from memories.policies import LIVE
from memories.policy import Life
from memories.queries import unexpired
from reflection.announcing import batch_closed, batch_opened
from reflection.enums import BatchStatus, Decision, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.canaries import known_answers
from reflection.review.drawing import (
    LEAST_RANDOM,
    Drawn,
    digest,
    doubled,
    draw_random,
    mix,
    pick_canaries,
    pick_targeted,
    seed_of,
)
from reflection.review.settling import close_opinions
from reflection.review.turns import void_gone
from reflection.review.weeks import week_of

COVERED = timedelta(days=7)  # how far back the random stratum looks
SCHEDULE = audit.system("weekly sample")


@transaction.atomic
def open_batch(*, team: Team, by: Actor, at: datetime | None = None) -> ReviewBatch:
    """Return the batch of the week that `at` (default: now) falls into, drawing it at the first call.

    Two callers at once get the same batch. Raises `Conflict` (`nothing_to_review`) while the team has
    no memory to look at.
    """
    at = at or timezone.now()
    week = week_of(at, team.time_zone)
    standing = ReviewBatch.objects.of(team).filter(week=week.name).first()
    if standing is not None:
        return standing
    seed = seed_of(team.pk, week.name)
    drawn, population = _draw(team, seed, at)
    if not drawn:
        raise Conflict("There are no memories to review yet.", code="nothing_to_review")
    # The unique (team, week) makes a second caller wait here and find the first one's batch.
    batch, created = ReviewBatch.objects.of(team).get_or_create(
        team=team,
        week=week.name,
        defaults={"opens_at": at, "closes_at": week.ends, "seed": seed, "population": population},
    )
    if created:
        _add_items(team, batch, drawn)
        detail = {"week": week.name, "items": len(drawn), "seed": seed}
        audit.record(team=team, by=by, verb="batch.opened", on=batch, detail=detail)
        batch_opened(batch, len(drawn))
    return batch


def open_due(now: datetime) -> str:
    """Close the batches whose week is over, and open one for every team whose week has begun and has none.

    A week's batch opens on Monday at 06:00, the team's time, unless its policy says otherwise. It does not
    matter when in the week this runs, or whether earlier weeks were missed: the random stratum reaches back
    to the last batch. Teams without memories are passed over. Returns a line that says how many, such as
    "2 opened, 1 closed".
    """
    closed = close_due(now)
    opened = 0
    for team in Team.objects.filter(suspended_at=None).order_by("pk"):
        try:
            with team_transaction(team):
                review = team_policy.of(team).review
                week = week_of(now, team.time_zone, review.weekday, review.hour)
                if now < week.opens or ReviewBatch.objects.of(team).filter(week=week.name).exists():
                    continue
                open_batch(team=team, by=SCHEDULE, at=now)
                opened += 1
        except Conflict:
            continue
    return f"{opened} opened, {closed} closed"


def close_due(now: datetime) -> int:
    """Close every batch whose week is over. Returns how many.

    An opinion that no second one came to is carried out; what nobody decided stays so, and what two people
    differ on can still be settled.
    """
    closed = 0
    for team in Team.objects.order_by("pk"):
        with team_transaction(team):
            closed += sum(_close(team, batch, now) for batch in _overdue(team, now))
            for batch in ReviewBatch.objects.of(team).filter(status=BatchStatus.OPEN):
                void_gone(team, batch)  # an edit that waits for its second opinion must not outlive its memory
    return closed


def _overdue(team: Team, now: datetime) -> QuerySet[ReviewBatch]:
    return ReviewBatch.objects.of(team).filter(status=BatchStatus.OPEN, closes_at__lte=now).order_by("pk")


def _close(team: Team, batch: ReviewBatch, now: datetime) -> int:
    """Close one batch unless somebody was faster. Returns 1 or 0."""
    standing = ReviewBatch.objects.of(team).filter(pk=batch.pk, status=BatchStatus.OPEN)
    before = audit.state_of(batch)
    if standing.exists():
        void_gone(team, batch)
        close_opinions(team, batch, SCHEDULE)
    won = standing.update(status=BatchStatus.CLOSED, closed_at=now)
    if won:
        batch.status, batch.closed_at = BatchStatus.CLOSED, now
        audit.record(team=team, by=SCHEDULE, verb="batch.closed", on=batch, before=before)
        batch_closed(batch)
    return won


def reviewable(team: Team, at: datetime) -> QuerySet[Memory]:
    """The memories a person can be asked about: live, lasting, not expired."""
    live = Memory.objects.of(team).filter(unexpired(at), status__in=LIVE)
    return live.exclude(tier=Tier.WORKING)


def _judged(team: Team) -> Exists:
    """Condition on memories: somebody judged what it says now, in whatever week."""
    verdicts = Verdict.objects.of(team).filter(
        item__memory=OuterRef("pk"), memory_revision=OuterRef("revision"), undone_at=None
    )
    return Exists(verdicts.exclude(decision=Decision.CANNOT_TELL))


def _draw(team: Team, seed: str, at: datetime) -> tuple[list[Drawn], dict[str, Any]]:
    """Draw all strata; also how many could have been drawn, and the pools' digests to repeat it."""
    policy = team_policy.of(team)
    sizes = policy.review
    pools = _random_pools(team, at)
    random = draw_random(seed, pools, sizes.most_random)
    queues = _targeted_queues(team, at, policy.life)
    # As many as could be picked if the random stratum held the first of each queue already.
    heads = {
        stratum: list(queue.values_list("pk", flat=True)[: sizes.most_random + sizes.most_targeted])
        for stratum, queue in queues.items()
    }
    targeted = pick_targeted(heads, {one.memory_id for one in random}, sizes.most_targeted)
    taken = {one.memory_id for one in random + targeted}
    canaries = pick_canaries(seed, known_answers(team, sizes.canaries), taken, sizes.canaries)
    population: dict[str, Any] = {
        str(stratum): {"eligible": queue.count(), "drawn": sum(one.stratum == stratum for one in targeted)}
        for stratum, queue in queues.items()
    }
    population[str(Stratum.RANDOM)] = {
        "eligible": sum(map(len, pools)),
        "drawn": len(random),
        "this_week": min(len(pools[0]), len(random)),
        "pools": [{"eligible": len(pool), "digest": digest(pool)} for pool in pools],
    }
    if canaries:
        population[str(Stratum.CANARY)] = {"eligible": len(canaries), "drawn": len(canaries)}
    if sizes.overlap and _reviewers(team) > 1:
        random = doubled(seed, random, sizes.overlap)
        population[str(Stratum.RANDOM)]["for_two"] = sum(one.quorum > 1 for one in random)
    return mix(seed, random + targeted + canaries), population


def _reviewers(team: Team) -> int:
    """How many people may judge: with one alone nobody waits for a second."""
    roles = [role for role, may in permissions.ROLES.items() if permissions.REVIEW in may]
    return Membership.objects.of(team).filter(role__in=roles).count()


def _random_pools(team: Team, at: datetime) -> list[list[uuid.UUID]]:
    """What the week brought; for a quiet week also the older ones, those nobody judged yet first."""
    since = _since(team, at)
    changed = Revision.objects.of(team).filter(valid_until__gt=since, valid_until__lte=at)
    of_week = Q(created_at__gt=since) | Q(pk__in=changed.values("memory_id"))
    everything = reviewable(team, at).filter(created_at__lte=at)
    judged = _judged(team)
    week = list(everything.filter(of_week, ~judged).values_list("pk", flat=True))
    if len(week) >= LEAST_RANDOM:
        return [week]
    fresh = list(everything.filter(~judged).exclude(pk__in=week).values_list("pk", flat=True))
    return [week, fresh, list(everything.filter(judged).values_list("pk", flat=True))]


def _since(team: Team, at: datetime) -> datetime:
    """Seven days back, or back to the last batch when that is longer ago: a missed week is made up for."""
    last = ReviewBatch.objects.of(team).filter(opens_at__lt=at).order_by("-opens_at").first()
    return min(at - COVERED, last.opens_at) if last else at - COVERED


def _targeted_queues(team: Team, at: datetime, life: Life) -> dict[str, QuerySet[Memory]]:
    """The targeted strata, each with the most urgent memory first."""
    memories = reviewable(team, at)
    unjudged = memories.filter(~_judged(team))
    recalled = unjudged.filter(access_count__gt=0, approved_at=None)
    unsure = unjudged.filter(confidence__lt=life.low_confidence)
    return {
        Stratum.FLAGGED: memories.filter(needs_review=True).order_by("-access_count", "created_at", "pk"),
        Stratum.MOST_RECALLED: recalled.order_by("-access_count", "pk"),
        Stratum.LOW_CONFIDENCE: unsure.order_by("confidence", "pk"),
    }


def _add_items(team: Team, batch: ReviewBatch, drawn: list[Drawn]) -> None:
    ids = [one.memory_id for one in drawn]
    revisions = dict(Memory.objects.of(team).filter(pk__in=ids).values_list("pk", "revision"))
    ReviewItem.objects.bulk_create(
        ReviewItem(
            team=team,
            batch=batch,
            memory_id=one.memory_id,
            memory_revision=revisions[one.memory_id],
            stratum=one.stratum,
            inclusion_probability=one.probability,
            position=position,
            quorum=one.quorum,
            expected=one.expected,
        )
        for position, one in enumerate(drawn)
    )
