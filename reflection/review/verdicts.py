"""A verdict on a sampled memory: given once, carried out when it decides, undone while its week lasts.

Most items take one opinion, which is carried out at once. Those that were drawn for two wait for the second:
until then nothing about the memory changes, so that nobody can tell what the first one thought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team, User
from hindsight_site.refusals import Conflict, Forbidden
from memories.models import Memory
from memories.policies import LIVE
from memories.safety.masking import mask_text
from reflection.enums import BatchStatus, Decision, DemoteReason, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.carrying import carry_out, invalid, is_carried_out, put_back
from reflection.review.seconding import sayings
from reflection.review.standing import stand
from reflection.review.turns import CLAIM, skips, void_gone, written_by

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
    adds: bool = False  # beside a colleague's verdict that came first


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
    adds: bool = False,
) -> Verdict:
    """Store a verdict and carry it out: approve, demote, edit (revise and approve), hide, or let it wait.

    An item drawn for two people is carried out once both have judged it and agree; when they differ it waits to
    be settled. The same decision by the same reviewer twice is one verdict. `adds` keeps a verdict that came
    too late as a second opinion. Raises `Conflict` when somebody else decided first (`extra` says who, what and
    when), the memory changed or went, or the week is over; `Invalid` for a judgement that is none; `Forbidden`
    for a memory they wrote themselves.
    """
    judgement = Judgement(decision, version, reason, note, content, revision, adds)
    check_form(judgement)
    check_open(item.batch)
    check_judgeable(team, reviewer, item)
    return _decide(team, by, reviewer, item, judgement)


@transaction.atomic
def undo(*, team: Team, by: Actor, reviewer: User, item: ReviewItem) -> Verdict:
    """Take one's own verdict back and put the memory where it was. A second undo changes nothing.

    Raises `Conflict` when the week is over, there is nothing of theirs to undo, somebody settled it, or somebody
    changed the memory since.
    """
    fresh = locked(team, item)
    check_open(fresh.batch)
    before, was_pending = audit.state_of(fresh), fresh.state == ItemState.PENDING
    mine = Verdict.objects.of(team).filter(item=item, reviewer=reviewer)
    verdict = mine.order_by("-created_at", "-pk").first()
    if verdict is None:
        raise Conflict("You have not decided this one: there is nothing to undo.", code="nothing_to_undo")
    if verdict.undone_at is not None:
        return verdict
    if fresh.state == ItemState.RESOLVED and not verdict.settles:
        raise Conflict("It was settled since: whoever settled it can take that back first.", code="settled")
    verdict.undone_at, verdict.content = timezone.now(), ""
    verdict.save(update_fields=["undone_at", "content"])
    _move_back(team, by, reviewer, fresh, verdict)
    fresh.refresh_from_db()
    detail = {} if was_pending else {"decision": verdict.decision}  # the audit keeps the blind too
    audit.record(team=team, by=by, verb="review.undone", on=fresh, before=before, detail=detail)
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


def check_form(judgement: Judgement) -> None:
    """Raise `Invalid` for a judgement that is none."""
    if judgement.decision not in Decision.values:
        raise invalid("decision", f"must be one of: {', '.join(Decision.values)}.")
    if judgement.reason and judgement.decision != Decision.DEMOTE:
        raise invalid("reason", "belongs to a demotion.")
    if judgement.reason and judgement.reason not in DemoteReason.values:
        raise invalid("reason", f"must be one of: {', '.join(DemoteReason.values)}.")
    if len(judgement.note) > MAX_NOTE_CHARS:
        raise invalid("note", f"is over the limit of {MAX_NOTE_CHARS:,} characters.")
    if judgement.decision == Decision.EDIT and not (judgement.content or "").strip():
        raise invalid("content", "must not be empty.")


def check_judgeable(team: Team, reviewer: User, item: ReviewItem) -> None:
    """Raise when there is nothing left to judge, or the reviewer wrote it."""
    void_gone(team, item.batch)
    if ReviewItem.objects.of(team).filter(pk=item.pk, state=ItemState.VOID).exists():
        raise Conflict(
            "This memory is gone meanwhile: there is nothing left to judge. It is left out of the rates.",
            code="void",
        )
    if written_by(team, reviewer, [item.memory_id]):
        raise Forbidden("You wrote this memory yourself: somebody else has to judge it.", code="own_memory")


def locked(team: Team, item: ReviewItem) -> ReviewItem:
    """The item as it stands, held until the transaction ends.

    Its batch is read afterwards, when it is asked for: the week may have been closed while the item was waited for.
    """
    return ReviewItem.objects.of(team).select_for_update().get(pk=item.pk)


def opinions_on(team: Team, item: ReviewItem) -> list[Verdict]:
    """The standing opinions on an item in order of time: no "could not tell", and not what settled it."""
    standing = Verdict.objects.of(team).filter(item=item, undone_at=None, settles=False)
    return list(standing.exclude(decision=Decision.CANNOT_TELL).order_by("created_at", "pk"))


def move(team: Team, item: ReviewItem, state: str, outcome: str = "", claimed_by: User | None = None) -> None:
    """Put an item into a state; whoever saw the version before has to look again."""
    ReviewItem.objects.of(team).filter(pk=item.pk).update(
        state=state,
        outcome=outcome,
        version=F("version") + 1,
        claimed_by=claimed_by,
        claimed_until=timezone.now() + CLAIM if claimed_by else None,
    )


def new_verdict(
    team: Team, reviewer: User, item: ReviewItem, judgement: Judgement, memory: Memory, **more: Any
) -> Verdict:
    """Store a verdict that was not carried out yet."""
    return Verdict.objects.create(
        team=team,
        item=item,
        reviewer=reviewer,
        decision=judgement.decision,
        reason=judgement.reason,
        note=mask_text(judgement.note),
        content=mask_text(judgement.content or "") if judgement.decision == Decision.EDIT else "",
        memory_revision=memory.revision,
        **more,
    )


@transaction.atomic
def _decide(team: Team, by: Actor, reviewer: User, item: ReviewItem, judgement: Judgement) -> Verdict:
    fresh = locked(team, item)
    check_open(fresh.batch)
    before = audit.state_of(fresh)
    standing = Verdict.objects.of(team).filter(item=item, reviewer=reviewer, undone_at=None, settles=False).first()
    if not _may_take(fresh, standing, judgement):
        if standing is not None and standing.decision == judgement.decision:
            return standing
        raise too_late(team, reviewer, item)
    if standing is not None:  # an earlier "can't tell" gives way
        Verdict.objects.of(team).filter(pk=standing.pk).update(undone_at=timezone.now())
    memory = Memory.objects.of(team).get(pk=item.memory_id)
    if not judgement.adds and judgement.revision not in (None, memory.revision):
        message = "The memory was changed while you read it. Read it again before you decide."
        raise Conflict(message, code="memory_changed")
    if judgement.decision == Decision.CANNOT_TELL:
        kept = {"skips": skips(standing) + 1}
        verdict = new_verdict(team, reviewer, fresh, judgement, memory, before=kept)
        move(team, fresh, ItemState.PENDING)
    else:
        verdict = _judge(team, by, reviewer, fresh, memory, judgement)
    fresh.refresh_from_db()
    detail = {"decision": judgement.decision, "reason": judgement.reason, "week": fresh.batch.week}
    if fresh.state == ItemState.PENDING and judgement.decision != Decision.CANNOT_TELL:
        detail = {"week": fresh.batch.week, "waits_for": "a second opinion"}  # the audit keeps the blind too
    audit.record(team=team, by=by, verb="review.decided", on=fresh, before=before, detail=detail)
    return verdict


def _may_take(fresh: ReviewItem, standing: Verdict | None, judgement: Judgement) -> bool:
    """Whether the item still waits for this reviewer, as they saw it."""
    if judgement.adds:
        has_judged = standing is not None and standing.decision != Decision.CANNOT_TELL
        return fresh.state == ItemState.DECIDED and not has_judged and fresh.stratum != Stratum.CANARY
    if fresh.state != ItemState.PENDING:
        return False
    if standing is not None and standing.decision != Decision.CANNOT_TELL:
        return False
    # What moved an item for two meanwhile was the other's opinion, which must neither stop nor inform this one.
    is_older = fresh.quorum > 1 and standing is None and 0 < judgement.version < fresh.version
    return judgement.version == fresh.version or is_older


def _judge(team: Team, by: Actor, reviewer: User, item: ReviewItem, memory: Memory, judgement: Judgement) -> Verdict:
    """Store an opinion and do what the opinions together amount to."""
    others = opinions_on(team, item)
    if not judgement.adds:
        others = _on_these_words(team, others, memory)
    if judgement.decision == Decision.EDIT and judgement.content == memory.content:
        raise invalid("content", "is the same as before. Approve it as it is, or change it.")
    verdict = new_verdict(
        team, reviewer, item, judgement, memory,
        is_blind=_is_blind(team, reviewer, item, others), before={"revision": memory.revision},
    )  # fmt: skip
    state, outcome = stand(sayings([*others, verdict]), item.quorum)
    is_first = not any(is_carried_out(one) for one in others)
    hides = judgement.decision == Decision.SENSITIVE
    is_known_answer = item.stratum == Stratum.CANARY
    decides = state == ItemState.DECIDED and is_first and not is_known_answer
    # What is sensitive is hidden, a known answer too.
    if decides or (hides and (not is_known_answer or memory.status in LIVE)):
        carry_out(team, by, memory, verdict)
    move(team, item, state, outcome)
    return verdict


def _on_these_words(team: Team, opinions: Sequence[Verdict], memory: Memory) -> list[Verdict]:
    """The opinions on what the memory says now; those on earlier words give way and are asked for again."""
    return _without(team, opinions, [one for one in opinions if one.memory_revision != memory.revision])


def _not_of_those_words(team: Team, opinions: Sequence[Verdict], revision: int) -> list[Verdict]:
    """The opinions without those on the words that an edit had left: they go with it."""
    return _without(team, opinions, [one for one in opinions if one.memory_revision == revision])


def _without(team: Team, opinions: Sequence[Verdict], gone: Sequence[Verdict]) -> list[Verdict]:
    """Withdraw these opinions; returns the others."""
    Verdict.objects.of(team).filter(pk__in=[one.pk for one in gone]).update(undone_at=timezone.now(), content="")
    return [one for one in opinions if one not in gone]


def _is_blind(team: Team, reviewer: User, item: ReviewItem, others: Sequence[Verdict]) -> bool:
    """Whether this reviewer never saw the others' opinions: not after taking back one that had revealed them."""
    if not others:
        return True
    mine = Verdict.objects.of(team).filter(item=item, reviewer=reviewer, settles=False)
    seen = mine.filter(undone_at__gt=min(one.created_at for one in others))
    return not seen.exclude(decision=Decision.CANNOT_TELL).exists()


