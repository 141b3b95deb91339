"""What the metrics page says: charts, the tables behind them, and the alert in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from hindsight_site.accounts.models import Team
from memories.enums import Kind
from reflection.enums import DemoteReason
from reflection.review import metric_queries, metrics
from reflection.review.charts import Chart, Value, chart
from reflection.review.metric_queries import Coverage, Narrowing, Served
from reflection.review.metrics import Judged, Pace, Part, WeekRate
from reflection.review.pages import band, week_title
from reflection.review.statistics import FEWEST, Estimate, Share, weighted_estimate

RANGES = (12, 26, 52)  # weeks
SPLITS = {"kind": "Kind", "agent": "Agent", "prompt": "Prompt version", "model": "Model"}
READ: dict[str, Callable[[Judged], str]] = {
    "kind": attrgetter("kind"),
    "agent": attrgetter("agent"),
    "prompt": attrgetter("prompt_version"),
    "model": attrgetter("model"),
}
NONE = "-"  # stands for "has none" in an address, where an empty value means all
WORDS_FOR_NONE = {"agent": "the team’s own", "prompt": "none", "model": "none: by rules, or by hand"}
NO_REASON_WORDS = "No reason given"


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` says how a value is written: text, count, share (0..1), hours."""

    title: str
    kind: str = "count"


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers behind a chart. `name` is its address, rows are as long as `columns`."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def cells(self) -> list[list[tuple[str, Any]]]:
        """Each row as (kind, value), newest first as the page shows it."""
        kinds = [column.kind for column in self.columns]
        return [list(zip(kinds, row, strict=True)) for row in reversed(self.rows)]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that one page, or one download, is made of."""

    weeks: list[str]
    rates: list[WeekRate]
    judged: list[Judged]
    reasons: dict[str, Any]
    opinions: list[metrics.Opinion]
    paces: list[Pace]
    coverage: list[Coverage]
    served: list[Served]
    parts: list[Part]
    by: str
    overall: Estimate | None


def gather(team: Team, now: datetime, count: int, by: str, narrowing: Narrowing) -> Gathered:
    """Read and add up the last `count` whole weeks."""
    weeks, today = metric_queries.weeks_of(team, now, count)
    batches = metric_queries.batches_of(team, weeks, now)
    verdicts = metric_queries.verdicts_of(team, batches, narrowing)
    judged = metric_queries.judged_of(team, verdicts)
    return Gathered(
        weeks=weeks,
        rates=metrics.weekly(weeks, judged),
        judged=judged,
        reasons=metrics.reasons(weeks, judged),
        opinions=metric_queries.opinions_of(verdicts),
        paces=metrics.paces(weeks, judged),
        coverage=metric_queries.coverage_of(weeks, batches),
        served=metric_queries.served_of(team, weeks, today, narrowing),
        parts=metrics.split(judged, READ[by]) if by else [],
        by=by,
        overall=weighted_estimate(metric_queries.weighed_of(verdicts)),
    )


def context_of(found: Gathered, narrowing: Narrowing) -> dict[str, Any]:
    """What the template needs."""
    alerts = [rate for rate in found.rates if rate.alert]
    last = next((rate for rate in reversed(found.rates) if rate.limit_low is not None), None)
    return {
        "judged": sum(rate.rate.n for rate in found.rates if rate.rate),
        "weeks_judged": sum(1 for rate in found.rates if rate.rate),
        "weeks_enough": sum(1 for rate in found.rates if rate.limit_low is not None),
        "alerts": [(week_title(rate.week), rate) for rate in alerts],
        "alert_now": last if last is not None and last.alert else None,
        "alert_week": week_title(last.week) if last is not None else "",
        "changes": [(week_title(rate.week), change) for rate in found.rates for change in rate.changes],
        "acceptance": acceptance_chart(found.rates),
        "reasons": [(reason_words(reason), count, share) for reason, count, share in metrics.together(found.reasons)],
        "agreement": metrics.agreement(metrics.pairs(found.opinions)),
        "coverage": coverage_chart(found.coverage),
        "lag": _median_lag(found.judged),
        "edits": edits_chart(found.paces),
        "served": served_chart(found.served),
        "parts": [
            {
                "words": words_of(found.by, part.value),
                "value": part.value or NONE,
                "part": part,
                "band": band(part.rate),
            }
            for part in found.parts
        ],
        "overall": found.overall,
        "narrowed": words_of(narrowing.by, narrowing.value) if narrowing.by else "",
        "tables": {name: table(found) for name, table in TABLES.items()},
        "fewest": FEWEST,
    }


def acceptance_chart(rates: Sequence[WeekRate]) -> Chart:
    """The weekly acceptance with its band and limits, and where prompt or model changed."""
    return chart([_acceptance_value(rate) for rate in rates], whole=True)


def _acceptance_value(rate: WeekRate) -> Value:
    mark = f"{week_title(rate.week)}: new {', '.join(rate.changes)}" if rate.changes else ""
    if rate.rate is None:
        return Value(rate.week, None, "", mark=mark)
    told = told_of(rate.week, rate.rate) + (f": {rate.alert}" if rate.alert else "")
    return Value(
        week=rate.week, share=rate.rate.share, told=told, low=rate.rate.low, high=rate.rate.high,
        limit_low=rate.limit_low, limit_high=rate.limit_high, few=not rate.rate.is_enough, alert=bool(rate.alert),
        mark=mark,
    )  # fmt: skip


def told_of(week: str, share: Share) -> str:
    """One week's share in words."""
    few = ", too few" if not share.is_enough else ""
    return f"{week_title(week)}: {share.share:.0%} ({share.low:.0%} to {share.high:.0%}, n = {share.n}{few})"


