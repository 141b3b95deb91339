"""Reading what the metrics are made of: verdicts of many weeks, draws, edits, and what recalls handed out."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import TruncWeek

from hindsight_site.accounts.models import Team
from memories.models import Memory, RecallHit, Revision
from reflection.enums import ITEM_DONE, Decision, Stratum
from reflection.models import ReviewBatch, Verdict
from reflection.review.metrics import IN_THE_RATE, Judged, Opinion, weeks_until, words_changed
from reflection.review.statistics import Share, share

# What the rates can be split by and narrowed to: the memory's own column.
COLUMNS = {"kind": "kind", "agent": "agent__slug", "prompt": "prompt_version", "model": "model"}
MOST_EDITS = 500  # whose words are compared, the latest


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One value of one column, such as kind = fact. Empty `by`: all memories."""

    by: str = ""
    value: str = ""

    def on(self, memory: str) -> Q:
        """Return it as a condition; `memory` is the path to the memory, such as "item__memory__"."""
        if not self.by:
            return Q()
        column = memory + COLUMNS[self.by]
        same = Q(**{column: self.value})
        return same if self.value else same | Q(**{f"{column}__isnull": True})


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what a week brought was drawn. None where the draw did not keep it."""

    week: str
    produced: int | None
    drawn: int | None

    @property
    def share(self) -> float | None:
        return self.drawn / self.produced if self.produced and self.drawn is not None else None


@dataclass(frozen=True, slots=True)
class Served:
    """Of the memories that recalls handed out in one week: those that a person had approved."""

    week: str
    share: Share | None


def batches_of(team: Team, weeks: Sequence[str], now: datetime) -> list[ReviewBatch]:
    """The batches of these weeks that have ended, oldest first."""
    return list(ReviewBatch.objects.of(team).filter(week__in=weeks, closes_at__lte=now).order_by("week"))


def _standing(team: Team, batches: Sequence[ReviewBatch], narrowing: Narrowing) -> QuerySet[Verdict]:
    """The verdicts that decided something, in order of time."""
    verdicts = Verdict.objects.of(team).filter(item__batch__in=batches, undone_at=None)
    return (
        verdicts.filter(narrowing.on("item__memory__"))
        .exclude(decision=Decision.CANNOT_TELL)
        .select_related("item__memory__agent", "item__batch")
        .order_by("created_at", "pk")
    )


def verdicts_of(team: Team, batches: Sequence[ReviewBatch], narrowing: Narrowing) -> list[Verdict]:
    """The standing verdicts of these batches on all strata."""
    return list(_standing(team, batches, narrowing))


def judged_of(team: Team, verdicts: Sequence[Verdict]) -> list[Judged]:
    """What counts for each item of the random sample: the verdict that settled it, else the first one."""
    decisive = [one for one in decisive_of(verdicts) if one.item.stratum == Stratum.RANDOM]
    texts = _edits(team, [one for one in verdicts if one.decision == Decision.EDIT][-MOST_EDITS:])
    return [_judged(verdict, texts) for verdict in decisive]


def decisive_of(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Of each item that is done, the verdict that counts. What two people differ on has none until it is settled."""
    decisive: dict[uuid.UUID, Verdict] = {}
    for verdict in verdicts:
        if verdict.item.state in ITEM_DONE and (verdict.settles or verdict.item_id not in decisive):
            decisive[verdict.item_id] = verdict
    return list(decisive.values())


def weighed_of(verdicts: Sequence[Verdict]) -> list[tuple[bool, float]]:
    """Of each decided item of every stratum: whether it was accepted, and how likely it was to be drawn."""
    return [
        (one.decision == Decision.APPROVE, one.item.inclusion_probability)
        for one in decisive_of(verdicts)
        if one.decision in IN_THE_RATE and one.item.stratum != Stratum.CANARY
    ]