def _move_back(team: Team, by: Actor, reviewer: User, item: ReviewItem, verdict: Verdict) -> None:
    """Take back what `verdict`, undone just now, had brought about."""
    if verdict.settles:
        put_back(team, by, item, verdict)
        move(team, item, ItemState.CONFLICTED)
        return
    rest = opinions_on(team, item)
    if verdict.decision == Decision.EDIT and is_carried_out(verdict):
        rest = _not_of_those_words(team, rest, verdict.memory_revision)
    effect = next((one for one in rest if is_carried_out(one)), None)
    state, outcome = stand(sayings(rest), item.quorum)
    if effect is not None and state != ItemState.PENDING and not is_carried_out(verdict):
        move(team, item, state, outcome)  # the others' decision stands without this one
        return
    for one in (verdict, effect):
        if one is not None and is_carried_out(one):
            put_back(team, by, item, one)
    if effect is not None:
        effect.before = {"revision": effect.before["revision"]}
        effect.save(update_fields=["before"])
    # Putting words back makes a new revision of the same words: the opinions that stay are about it.
    number = Memory.objects.of(team).values_list("revision", flat=True).get(pk=item.memory_id)
    Verdict.objects.of(team).filter(pk__in=[one.pk for one in rest]).update(memory_revision=number)
    # Back to the top of their pile, and to nobody else for now.
    move(team, item, ItemState.PENDING, claimed_by=reviewer)


def too_late(team: Team, reviewer: User, item: ReviewItem) -> Conflict:
    """Say who decided, what and when."""
    standing = Verdict.objects.of(team).filter(item=item, undone_at=None).exclude(decision=Decision.CANNOT_TELL)
    if ReviewItem.objects.of(team).filter(pk=item.pk, state=ItemState.PENDING).exists():
        standing = standing.filter(reviewer=reviewer)  # what a colleague thinks is not told yet
    if item.stratum == Stratum.CANARY:
        standing = standing.filter(reviewer=reviewer)  # nor ever whether they found a known answer
    verdict = standing.select_related("reviewer").order_by("-settles", "created_at").first()
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
