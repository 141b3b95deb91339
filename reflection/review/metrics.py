"""How the judgements of many weeks add up: what the metrics page draws and its tables hold. Pure.

Everything about acceptance speaks of the random sample only; callers pass nothing else as `Judged`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher
from statistics import median

from reflection.enums import Decision
from reflection.review.statistics import FEWEST, Share, acceptance, cohens_kappa, p_chart, share

NO_REASON = ""  # a demotion that was saved without one
IN_THE_RATE = (Decision.APPROVE, Decision.DEMOTE, Decision.EDIT)


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict on one memory of the random sample. `lag` is counted from the opening of its batch."""

    week: str  # "2026-W49"
    decision: str  # enums.Decision, never "cannot tell"
    reason: str
    kind: str
    agent: str  # its slug; empty for the team's own
    prompt_version: str
    model: str  # empty: the rules distilled it, or somebody wrote it
    lag: timedelta
    words_changed: float | None = None  # of an edit: share of words, 0..1


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whose judgement of which words of a memory: to compare two people on the same thing."""

    memory: uuid.UUID
    revision: int
    reviewer: int
    decision: str
    at: datetime
    week: str


@dataclass(frozen=True, slots=True)
class WeekRate:
    """One week's acceptance. The limits are those of a p-chart for this week's n; None below 20 judgements."""

    week: str
    approved: int
    demoted: int
    edited: int
    sensitive: int
    rate: Share | None
    limit_low: float | None = None
    limit_high: float | None = None
    alert: str = ""  # which rule it breaks, in words; empty: none
    changes: tuple[str, ...] = ()  # what made its memories that did not make those of the week before


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two people judge the same thing. `kappa` is None where it is not defined or n is under 20."""

    n: int
    agreed: int
    rate: Share | None
    kappa: float | None

    @property
    def is_enough(self) -> bool:
        return self.n >= FEWEST


@dataclass(frozen=True, slots=True)
class Pace:
    """One week's edits and how long judgements took."""

    week: str
    edits: Share | None  # edited out of approved, demoted and edited
    words_changed: float | None  # median over its edits, 0..1
    lag_hours: float | None  # median from the opening of the batch to the verdict


@dataclass(frozen=True, slots=True)
class Part:
    """One value of what the rates are split by."""

    value: str
    approved: int
    demoted: int
    edited: int
    rate: Share | None


@dataclass(slots=True)
class _Tally:
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> Share | None:
        counts = self.counts
        return acceptance(
            approved=counts[Decision.APPROVE], demoted=counts[Decision.DEMOTE], edited=counts[Decision.EDIT]
        )


def weeks_until(today: date, count: int) -> list[str]:
    """Return the names of the `count` ISO weeks before the one that `today` lies in, oldest first."""
    monday = today - timedelta(days=today.weekday())
    names = []
    for back in range(count, 0, -1):
        year, number, _ = (monday - timedelta(weeks=back)).isocalendar()
        names.append(f"{year}-W{number:02}")
    return names


def weekly(weeks: Sequence[str], judged: Sequence[Judged]) -> list[WeekRate]:
    """Return every week's acceptance with its band, the p-chart's limits and what it says of the week.

    Weeks with fewer than 20 judgements in the rate have no limits, raise no alert and do not move the centre.
    """
    tallies = {week: _Tally(Counter(one.decision for one in judged if one.week == week)) for week in weeks}
    enough = [week for week in weeks if (rate := tallies[week].rate) is not None and rate.is_enough]
    rates = [tallies[week].rate for week in enough]
    points = dict(zip(enough, p_chart([(rate.hits, rate.n) for rate in rates if rate]), strict=True))
    changed = changes(weeks, judged)
    result = []
    for week in weeks:
        counts, rate, point = tallies[week].counts, tallies[week].rate, points.get(week)
        result.append(
            WeekRate(
                week=week,
                approved=counts[Decision.APPROVE],
                demoted=counts[Decision.DEMOTE],
                edited=counts[Decision.EDIT],
                sensitive=counts[Decision.SENSITIVE],
                rate=rate,
                limit_low=point.low if point else None,
                limit_high=point.high if point else None,
                alert=_rule(point.share, point.low, point.high) if point and point.alert else "",
                changes=changed.get(week, ()),
            )
        )
    return result


def _rule(share_: float, low: float, high: float) -> str:
    return "outside 3 sigma" if not low <= share_ <= high else "two of three weeks outside 2 sigma"