def _of_share(week: str, share: Share | None) -> Value:
    if share is None:
        return Value(week, None, "")
    return Value(week, share.share, told_of(week, share), share.low, share.high, few=not share.is_enough)


def edits_chart(paces: Sequence[Pace]) -> Chart:
    """The share of judged memories that were edited, with its band."""
    return chart([_of_share(pace.week, pace.edits) for pace in paces])


def served_chart(served: Sequence[Served]) -> Chart:
    """The share of what recalls handed out that a person had approved, with its band."""
    return chart([_of_share(one.week, one.share) for one in served])


def coverage_chart(coverage: Sequence[Coverage]) -> Chart:
    """How much of what a week brought was drawn: counted, not estimated, so without a band."""
    return chart(
        [Value(one.week, one.share, f"{week_title(one.week)}: {one.drawn} of {one.produced} drawn") for one in coverage]
    )


def _median_lag(judged: Sequence[Judged]) -> float | None:
    lags = sorted(one.lag.total_seconds() for one in judged)
    return lags[len(lags) // 2] if lags else None


def reason_words(reason: str) -> str:
    """A demotion's reason for people."""
    return str(DemoteReason(reason).label) if reason else NO_REASON_WORDS


def words_of(by: str, value: str) -> str:
    """One value of a split for people."""
    if not value:
        return WORDS_FOR_NONE.get(by, "none")
    return str(Kind(value).label) if by == "kind" and value in Kind.values else value


# --- The tables, each of one chart; the downloads hold the same ---------------------------------------

WEEK = Column("Week", "text")


def _acceptance_table(found: Gathered) -> Table:
    columns = (
        WEEK, Column("Approved"), Column("Demoted"), Column("Edited"), Column("Sensitive"), Column("n"),
        Column("Accepted", "share"), Column("From", "share"), Column("To", "share"), Column("Limit below", "share"),
        Column("Limit above", "share"), Column("Alert", "text"), Column("New that week", "text"),
    )  # fmt: skip
    rows = tuple(
        (
            rate.week, rate.approved, rate.demoted, rate.edited, rate.sensitive, rate.rate.n if rate.rate else 0,
            *((rate.rate.share, rate.rate.low, rate.rate.high) if rate.rate else (None, None, None)),
            rate.limit_low, rate.limit_high, rate.alert, ", ".join(rate.changes),
        )
        for rate in found.rates
    )  # fmt: skip
    return Table("acceptance", "Acceptance by week", columns, rows)


def _reasons_table(found: Gathered) -> Table:
    names = [*DemoteReason.values, metrics.NO_REASON]
    columns = (WEEK, *(Column(reason_words(name)) for name in names))
    rows = tuple((week, *(found.reasons[week][name] for name in names)) for week in found.weeks)
    return Table("reasons", "Reasons of demotions by week", columns, rows)


def _agreement_table(found: Gathered) -> Table:
    compared = metrics.pairs(found.opinions)
    rows = []
    for week in found.weeks:
        mine = [(one, other) for one, other in compared if other.week == week]
        rows.append((week, len(mine), sum(one.decision == other.decision for one, other in mine)))
    columns = (WEEK, Column("Judged by two"), Column("Agreed"))
    return Table("agreement", "Agreement by week", columns, tuple(rows))


def _coverage_table(found: Gathered) -> Table:
    columns = (
        WEEK, Column("New or changed"), Column("Of these drawn"), Column("Drawn", "share"),
        Column("Median hours to a verdict", "hours"),
    )  # fmt: skip
    rows = tuple(
        (one.week, one.produced, one.drawn, one.share, pace.lag_hours)
        for one, pace in zip(found.coverage, found.paces, strict=True)
    )
    return Table("coverage", "Coverage and lag by week", columns, rows)


def _edits_table(found: Gathered) -> Table:
    columns = (
        WEEK, Column("Edited"), Column("n"), Column("Share", "share"), Column("From", "share"), Column("To", "share"),
        Column("Median share of words changed", "share"),
    )  # fmt: skip
    rows = tuple((pace.week, *_shares(pace.edits), pace.words_changed) for pace in found.paces)
    return Table("edits", "Edits by week", columns, rows)


def _served_table(found: Gathered) -> Table:
    columns = (
        WEEK, Column("Approved by then"), Column("Handed out"), Column("Share", "share"), Column("From", "share"),
        Column("To", "share"),
    )  # fmt: skip
    return Table(
        "recalls",
        "Approved memories among those handed out, by week",
        columns,
        tuple((one.week, *_shares(one.share)) for one in found.served),
    )


def _parts_table(found: Gathered) -> Table:
    columns = (
        Column(SPLITS.get(found.by, "Value"), "text"), Column("Approved"), Column("Demoted"), Column("Edited"),
        Column("n"), Column("Accepted", "share"), Column("From", "share"), Column("To", "share"),
    )  # fmt: skip
    rows = tuple(
        (words_of(found.by, part.value), part.approved, part.demoted, part.edited, *_shares(part.rate)[1:])
        for part in found.parts
    )
    return Table("split", "Acceptance by part", columns, rows)


def _shares(share: Share | None) -> tuple[Any, ...]:
    return (share.hits, share.n, share.share, share.low, share.high) if share else (0, 0, None, None, None)


TABLES: dict[str, Callable[[Gathered], Table]] = {
    "acceptance": _acceptance_table,
    "reasons": _reasons_table,
    "agreement": _agreement_table,
    "coverage": _coverage_table,
    "edits": _edits_table,
    "recalls": _served_table,
    "split": _parts_table,
}
