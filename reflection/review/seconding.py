"""Edits by one person that changed what a memory says: which of them a second person should look at.

Such an edit is carried out at once and counts as one. While its week is open somebody else confirms it (it is
right as it reads now) or contradicts it, and then it has to be settled like any disagreement. What nobody looks
at stands, as every opinion does that no second one came to.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.models import Team, User
from memories.models import Revision
from reflection.enums import BatchStatus, Decision, ItemState
from reflection.models import ReviewItem, Verdict
from reflection.review.carrying import is_carried_out
from reflection.review.edits import is_material
from reflection.review.standing import Said
from reflection.review.turns import written_by


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory that one person changed, the verdict that did, and what it said before."""

    item: ReviewItem
    verdict: Verdict
    text_before: str


def said(verdict: Verdict) -> Said:
    """What an opinion says, to compare it with another."""
    return Said(verdict.decision, verdict.content if verdict.decision == Decision.EDIT else "")


def sayings(opinions: Sequence[Verdict]) -> list[Said]:
    """What opinions on one item say, in their order. To approve the words that an edit left is to agree with it."""
    left = {one.memory_revision: said(one) for one in opinions if one.decision == Decision.EDIT and is_carried_out(one)}
    return [
        left.get(one.memory_revision, said(one)) if one.decision == Decision.APPROVE else said(one) for one in opinions
    ]


def waiting_for_a_second_look(team: Team, reader: User) -> list[Edited]:
    """The material edits of open weeks that nobody but their author judged, and that `reader` may, oldest first."""
    alone = _alone(team)
    mine = written_by(team, reader, [edit.item.memory_id for edit in alone]) if alone else set()
    return [one for one in alone if one.verdict.reviewer_id != reader.pk and one.item.memory_id not in mine]


def awaits(team: Team, reader: User, item: ReviewItem) -> Edited | None:
    """This item as one that `reader` should look at once more; None when it is none."""
    if item.outcome != Decision.EDIT or item.state != ItemState.DECIDED:
        return None
    return next((one for one in waiting_for_a_second_look(team, reader) if one.item.pk == item.pk), None)


def _alone(team: Team) -> list[Edited]:
    """Material edits that one person alone stands for (two queries)."""
    open_now = Q(item__batch__status=BatchStatus.OPEN, item__batch__closes_at__gt=timezone.now())
    ended = Q(item__state=ItemState.DECIDED, item__outcome=Decision.EDIT, item__quorum=1)
    verdicts = Verdict.objects.of(team).filter(open_now, ended, undone_at=None).exclude(decision=Decision.CANNOT_TELL)
    verdicts = verdicts.select_related("reviewer", "item__batch", "item__memory__scope").order_by("created_at", "pk")
    by_item: dict[uuid.UUID, list[Verdict]] = {}
    for verdict in verdicts:
        by_item.setdefault(verdict.item_id, []).append(verdict)
    edits = [one for (one, *more) in by_item.values() if not more and is_carried_out(one)]
    texts = texts_before(team, edits)
    found = [(one, texts.get((one.item.memory_id, one.before["revision"]))) for one in edits]
    return [
        Edited(one.item, one, text)
        for one, text in found
        # A later change of the memory is somebody else's word about it already.
        if text and one.memory_revision == one.item.memory.revision and is_material(text, one.item.memory.content)
    ]


def tell_texts_before(team: Team, opinions: Sequence[Verdict]) -> None:
    """Give each opinion `text_before`: what the memory said, for an edit that is carried out; else ""."""
    texts = texts_before(team, [one for one in opinions if one.decision == Decision.EDIT and is_carried_out(one)])
    for one in opinions:
        key = (one.item.memory_id, one.before.get("revision", 0))
        one.text_before = texts.get(key, "") if is_carried_out(one) else ""  # type: ignore[attr-defined]


def texts_before(team: Team, edits: Sequence[Verdict]) -> dict[tuple[uuid.UUID, int], str]:
    """What the memories said before these edits, by memory and revision."""
    if not edits:
        return {}
    wanted = Q()
    for one in edits:
        wanted |= Q(memory=one.item.memory_id, number=one.before["revision"])
    rows = Revision.objects.of(team).filter(wanted).values_list("memory_id", "number", "content")
    return {(memory, number): content for memory, number, content in rows}
