"""Memories with a known answer: which a team has, and how often each reviewer finds it.

They are off unless a team switches them on. A verdict on one changes nothing about the memory, and how often
somebody was right is for them and for those who manage the team only.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db.models import Count, F, Q

from hindsight_site.accounts.models import Team
from memories.enums import DemoteReason, Status
from reflection.enums import BatchStatus, Decision, ItemState, Stratum
from reflection.models import ReviewItem, Verdict

# What is wrong whoever reads it: whether something is too trivial is a matter of taste.
WRONG = (DemoteReason.UNSUPPORTED, DemoteReason.WRONG)
POOL = 200  # the latest of each that are looked at
FEWEST_KNOWN = 10  # below this a catch rate says nothing


@dataclass(frozen=True, slots=True)
class Caught:
    """How many known answers one person met, and how many of them they gave."""

    reviewer: str
    met: int
    right: int

    @property
    def share(self) -> float:
        return self.right / self.met if self.met else 0.0

    @property
    def is_enough(self) -> bool:
        return self.met >= FEWEST_KNOWN


def known_answers(team: Team, wanted: int) -> dict[uuid.UUID, str]:
    """Return the answer (`enums.Decision`) by memory, of memories that people judged in weeks that are closed.

    Bad ones were demoted as unsupported or wrong and still are; good ones were approved, by two people or with a
    use that succeeded since, and nothing speaks against them. Empty when none are wanted.
    """
    if wanted <= 0:
        return {}
    judged = Verdict.objects.of(team).filter(
        undone_at=None, item__batch__status=BatchStatus.CLOSED, item__outcome=F("decision")
    )
    judged = judged.exclude(item__stratum=Stratum.CANARY).order_by("-created_at")
    bad = judged.filter(decision=Decision.DEMOTE, reason__in=WRONG, item__memory__status=Status.DEMOTED)
    good = judged.filter(
        Q(item__quorum__gt=1, item__state=ItemState.DECIDED) | Q(item__memory__reuse_success_count__gt=0),
        decision=Decision.APPROVE, item__memory__status=Status.ACTIVE, item__memory__needs_review=False,
    )  # fmt: skip
    answers = {}
    for decision, verdicts in ((Decision.APPROVE, good), (Decision.DEMOTE, bad)):
        answers |= {pk: str(decision) for pk in verdicts.values_list("item__memory_id", flat=True)[:POOL]}
    return answers


def caught_by(team: Team, reviewer_id: int | None = None) -> list[Caught]:
    """Return how reviewers did on the known answers, by name; of one person when `reviewer_id` is given.

    The caller sees to it that only the person themselves, or somebody who manages the team, is shown it.
    """
    verdicts = Verdict.objects.of(team).filter(item__stratum=Stratum.CANARY, undone_at=None, reviewer__isnull=False)
    verdicts = verdicts.exclude(decision=Decision.CANNOT_TELL)
    if reviewer_id is not None:
        verdicts = verdicts.filter(reviewer_id=reviewer_id)
    good = Q(decision=Decision.APPROVE, item__expected=Decision.APPROVE)
    # Whoever edits or hides a bad one has looked at it too.
    bad = ~Q(decision=Decision.APPROVE) & ~Q(item__expected=Decision.APPROVE)
    rows = verdicts.values_list("reviewer__email").annotate(met=Count("pk"), right=Count("pk", filter=good | bad))
    return [Caught(*row) for row in rows.order_by("reviewer__email")]


def keep_private(item: ReviewItem, *, is_own: bool, manages: bool) -> bool:
    """Whether a decided item has to hide its verdict from this reader: it would tell who found a known answer."""
    return item.stratum == Stratum.CANARY and not is_own and not manages