def changes(weeks: Sequence[str], judged: Sequence[Judged]) -> dict[str, tuple[str, ...]]:
    """Return by week which prompt versions and models made its memories that had not made any before.

    The first week with judgements is the start and no change.
    """
    found: dict[str, tuple[str, ...]] = {}
    known: set[tuple[str, str]] | None = None
    for week in weeks:
        mine = [one for one in judged if one.week == week]
        seen = {("prompt", one.prompt_version) for one in mine if one.prompt_version}
        seen |= {("model", one.model) for one in mine if one.model}
        if known is not None and (fresh := sorted(seen - known)):
            found[week] = tuple(f"{what} {name}" for what, name in fresh)
        known = (known or set()) | seen if mine or known is not None else None
    return found


def reasons(weeks: Sequence[str], judged: Sequence[Judged]) -> dict[str, Counter[str]]:
    """Return by week how many demotions gave which reason (`enums.DemoteReason`, or `NO_REASON`)."""
    counted: dict[str, Counter[str]] = {week: Counter() for week in weeks}
    for one in judged:
        if one.decision == Decision.DEMOTE and one.week in counted:
            counted[one.week][one.reason] += 1
    return counted


def pairs(opinions: Sequence[Opinion]) -> list[tuple[Opinion, Opinion]]:
    """Return the first two opinions of different people on the same words of a memory, in order of time."""
    first: dict[tuple[uuid.UUID, int], Opinion] = {}
    paired: dict[tuple[uuid.UUID, int], tuple[Opinion, Opinion]] = {}
    for one in sorted(opinions, key=lambda opinion: opinion.at):
        key = one.memory, one.revision
        if key not in first:
            first[key] = one
        elif key not in paired and first[key].reviewer != one.reviewer:
            paired[key] = first[key], one
    return list(paired.values())


def agreement(compared: Sequence[tuple[Opinion, Opinion]]) -> Agreement:
    """Return how often two people decided the same, and Cohen's kappa from 20 pairs on."""
    labels = [(one.decision, other.decision) for one, other in compared]
    agreed = sum(one == other for one, other in labels)
    kappa = cohens_kappa(labels) if len(labels) >= FEWEST else None
    return Agreement(n=len(labels), agreed=agreed, rate=share(agreed, len(labels)), kappa=kappa)


def paces(weeks: Sequence[str], judged: Sequence[Judged]) -> list[Pace]:
    """Return every week's edit rate, how much edits changed, and how long the judgements took."""
    result = []
    for week in weeks:
        mine = [one for one in judged if one.week == week]
        rated = [one for one in mine if one.decision in IN_THE_RATE]
        edited = [one for one in rated if one.decision == Decision.EDIT]
        distances = [one.words_changed for one in edited if one.words_changed is not None]
        result.append(
            Pace(
                week=week,
                edits=share(len(edited), len(rated)),
                words_changed=median(distances) if distances else None,
                lag_hours=median(one.lag.total_seconds() / 3600 for one in mine) if mine else None,
            )
        )
    return result


def split(judged: Sequence[Judged], by: Callable[[Judged], str]) -> list[Part]:
    """Return the acceptance of each value of `by`, the most judged first."""
    tallies: dict[str, _Tally] = {}
    for one in judged:
        tallies.setdefault(by(one), _Tally()).counts[one.decision] += 1
    parts = [
        Part(
            value=value,
            approved=tally.counts[Decision.APPROVE],
            demoted=tally.counts[Decision.DEMOTE],
            edited=tally.counts[Decision.EDIT],
            rate=tally.rate,
        )
        for value, tally in tallies.items()
    ]
    return sorted(parts, key=lambda part: (-(part.rate.n if part.rate else 0), part.value))


def together(counts: Mapping[str, Counter[str]]) -> list[tuple[str, int, float]]:
    """Return (reason, how many, share of all) over all weeks, the commonest first."""
    total = sum(counts.values(), Counter())
    commonest = sorted(total.items(), key=lambda row: (-row[1], row[0]))
    return [(reason, count, count / total.total()) for reason, count in commonest]


def words_changed(before: str, after: str) -> float:
    """Return how much of a text an edit changed: 1 − the share of words in common, 0..1.

    The ratio is that of `difflib.SequenceMatcher` over words: 2·matches / (words before + words after).
    """
    old, new = before.split(), after.split()
    return 1 - SequenceMatcher(None, old, new, autojunk=False).ratio() if old or new else 0.0
