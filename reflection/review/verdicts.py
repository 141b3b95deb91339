"""A verdict on a sampled memory: given once, carried out at once, undone while its week lasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team, User
from hindsight_site.refusals import Conflict, FieldError, Forbidden, Invalid
from memories import actions
from memories.actions.changing import GOVERNED, governed
from memories.enums import Status
from memories.models import Memory
from reflection.enums import BatchStatus, Decision, DemoteReason, ItemState
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.turns import CLAIM, skips, void_gone, written_by
from reflection.review.undoing import ChangedSince, state_to_put_back

MAX_NOTE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reviewer sends. `version` is the item's and `revision` the memory's as they saw them."""

    decision: str  # enums.Decision
    version: int
    reason: str = ""  # enums.DemoteReason, with a demotion
    note: str = ""
    content: str | None = None  # the new text, with an edit
    revision: int | None = None


def decide(
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
    """Store a verdict and carry it out: approve, demote, edit (revise and approve), hide, or let it wait.

    The same decision by the same reviewer twice is one verdict. Raises `Conflict` when somebody else
    decided first (`extra` says who, what and when), the memory changed or went, or the week is over;
    `Invalid` for a judgement that is none; `Forbidden` for a memory they wrote themselves.
    """
    judgement = Judgement(decision, version, reason, note, content, revision)
    _check_form(judgement)
    check_open(item.batch)
    void_gone(team, item.batch)
    if ReviewItem.objects.of(team).filter(pk=item.pk, state=ItemState.VOID).exists():
        raise Conflict(
            "This memory is gone meanwhile: there is nothing left to judge. It is left out of the rates.",
            code="void",
        )
    if written_by(team, reviewer, [item.memory_id]):
        raise Forbidden("You wrote this memory yourself: somebody else has to judge it.", code="own_memory")
    return _decide(team, by, reviewer, item, judgement)


@transaction.atomic
def undo(*, team: Team, by: Actor, reviewer: User, item: ReviewItem) -> Verdict:
    """Take one's own verdict back and put the memory where it was. A second undo changes nothing.

    Raises `Conflict` when the week is over, there is nothing of theirs to undo, or somebody changed the
    memory since.
    """
    check_open(item.batch)
    mine = Verdict.objects.of(team).filter(item=item, reviewer=reviewer)
    fresh = _locked(team, item)
    before = audit.state_of(fresh)
    verdict = mine.order_by("-created_at", "-pk").first()
    if verdict is None:
        raise Conflict("You have not decided this one: there is nothing to undo.", code="nothing_to_undo")
    if not mine.filter(pk=verdict.pk, undone_at=None).update(undone_at=timezone.now()):
        return verdict
    # Back to the top of their pile, and to nobody else for now.
    ReviewItem.objects.of(team).filter(pk=item.pk).update(
        state=ItemState.PENDING,
        version=F("version") + 1,
        claimed_by=reviewer,
        claimed_until=timezone.now() + CLAIM,
    )
    if verdict.decision != Decision.CANNOT_TELL:
        _put_back(team, by, item, verdict)
    fresh.refresh_from_db()
    detail = {"decision": verdict.decision}
    audit.record(team=team, by=by, verb="review.undone", on=fresh, before=before, detail=detail)
    verdict.refresh_from_db()
    return verdict


def is_open(batch: ReviewBatch) -> bool:
    """Whether verdicts can still be given and taken back."""
    return batch.status == BatchStatus.OPEN and timezone.now() < batch.closes_at


def check_open(batch: ReviewBatch) -> None:
    """Raise `Conflict` when the batch's week is over."""
    if not is_open(batch):
        raise Conflict(
            f"The review of {batch.week} is closed: its verdicts stand. "
            "Change the memory itself on its own page; its history shows both.",
            code="batch_closed",
        )


def _check_form(judgement: Judgement) -> None:
    if judgement.decision not in Decision.values:
        raise _invalid("decision", f"must be one of: {', '.join(Decision.values)}.")
    if judgement.reason and judgement.decision != Decision.DEMOTE:
        raise _invalid("reason", "belongs to a demotion.")
    if judgement.reason and judgement.reason not in DemoteReason.values:
        raise _invalid("reason", f"must be one of: {', '.join(DemoteReason.values)}.")
    if len(judgement.note) > MAX_NOTE_CHARS:
        raise _invalid("note", f"is over the limit of {MAX_NOTE_CHARS:,} characters.")
    if judgement.decision == Decision.EDIT and not (judgement.content or "").strip():
        raise _invalid("content", "must not be empty.")


@transaction.atomic
def _decide(team: Team, by: Actor, reviewer: User, item: ReviewItem, judgement: Judgement) -> Verdict:
    fresh = _locked(team, item)
    item_before = audit.state_of(fresh)
    taken = _take(team, item, judgement)
    standing = Verdict.objects.of(team).filter(item=item, reviewer=reviewer, undone_at=None).first()
    if not taken and standing is not None and standing.decision == judgement.decision:
        return standing
    if not taken:
        raise _too_late(team, reviewer, item)
    if standing is not None:  # an earlier "can't tell" gives way
        Verdict.objects.of(team).filter(pk=standing.pk).update(undone_at=timezone.now())
    memory = Memory.objects.of(team).get(pk=item.memory_id)
    if judgement.revision not in (None, memory.revision):
        message = "The memory was changed while you read it. Read it again before you decide."
        raise Conflict(message, code="memory_changed")
    if judgement.decision == Decision.CANNOT_TELL:
        before: dict[str, Any] = {"skips": skips(standing) + 1}
    else:
        before = {**governed(memory), "revision": memory.revision}
        _carry_out(team, by, memory, judgement)
        before["after"] = {**governed(memory), "revision": memory.revision}
    detail = {"decision": judgement.decision, "reason": judgement.reason, "week": item.batch.week}
    fresh.refresh_from_db()
    audit.record(team=team, by=by, verb="review.decided", on=fresh, before=item_before, detail=detail)
    return Verdict.objects.create(
        team=team,
        item=item,
        reviewer=reviewer,
        decision=judgement.decision,
        reason=judgement.reason,
        note=judgement.note,
        memory_revision=memory.revision,
        before=before,
    )


def _locked(team: Team, item: ReviewItem) -> ReviewItem:
    """The item as it stands, held until the transaction ends."""
    return ReviewItem.objects.of(team).select_for_update().get(pk=item.pk)


def _take(team: Team, item: ReviewItem, judgement: Judgement) -> bool:
    """Move the item on when it is still undecided at the version that the reviewer saw."""
    waits = judgement.decision == Decision.CANNOT_TELL
    seen = ReviewItem.objects.of(team).filter(pk=item.pk, version=judgement.version, state=ItemState.PENDING)
    return bool(
        seen.update(
            state=ItemState.PENDING if waits else ItemState.DECIDED,
            version=F("version") + 1,
            claimed_by=None,
            claimed_until=None,
        )
    )


def _carry_out(team: Team, by: Actor, memory: Memory, judgement: Judgement) -> None:
    if judgement.decision == Decision.SENSITIVE:
        reason = "flagged as sensitive in the review"
        actions.quarantine(team=team, by=by, memory=memory, reason=reason)
        return
    if judgement.decision == Decision.DEMOTE:
        actions.demote(team=team, by=by, memory=memory, reason=judgement.reason, note=judgement.note)
        return
    if judgement.decision == Decision.EDIT:
        revision = memory.revision
        reason = "edited in the review"
        actions.revise(team=team, by=by, memory=memory, content=judgement.content, reason=reason, keeps_support=True)
        if memory.revision == revision:
            raise _invalid("content", "is the same as before. Approve it as it is, or change it.")
        if memory.status == Status.QUARANTINED and not by.is_person:
            return  # a token's words that read like a planted instruction are not approved along
    actions.approve(team=team, by=by, memory=memory, note=judgement.note)


def _put_back(team: Team, by: Actor, item: ReviewItem, verdict: Verdict) -> None:
    memory = Memory.objects.of(team).get(pk=item.memory_id)
    before, after = verdict.before, verdict.before["after"]
    if memory.status == Status.FORGOTTEN:
        raise Conflict("The memory was forgotten since: there is nothing to put back.", code="forgotten")
    try:
        if memory.revision != after["revision"]:
            raise ChangedSince
        state = state_to_put_back({name: before[name] for name in GOVERNED}, after, governed(memory))
    except ChangedSince:
        raise Conflict(
            f"Somebody changed this memory after you decided ({memory.get_status_display().lower()}, "
            f"revision {memory.revision} now): an undo would take their change back too. "
            "Change the memory on its own page.",
            code="changed_since",
        ) from None
    if before["revision"] != after["revision"]:
        reason = "edit undone in the review"
        actions.rollback(team=team, by=by, memory=memory, to=before["revision"], reason=reason, keeps_support=True)
    actions.put_back(team=team, by=by, memory=memory, before=state)


def _too_late(team: Team, reviewer: User, item: ReviewItem) -> Conflict:
    """Say who decided, what and when."""
    standing = Verdict.objects.of(team).filter(item=item, undone_at=None).select_related("reviewer")
    verdict = standing.exclude(decision=Decision.CANNOT_TELL).order_by("created_at").first()
    if verdict is None:
        message = "This item moved on while you looked at it. Look again before you decide."
        return Conflict(message, code="item_changed")
    mine = verdict.reviewer_id == reviewer.pk
    who = "You" if mine else str(verdict.reviewer or "Somebody who left the team")
    first = " Undo that first to decide again." if mine else ""
    return Conflict(
        f"{who} decided this already: {verdict.get_decision_display().lower()}.{first}",
        code="already_decided",
        extra={
            "decided_by": who,
            "decision": verdict.decision,
            "decided_at": verdict.created_at.isoformat(),
        },
    )


def _invalid(field: str, message: str) -> Invalid:
    return Invalid(f"{field} {message}", errors=(FieldError(field, message),))
