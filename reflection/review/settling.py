"""Disagreements: who may end one, and ending it; what a closing week does with opinions that stayed alone."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import QuerySet

from hindsight_site.accounts import audit, permissions
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Membership, Team, User
from hindsight_site.refusals import Conflict, Forbidden, Refused
from memories.models import Memory
from reflection.enums import Decision, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.carrying import carry_out, invalid, is_carried_out, put_back
from reflection.review.seconding import said
from reflection.review.standing import stand
from reflection.review.verdicts import (
    Judgement,
    check_form,
    check_judgeable,
    is_open,
    locked,
    move,
    new_verdict,
    opinions_on,
    too_late,
)

log = logging.getLogger(__name__)


def disagreements(team: Team) -> QuerySet[ReviewItem]:
    """The items on which two people differ and that nobody settled yet, oldest first, of whatever week."""
    items = ReviewItem.objects.of(team).filter(state=ItemState.CONFLICTED)
    return items.select_related("batch", "memory__scope").order_by("batch__opens_at", "position")


def can_settle(membership: Membership, opinions: list[Verdict]) -> bool:
    """Whether this person may: a reviewer who is none of the two, or somebody who manages the team."""
    if permissions.can(membership, permissions.MANAGE):
        return True
    is_one = any(one.reviewer_id == membership.user_id for one in opinions)
    return permissions.can(membership, permissions.REVIEW) and not is_one


def settle(
    *,
    team: Team,
    by: Actor,
    reviewer: User,
    item: ReviewItem,
    decision: str,
    reason: str = "",
    note: str = "",
    content: str | None = None,
    version: int,
    revision: int | None = None,
) -> Verdict:
    """End a disagreement: what is decided here is carried out and counts, both opinions stay as they were given.

    It can be settled after its week too, but taken back only while the week lasts. Raises `Conflict` when it
    is settled already or changed, or nobody differs, `Forbidden` for one of the two who does not manage the team.
    """
    judgement = Judgement(decision, version, reason, note, content, revision)
    check_form(judgement)
    if decision == Decision.CANNOT_TELL:
        raise invalid("decision", "must be one that ends the disagreement. Leave it to somebody else.")
    check_judgeable(team, reviewer, item)
    if ReviewItem.objects.of(team).filter(pk=item.pk, state=ItemState.PENDING).exists():
        raise Conflict("Nobody differs on this one: there is nothing to settle.", code="nothing_to_settle")
    membership = Membership.objects.of(team).filter(user=reviewer).first()
    if membership is None or not can_settle(membership, opinions_on(team, item)):
        raise Forbidden(
            "You are one of the two who differ: a third person, an owner or an admin has to settle it.",
            code="one_of_the_two",
        )
    return _settle(team, by, reviewer, item, judgement)


@transaction.atomic
def _settle(team: Team, by: Actor, reviewer: User, item: ReviewItem, judgement: Judgement) -> Verdict:
    fresh = locked(team, item)
    before = audit.state_of(fresh)
    mine = Verdict.objects.of(team).filter(item=item, reviewer=reviewer, settles=True, undone_at=None).first()
    if mine is not None and mine.decision == judgement.decision:
        return mine
    if fresh.state != ItemState.CONFLICTED or fresh.version != judgement.version:
        raise too_late(team, reviewer, item)
    memory = Memory.objects.of(team).get(pk=item.memory_id)
    if judgement.revision not in (None, memory.revision):
        message = "The memory was changed while you read it. Read it again before you decide."
        raise Conflict(message, code="memory_changed")
    if judgement.decision == Decision.EDIT and judgement.content == memory.content:
        raise invalid("content", "is the same as before. Approve it as it is, or change it.")
    memory = _without_the_first(team, by, fresh, memory)
    verdict = new_verdict(team, reviewer, fresh, judgement, memory, settles=True, is_blind=False)
    carry_out(team, by, memory, verdict)
    move(team, fresh, ItemState.RESOLVED, judgement.decision)
    if not is_open(fresh.batch):
        Verdict.objects.of(team).filter(item=item).update(content="")
    fresh.refresh_from_db()
    detail = {"decision": judgement.decision, "reason": judgement.reason, "week": fresh.batch.week}
    audit.record(team=team, by=by, verb="review.settled", on=fresh, before=before, detail=detail)
    return verdict


def _without_the_first(team: Team, by: Actor, item: ReviewItem, memory: Memory) -> Memory:
    """The memory without what an opinion had done to it already, so that its belief counts the matter once.

    The words of an edit stay: they are what the page showed to whoever settles it.
    """
    for one in opinions_on(team, item):
        if is_carried_out(one) and one.decision != Decision.EDIT:
            try:
                with transaction.atomic():
                    put_back(team, by, item, one)
            except Conflict:
                continue  # somebody changed it since: what they did stays
            one.before = {"revision": one.before["revision"]}
            one.save(update_fields=["before"])
            memory.refresh_from_db()
    return memory


def close_opinions(team: Team, batch: ReviewBatch, by: Actor) -> int:
    """Carry out, at the end of a week, the opinions that no second one came to. Returns how many.

    They count for their items as any single verdict does; whose they are stays in the audit.
    """
    done = 0
    for item in ReviewItem.objects.of(team).filter(batch=batch, state=ItemState.PENDING).order_by("pk"):
        try:
            with transaction.atomic():
                done += _carry_out_alone(team, by, item)
        except Refused as refusal:
            log.warning("the opinion on item %s stays without effect: %s", item.pk, refusal.message)
    kept = Verdict.objects.of(team).filter(item__batch=batch).exclude(content="")
    kept.exclude(item__state=ItemState.CONFLICTED).update(content="")
    return done


def _carry_out_alone(team: Team, by: Actor, item: ReviewItem) -> int:
    fresh = locked(team, item)
    memory = Memory.objects.of(team).get(pk=item.memory_id)
    opinions = [one for one in opinions_on(team, fresh) if one.memory_revision == memory.revision]
    if not opinions or fresh.state != ItemState.PENDING:
        return 0
    before = audit.state_of(fresh)
    actor = audit.person(opinions[0].reviewer) if opinions[0].reviewer else by
    state, outcome = stand([said(opinions[0])], 1)
    if fresh.stratum != Stratum.CANARY:
        carry_out(team, actor, memory, opinions[0])
    move(team, fresh, state, outcome)
    fresh.refresh_from_db()
    detail = {"decision": outcome, "week": fresh.batch.week, "alone": True}
    audit.record(team=team, by=by, verb="review.decided", on=fresh, before=before, detail=detail)
    return 1
