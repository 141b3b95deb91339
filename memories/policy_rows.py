"""The rows of the policy table: one number each, as a person reads it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

ONE = {
    "minutes": "minute", "hours": "hour", "days": "day", "times": "time", "memories": "memory",
    "observations": "observation", "lessons": "lesson",
}  # fmt: skip
UNITS = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1), "days": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Row:
    """One number. `unit` is a duration's, or a word such as `times`; `low` and `high` are allowed themselves."""

    key: str
    label: str
    unit: str
    default: float
    low: float
    high: float
    help: str
    whole: bool = False
    choices: tuple[str, ...] = ()  # the words for 0, 1, 2 …

    def read(self, given: Any) -> float:
        """Return the number that was given as a number or as text. Raises `ValueError` that says what is wrong."""
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise ValueError("must be a number.")
        try:
            value = float(str(given).strip().replace("\u202f", "").replace(",", "."))
        except ValueError:
            raise ValueError(f"must be a number, such as {self.default:g}.") from None
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise ValueError(f"must be from {self.low:g} to {self.high:,.0f}{self.in_unit}." if self.high > 1
                             else f"must be from {self.low:g} to {self.high:g}.")  # fmt: skip
        if self.whole and value != int(value):
            raise ValueError("must be a whole number.")
        return int(value) if value == int(value) else value

    @property
    def in_unit(self) -> str:
        """The unit behind a number, with its blank."""
        return f" {self.unit}" if self.unit else ""

    def unit_of(self, value: float) -> str:
        """The unit as it reads behind `value`: 1 day, 2 days."""
        noun, blank, rest = self.unit.partition(" ")
        return ONE.get(noun, noun) + blank + rest if value == 1 else self.unit

    def amount(self, value: float) -> Any:
        """The number as the rules use it: a duration as timedelta."""
        if self.unit in UNITS:
            return value * UNITS[self.unit]
        return int(value) if self.whole else float(value)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that stand together on the page."""

    name: str
    title: str
    help: str
    rows: tuple[Row, ...]


def _days(key: str, label: str, default: float, text: str, low: float = 1) -> Row:
    return Row(key, label, "days", default, low, 3650, text)


def _share(key: str, label: str, default: float, text: str) -> Row:
    return Row(key, label, "", default, 0, 1, text)


def _count(key: str, label: str, unit: str, default: int, low: int, high: int, text: str) -> Row:
    return Row(key, label, unit, default, low, high, text, whole=True)


GROUPS = (
    Group("age", "Fading with age", "A hit is a recall that handed the memory out. Hits, another source that says "
          "the same, and a restore start the time anew, and lift what had faded.", (
        Row("life.working_ttl", "Working memory lives", "minutes", 60, 1, 43_200,
            "Unless it was written with a life of its own. Hidden at once, removed at the next sweep."),
        Row("life.transient_after", "A passing failure counts less after", "hours", 24, 1, 8760,
            "Time-outs, rate limits and network errors are seldom true the day after."),
        _share("life.transient_factor", "Passing failures: weight is multiplied by", 0.5, "1 switches this off."),
        _days("life.episodic_fade_after", "Episodes and lessons fade without a hit for", 30,
              "Episodic tier. Semantic memories never fade with age."),
        _share("life.episodic_fade_factor", "Faded episodes and lessons: weight is multiplied by", 0.5,
               "1 switches this off."),
        _days("life.episodic_archive_after", "Episodes are archived without a hit for", 60,
              "An archived memory is recalled on request only; one click restores it."),
        _days("life.episodic_delete_after", "Archived episodes are deleted for good after a further", 180,
              "The only rule that deletes. It spares what a person archived, and anything that is hit meanwhile."),
        _days("life.lesson_archive_after", "Lessons are archived unused for", 90,
              "Instead of the rule for episodes, and they are not deleted."),
        _days("life.fact_fade_after", "Facts, preferences and relations fade without a hit for", 90,
              "Instead of the rules for episodes; those with enough hits are spared."),
        _share("life.fact_fade_factor", "Faded facts: weight is multiplied by", 0.5, "1 switches this off."),
        _days("life.fact_archive_after", "Facts are archived without a hit for", 180,
              "Preferences and relations too. They are not deleted."),
        _count("life.fact_enough_hits", "Facts are spared once hit at least", "times", 3, 1, 1000,
               "Over their whole life."),
    )),
    Group("use", "What use says", "Judged by the feedback that agents give after a recall.", (
        _count("life.unused_streak", "A lesson counts less when recalled and not adopted", "times in a row", 5, 1, 1000,
               "Again at every multiple. The first adoption lifts it."),
        _share("life.unused_step", "Lessons left aside: weight goes down by", 0.1,
            "A recall of which no feedback says that it was adopted counts too. 0 switches this off."),
        _count("life.failing_uses", "A lesson is looked at when adopted at least", "times", 5, 1, 1000,
               "Since a person last judged it."),
        _share("life.failing_rate", "Lessons are failing with a success rate below", 0.3,
               "It goes into the next review batch."),
        _share("life.failing_factor", "Failing lessons: weight is multiplied by", 0.5,
               "Until judged. 1 leaves it as it is."),
        _share("life.least_confidence", "Archived with a confidence below", 0.3,
               "Confidence is the share of successes, confirmations and approvals among all observations."),
    )),
    Group("protection", "What is spared", "Pinned memories are never archived, evicted or deleted by a rule.", (
        _days("life.approved_exempt", "Approved memories are spared for", 90, "From a person's approval on.", low=0),
        _days("life.restored_exempt", "Restored memories are spared for", 30,
              "So that what a person brings back does not leave again within the hour.", low=0),
    )),
    Group("room", "Room in a scope", "When a scope is full, the memories with the lowest keeping score are archived: "
          "confidence, frequency and recency, each from 0 to 1, weighted as below.", (
        _count("life.capacity", "Live memories a scope holds", "memories", 10_000, 10, 1_000_000,
               "Archived ones do not count."),
        _share("life.keep_confidence", "Weight of confidence", 0.4, "The three add up to 1."),
        _share("life.keep_frequency", "Weight of frequency", 0.3, "Hits on a logarithmic scale; 100 hits are 1."),
        _share("life.keep_recency", "Weight of recency", 0.3, "Halves with every half-life since the last hit."),
        _days("life.keep_half_life", "Half-life of that recency", 30, "Days after which a hit counts half."),
    )),
    Group("entry", "Coming in",
          "How new memories are believed, merged and held back. Feedback alone lifts confidence to its cap below.", (
        _share("life.merge_cosine", "Merged when as similar as", 0.95,
               "Cosine of the embeddings; numbers, negations and identifiers must agree too."),
        Row("life.prior_strength", "A first estimate counts as", "observations", 2, 0.1, 100,
            "The larger, the slower feedback moves confidence."),
        _share("life.low_confidence", "Held back or sampled as unsure below", 0.5,
               "In scopes that hold back low confidence, and for the review's sample of unsure memories."),
        _share("life.confidence_cap.human", "Most a person's word starts with", 0.95, "Highest first confidence."),
        _share("life.confidence_cap.verified", "Most a verified outcome starts with", 0.9, "Highest first confidence."),
        _share("life.confidence_cap.agent", "Most an agent's conclusion starts with", 0.8, "Highest first confidence."),
        _share("life.confidence_cap.external", "Most third-party text starts with", 0.5, "Highest first confidence."),
    )),
    Group("ranking", "Ranking of recall", "score = weight × (relevance + recency + confidence, weighted) × heat.", (
        _share("ranking.relevance", "Weight of relevance", 0.5, "The three add up to 1."),
        _share("ranking.recency", "Weight of recency", 0.3, "Halves with every half-life of its tier."),
        _share("ranking.confidence", "Weight of confidence", 0.2, "How far the memory is to be believed."),
        Row("ranking.half_life.working", "Half-life of working memory", "hours", 1, 0.1, 8760,
            "Age at which recency is half."),
        Row("ranking.half_life.episodic", "Half-life of episodic memory", "days", 7, 0.1, 3650,
            "Age at which recency is half."),
        Row("ranking.half_life.semantic", "Half-life of semantic memory", "days", 0, 0, 3650, "0: it does not age."),
        _share("ranking.heat_step", "Heat for hits", 0.05, "heat = 1 + this · ln(1 + hits). 0 switches it off."),
        Row("ranking.heat_cap", "Most heat", "", 1.2, 1, 3, "So that what is popular does not drown the rest."),
        _count("ranking.most_lessons", "Lessons in one answer, at most", "lessons", 3, 1, 50,
               "Unless only lessons are asked for."),
    )),
    Group("review", "Weekly review", "Times are the team's, see its settings.", (
        Row("review.weekday", "Sample drawn on", "", 0, 0, 6, "A week ends on Sunday night, whatever the day.",
            whole=True, choices=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")),
        _count("review.hour", "At this hour", "o'clock", 6, 0, 23, "0 is midnight."),
        _count("review.most_random", "Random memories, at most", "memories", 30, 20, 200,
               "They alone give the acceptance rate: below 20 it says nothing."),
        _count("review.most_targeted", "Targeted memories, at most", "memories", 10, 0, 100,
               "Flagged ones come first."),
        _share("review.overlap", "Judged by two people", 0.2,
               "The share of the random memories that a second person judges without seeing the first verdict. "
               "They tell how far two people agree; 0 switches it off."),
        _count("review.canaries", "Known answers, at most", "memories", 0, 0, 10,
               "Memories that your team judged before, mixed in unmarked and never more than 5 % of a batch. They tell "
               "reviewers whether they still look closely, and never change the memory. 0 switches it off."),
    )),
    Group("keep", "How long raw material is kept", "Deleted for good, within the hour, and named in the "
          "audit. The audit itself is kept as long as the team: it holds no text of memories.", (
        _days("keep.traces", "Traces are deleted after", 0,
              "0: never. Memories stay, without their quotes from it.", low=0),
        _days("keep.receipts", "Receipts of recalls are deleted after", 0,
              "0: never. Their feedback goes too; what a memory's numbers took from it stays.", low=0),
    )),
)  # fmt: skip

ROWS = tuple(row for group in GROUPS for row in group.rows)