def _judged(verdict: Verdict, edits: dict[uuid.UUID, float]) -> Judged:
    memory, batch = verdict.item.memory, verdict.item.batch
    return Judged(
        week=batch.week,
        decision=verdict.decision,
        reason=verdict.reason,
        kind=memory.kind,
        agent=memory.agent.slug if memory.agent else "",
        prompt_version=memory.prompt_version,
        model=memory.model,
        lag=verdict.created_at - batch.opens_at,
        words_changed=edits.get(verdict.pk),
    )


def _edits(team: Team, verdicts: Sequence[Verdict]) -> dict[uuid.UUID, float]:
    """How much each edit changed, as far as both texts are still kept."""
    ids = [verdict.item.memory_id for verdict in verdicts]
    if not ids:
        return {}
    said = {
        (memory, number): content
        for memory, number, content in Revision.objects.of(team)
        .filter(memory__in=ids)
        .values_list("memory_id", "number", "content")
    }
    for memory in Memory.objects.of(team).filter(pk__in=ids):
        said[memory.pk, memory.revision] = memory.content
    changed = {}
    for verdict in verdicts:
        before = said.get((verdict.item.memory_id, verdict.before.get("revision")))
        after = said.get((verdict.item.memory_id, verdict.before.get("after", {}).get("revision")))
        if before and after:
            changed[verdict.pk] = words_changed(before, after)
    return changed


def opinions_of(verdicts: Sequence[Verdict]) -> list[Opinion]:
    """Who said what of which words, of the memories that were drawn for two people, as long as they judged blind.

    Verdicts of people who left the team are left out: who they were is gone.
    """
    return [
        Opinion(
            memory=verdict.item.memory_id,
            revision=verdict.before.get("revision", verdict.memory_revision),
            reviewer=verdict.reviewer_id,
            decision=verdict.decision,
            at=verdict.created_at,
            week=verdict.item.batch.week,
        )
        for verdict in verdicts
        if verdict.reviewer_id is not None and verdict.item.quorum > 1 and verdict.is_blind and not verdict.settles
    ]


def coverage_of(weeks: Sequence[str], batches: Sequence[ReviewBatch]) -> list[Coverage]:
    """How much of what each week brought was drawn into its random sample."""
    populations = {batch.week: batch.population.get(Stratum.RANDOM, {}) for batch in batches}
    return [_coverage(week, populations.get(week, {})) for week in weeks]


def _coverage(week: str, population: dict[str, Any]) -> Coverage:
    pools = population.get("pools") or [{}]
    return Coverage(week=week, produced=pools[0].get("eligible"), drawn=population.get("this_week"))


def served_of(team: Team, weeks: Sequence[str], today: date, narrowing: Narrowing) -> list[Served]:
    """By week of the team's clock: which share of what recalls handed out a person had approved by then.

    An approval that was taken back since does not count.
    """
    zone = ZoneInfo(team.time_zone)
    monday = today - timedelta(days=today.weekday())
    begins = datetime.combine(monday - timedelta(weeks=len(weeks)), time.min, zone)
    rows = (
        RecallHit.objects.of(team)
        .filter(narrowing.on("memory__"), recall__created_at__gte=begins)
        .filter(recall__created_at__lt=datetime.combine(monday, time.min, zone), recall__team_id=team.pk)
        .annotate(week=TruncWeek("recall__created_at", tzinfo=zone))
        .values_list("week")
        .annotate(n=Count("pk"), approved=Count("pk", filter=Q(memory__approved_at__lte=F("recall__created_at"))))
    )
    counted: dict[str, tuple[int, int]] = {}
    for week, n, approved in rows:
        year, number, _ = week.date().isocalendar()
        counted[f"{year}-W{number:02}"] = (approved, n)
    return [Served(week, share(*counted.get(week, (0, 0)))) for week in weeks]


def weeks_of(team: Team, now: datetime, count: int) -> tuple[list[str], date]:
    """Return the last `count` whole weeks by the team's clock, oldest first, and its day today."""
    today = now.astimezone(ZoneInfo(team.time_zone)).date()
    return weeks_until(today, count), today
