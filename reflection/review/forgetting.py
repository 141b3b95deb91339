"""What reviewers wrote about a memory goes when it is forgotten: their notes quote it, their edits are its words."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from hindsight_site.accounts.models import Team
from reflection.models import ReviewItem, Verdict

WORDED = ~Q(content="") | ~Q(note="")


def forget_words(*, team: Team, ids: Sequence[uuid.UUID], **_: Any) -> None:
    """Empty the notes and edits of the verdicts on these memories; what was decided stays."""
    verdicts_on(team, ids).filter(WORDED).update(content="", note="")


def verdicts_on(team: Team, ids: Any) -> QuerySet[Verdict]:
    """The verdicts on memories with these ids."""
    items = ReviewItem.objects.of(team).filter(memory_id__in=ids)
    return Verdict.objects.of(team).filter(item_id__in=items.values("pk"))
