"""What became of recalled memories: counters, streaks and confidence follow.

Every use counts as a use. The belief hears of a memory once a day from each voice, and feedback alone lifts it
no higher than the cap of the memory's trust: otherwise an agent could approve, or bury, by repetition.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import FieldError, Invalid
from memories import team_policy
from memories.confidence import Belief
from memories.models import Feedback, Memory, Recall, RecallHit

# Who speaks: the agent of the token that asked, else that token, else the agent that was asked for.
VOICE = Coalesce("recall__token__agent_id", "recall__token_id", "recall__agent_id")


@dataclass(frozen=True, slots=True)
class FeedbackItem:
    """What became of one hit: adopted or not, and how the task ended where that is known."""

    memory_id: str
    adopted: bool
    success: bool | None = None
    note: str = ""


@transaction.atomic
def give_feedback(*, team: Team, by: Actor, recall: Recall, items: list[FeedbackItem]) -> list[Feedback]:
    """Record feedback, once per recall and memory: a repeat replaces the earlier word, exactly.

    Counters change by differences under the memory's lock, so parallel calls add up. Raises `Invalid`
    for a memory that this recall did not hand out.
    """
    handed_out = {
        str(pk) for pk in RecallHit.objects.of(team).filter(recall=recall).values_list("memory_id", flat=True)
    }
    for index, item in enumerate(items):
        if item.memory_id not in handed_out:
            message = "was not handed out by this recall."
            raise Invalid(f"items.{index}.memory {message}", errors=(FieldError(f"items.{index}.memory", message),))
    # One writer per recall at a time: what stood before decides the difference.
    Recall.objects.of(team).select_for_update().get(pk=recall.pk)
    before = _told(team, recall)
    # Always in the same order, so that two recalls with the same memories cannot lock each other out.
    stored = [_store(team, recall, item) for item in sorted(items, key=lambda item: item.memory_id)]
    audit.record(
        team=team,
        by=by,
        verb="recall.feedback",
        on=recall,
        before=before,
        after=_told(team, recall),
        detail={"adopted": sum(f.adopted for f in stored), "of": len(stored)},
    )
    return stored


def _told(team: Team, recall: Recall) -> str:
    """The fingerprint of all that was said of a recall; empty before the first word."""
    said = Feedback.objects.of(team).filter(recall=recall).order_by("memory_id")
    rows = [[str(memory), *rest] for memory, *rest in said.values_list("memory_id", "adopted", "success", "note")]
    return audit.fingerprint({"feedback": rows}) if rows else ""


def _store(team: Team, recall: Recall, item: FeedbackItem) -> Feedback:
    # Locked first: no recall hands it out, and no other feedback counts or is believed, in between.
    memory = Memory.objects.of(team).select_for_update(no_key=True).get(pk=item.memory_id)
    key = {"team": team, "recall": recall, "memory_id": item.memory_id}
    feedback = Feedback.objects.of(team).filter(**key).first() or Feedback(**key, adopted=False)
    was, now = _counts(feedback.adopted, feedback.success), _counts(item.adopted, item.success)
    belief = Belief(memory.alpha, memory.beta)
    if was != now:
        belief = _believe(team, memory, feedback, was, now)
    feedback.adopted, feedback.success, feedback.note = item.adopted, item.success, item.note
    feedback.save()
    Memory.objects.of(team).filter(pk=memory.pk).update(
        alpha=belief.alpha,
        beta=belief.beta,
        confidence=belief.mean,
        reuse_count=Greatest(F("reuse_count") + now[0] - was[0], 0),
        reuse_success_count=Greatest(F("reuse_success_count") + now[1] - was[1], 0),
        unused_streak=_streak(team, item.memory_id),
    )
    return feedback


def _counts(adopted: bool, success: bool | None) -> tuple[int, int]:
    """(was used in a task whose end is known, that task succeeded) as 0 or 1."""
    judged = int(adopted and success is not None)
    return judged, judged * int(bool(success))


def _believe(team: Team, memory: Memory, feedback: Feedback, was: tuple[int, int], now: tuple[int, int]) -> Belief:
    """Take the earlier word of this recall back and hear the newer one, if it is the first of its voice and day."""
    belief, taken = Belief(memory.alpha, memory.beta), feedback.credit or 0.0
    if was[0] and taken:
        belief = belief.observe(success=bool(was[1]), times=-taken)
    feedback.credit = None
    if now[0] and not _heard(team, feedback):
        cap = team_policy.of(team).life.confidence_cap[memory.trust]
        feedback.credit = min(1.0, belief.room(cap)) if now[1] else 1.0
        belief = belief.observe(success=bool(now[1]), times=feedback.credit)
    return belief


def _heard(team: Team, feedback: Feedback) -> bool:
    """Whether another recall of the same voice and day (UTC) was counted for this memory already."""
    recall = feedback.recall
    midnight = recall.created_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    told = Feedback.objects.of(team).filter(memory_id=feedback.memory_id, adopted=True, success__isnull=False)
    told = told.filter(credit__isnull=False).exclude(recall=recall)
    told = told.filter(recall__created_at__gte=midnight, recall__created_at__lt=midnight + timedelta(days=1))
    return told.annotate(voice=VOICE).filter(voice=_voice(recall)).exists()


def _voice(recall: Recall) -> uuid.UUID | None:
    return (recall.token.agent_id or recall.token_id) if recall.token else recall.agent_id


def _streak(team: Team, memory_id: str) -> int:
    """How often in a row it was handed out since it was last adopted, however late that was told."""
    hits = RecallHit.objects.of(team).filter(memory_id=memory_id)
    adopted = Feedback.objects.of(team).filter(memory_id=memory_id, adopted=True)
    last = adopted.order_by("-recall_id").values_list("recall_id", flat=True).first()
    return (hits.filter(recall_id__gt=last) if last else hits).count()  # ids of recalls sort by time
