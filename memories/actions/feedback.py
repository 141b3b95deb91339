"""What became of recalled memories: counters, streaks and confidence follow."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import FieldError, Invalid
from memories.models import Feedback, Memory, Recall, RecallHit


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

    Counters are changed by differences in the database, so parallel calls add up. Raises `Invalid`
    for a memory that this recall did not hand out.
    """
    handed_out = {
        str(pk) for pk in RecallHit.objects.of(team).filter(recall=recall).values_list("memory_id", flat=True)
    }
    for index, item in enumerate(items):
        if item.memory_id not in handed_out:
            message = "was not handed out by this recall."
            raise Invalid(
                f"items.{index}.memory {message}", errors=(FieldError(f"items.{index}.memory", message),)
            )
    # One writer per recall at a time: what stood before decides the difference.
    Recall.objects.of(team).select_for_update().get(pk=recall.pk)
    # Always in the same order, so that two recalls with the same memories cannot lock each other out.
    stored = [_store(team, recall, item) for item in sorted(items, key=lambda item: item.memory_id)]
    audit.record(
        team=team,
        by=by,
        verb="recall.feedback",
        on=recall,
        detail={"adopted": sum(f.adopted for f in stored), "of": len(stored)},
    )
    return stored


def _store(team: Team, recall: Recall, item: FeedbackItem) -> Feedback:
    key = {"team": team, "recall": recall, "memory_id": item.memory_id}
    standing = Feedback.objects.of(team).filter(**key).first()
    was = _counts(standing.adopted, standing.success) if standing else (0, 0)
    now = _counts(item.adopted, item.success)
    feedback = standing or Feedback(**key)
    feedback.adopted, feedback.success, feedback.note = item.adopted, item.success, item.note
    feedback.save()
    _count(team, item, judged=now[0] - was[0], succeeded=now[1] - was[1])
    return feedback


def _counts(adopted: bool, success: bool | None) -> tuple[int, int]:
    """(was used in a task whose end is known, that task succeeded) as 0 or 1."""
    judged = int(adopted and success is not None)
    return judged, judged * int(bool(success))


def _count(team: Team, item: FeedbackItem, *, judged: int, succeeded: int) -> None:
    alpha, beta = F("alpha") + succeeded, F("beta") + (judged - succeeded)
    # The streak grows when a memory is handed out (memories.recall) and ends when one is used.
    streak = {"unused_streak": 0} if item.adopted else {}
    Memory.objects.of(team).filter(pk=item.memory_id).update(
        alpha=alpha,
        beta=beta,
        confidence=alpha / (alpha + beta),
        reuse_count=Greatest(F("reuse_count") + judged, 0),
        reuse_success_count=Greatest(F("reuse_success_count") + succeeded, 0),
        **streak,
    )
