"""The metrics of the review: the arithmetic against one done differently here, and the page over real verdicts."""

from __future__ import annotations

import csv
import io
import math
import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from statistics import median
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory, Recall, RecallHit
from reflection.models import ReviewBatch, Verdict
from reflection.review import metrics
from reflection.review.charts import HEIGHT, WIDTH, Value, chart
from reflection.review.metrics import Judged, Opinion, agreement, changes, paces, pairs, split, weekly, weeks_until
from reflection.review.sampling import open_batch
from reflection.review.statistics import Z95
from reflection.review.verdicts import decide
from reflection.review.weeks import week_of
from tests import factories

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
WEEKS = ["2026-W45", "2026-W46", "2026-W47", "2026-W48"]


def judged(week: str, decision: str, **more: Any) -> Judged:
    given_ = {"reason": "", "kind": "fact", "agent": "coder", "prompt_version": "v1", "model": "small"}
    return Judged(**{"week": week, "decision": decision, "lag": timedelta(hours=5), **given_, **more})


def a_week(week: str, approved: int, demoted: int, **more: Any) -> list[Judged]:
    return [judged(week, "approve", **more)] * approved + [judged(week, "demote", **more)] * demoted


# --- Weeks -----------------------------------------------------------------------------------------


@given(st.dates(date(2000, 1, 10), date(2100, 1, 1)), st.integers(1, 60))
def test_weeks_are_those_of_the_calendar(today: date, count: int) -> None:
    names = weeks_until(today, count)
    by_day = [today - timedelta(days=back) for back in range(7 * (count + 1))]
    seen = {f"{day.isocalendar().year}-W{day.isocalendar().week:02}" for day in by_day}
    this = week_of(datetime(today.year, today.month, today.day, 12, tzinfo=UTC), "UTC").name
    assert names == sorted(names)
    assert len(names) == count
    assert this not in names
    assert set(names) <= seen


# --- Acceptance, limits, alerts --------------------------------------------------------------------

COUNTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 9)), min_size=4, max_size=4)


@given(COUNTS)
def test_every_week_against_a_calculation_of_our_own(counts: list[tuple[int, int, int]]) -> None:
    rows = []
    for week, (approved, demoted, edited) in zip(WEEKS, counts, strict=True):
        rows += a_week(week, approved, demoted) + [judged(week, "edit")] * edited + [judged(week, "sensitive")]
    found = weekly(WEEKS, rows)
    enough = [c for c in counts if sum(c) >= 20]
    centre = Fraction(sum(c[0] for c in enough), sum(map(sum, enough))) if enough else None
    for rate, (approved, demoted, edited) in zip(found, counts, strict=True):
        n = approved + demoted + edited
        assert (rate.approved, rate.demoted, rate.edited, rate.sensitive) == (approved, demoted, edited, 1)
        if n == 0:
            assert rate.rate is None
            continue
        assert rate.rate is not None
        assert rate.rate.share == pytest.approx(float(Fraction(approved, n)))
        check_band(rate.rate.low, rate.rate.high, approved, n)
        if n < 20:
            assert (rate.limit_low, rate.limit_high, rate.alert) == (None, None, "")
            continue
        assert centre is not None
        reach = 3 * math.sqrt(float(centre * (1 - centre) / n))
        assert rate.limit_low == pytest.approx(max(0.0, float(centre) - reach), abs=1e-9)
        assert rate.limit_high == pytest.approx(min(1.0, float(centre) + reach), abs=1e-9)


def check_band(low: float, high: float, hits: int, n: int) -> None:
    """The ends of Wilson's interval solve (p̂ − p)² = z²·p(1−p)/n."""
    for end in (low, high):
        if 0 < end < 1:
            assert (hits / n - end) ** 2 == pytest.approx(Z95**2 * end * (1 - end) / n, abs=1e-9)


def test_a_week_far_below_the_others_alerts_and_says_why() -> None:
    rows = [one for week in WEEKS[:3] for one in a_week(week, 29, 1)] + a_week(WEEKS[3], 18, 12)
    assert [rate.alert for rate in weekly(WEEKS, rows)] == ["", "", "", "outside 3 sigma"]


def test_two_of_three_weeks_beyond_two_sigma_alert_together() -> None:
    weeks = [f"2026-W{number}" for number in range(30, 49)]
    rows = [one for week in weeks[:-3] for one in a_week(week, 27, 3)]
    rows += a_week(weeks[-3], 22, 8) + a_week(weeks[-2], 27, 3) + a_week(weeks[-1], 22, 8)
    alerts = [rate.alert for rate in weekly(weeks, rows)]
    assert alerts[-1] == "two of three weeks outside 2 sigma"
    assert not any(alerts[:-1])


def test_too_few_neither_alert_nor_move_the_limits() -> None:
    steady = [one for week in WEEKS[:3] for one in a_week(week, 27, 3)]
    alone = weekly(WEEKS, steady)
    beside = weekly(WEEKS, steady + a_week(WEEKS[3], 0, 19))
    assert [rate.limit_low for rate in beside] == [rate.limit_low for rate in alone]
    assert beside[3].alert == ""
    assert beside[3].rate is not None
    assert not beside[3].rate.is_enough


def test_changes_are_what_was_not_there_before() -> None:
    rows = [
        judged(WEEKS[1], "approve"),
        judged(WEEKS[2], "approve", prompt_version="v2"),
        judged(WEEKS[2], "approve"),
        judged(WEEKS[3], "approve", prompt_version="v2", model="large"),
    ]
    assert changes(WEEKS, rows) == {WEEKS[2]: ("prompt v2",), WEEKS[3]: ("model large",)}


# --- Reasons, agreement, edits, parts --------------------------------------------------------------


def test_reasons_by_week_and_together() -> None:
    rows = [judged(WEEKS[0], "demote", reason="wrong"), judged(WEEKS[1], "demote", reason="wrong")]
    rows += [judged(WEEKS[1], "demote"), judged(WEEKS[1], "approve")]
    counted = metrics.reasons(WEEKS, rows)
    assert counted[WEEKS[1]] == Counter({"wrong": 1, "": 1})
    assert metrics.together(counted) == [("wrong", 2, 2 / 3), ("", 1, 1 / 3)]
    assert metrics.together(metrics.reasons(WEEKS, [])) == []


MEMORIES = [uuid.UUID(int=n) for n in range(4)]
OPINIONS = st.builds(
    Opinion,
    memory=st.sampled_from(MEMORIES),
    revision=st.integers(1, 2),
    reviewer=st.integers(1, 3),
    decision=st.sampled_from(["approve", "demote", "edit"]),
    at=st.integers(0, 10**6).map(lambda minutes: NOON + timedelta(minutes=minutes)),
    week=st.sampled_from(WEEKS),
)


@given(st.lists(OPINIONS, unique_by=lambda one: one.at))
def test_pairs_are_two_people_on_the_same_words(opinions: list[Opinion]) -> None:
    found = pairs(opinions)
    things = {(one.memory, one.revision) for one in opinions}
    by_two = {t for t in things if len({o.reviewer for o in opinions if (o.memory, o.revision) == t}) > 1}
    assert {(one.memory, one.revision) for one, _ in found} == by_two
    assert len(found) == len(by_two)
    for one, other in found:
        same = [o for o in opinions if (o.memory, o.revision) == (one.memory, one.revision)]
        assert one == min(same, key=lambda o: o.at)
        assert other == min((o for o in same if o.reviewer != one.reviewer), key=lambda o: o.at)


@given(st.lists(st.tuples(st.sampled_from("ade"), st.sampled_from("ade")), max_size=60))
def test_agreement_and_kappa_against_a_table_of_counts(labels: list[tuple[str, str]]) -> None:
    compared = [
        (Opinion(MEMORIES[0], 1, 1, a, NOON, WEEKS[0]), Opinion(MEMORIES[0], 1, 2, b, NOON, WEEKS[0]))
        for a, b in labels
    ]
    found = agreement(compared)
    n = len(labels)
    assert (found.n, found.agreed) == (n, sum(a == b for a, b in labels))
    if n < 20:
        assert found.kappa is None
        return
    table = Counter(labels)
    diagonal = sum((Fraction(table[x, x], n) for x in "ade"), Fraction())
    chance = sum(
        Fraction(sum(table[x, y] for y in "ade"), n) * Fraction(sum(table[y, x] for y in "ade"), n) for x in "ade"
    )
    assert found.kappa == (None if chance == 1 else pytest.approx(float((diagonal - chance) / (1 - chance))))


def test_edits_and_lag_of_a_week() -> None:
    rows = [
        judged(WEEKS[0], "approve", lag=timedelta(hours=1)),
        judged(WEEKS[0], "edit", lag=timedelta(hours=2), words_changed=0.2),
        judged(WEEKS[0], "edit", lag=timedelta(hours=9), words_changed=0.6),
        judged(WEEKS[0], "sensitive", lag=timedelta(hours=4)),
    ]
    first, *rest = paces(WEEKS, rows)
    assert first.edits is not None
    assert (first.edits.hits, first.edits.n) == (2, 3)
    assert first.words_changed == pytest.approx(0.4)
    assert first.lag_hours == median([1, 2, 9, 4])
    assert all(pace.edits is None and pace.lag_hours is None for pace in rest)


def test_words_changed() -> None:
    assert metrics.words_changed("run it first", "run it first") == 0
    assert metrics.words_changed("run it first", "say nothing now ever") == 1
    assert metrics.words_changed("a b c d", "a b c x") == pytest.approx(0.25)
    assert metrics.words_changed("", "") == 0


@given(st.lists(st.tuples(st.sampled_from(["fact", "task"]), st.sampled_from(["approve", "demote", "edit"]))))
def test_the_parts_are_the_whole(rows: list[tuple[str, str]]) -> None:
    parts = split([judged(WEEKS[0], decision, kind=kind) for kind, decision in rows], lambda one: one.kind)
    assert sum(part.approved + part.demoted + part.edited for part in parts) == len(rows)
    for part in parts:
        assert part.demoted == rows.count((part.value, "demote"))


# --- Charts ----------------------------------------------------------------------------------------

SHARES = st.one_of(st.none(), st.floats(0, 1))


@given(st.lists(SHARES, min_size=1, max_size=52))
def test_every_mark_stands_inside_the_drawing(shares: list[float | None]) -> None:
    drawn = chart([Value(str(at), share, "", low=share, high=share) for at, share in enumerate(shares)])
    assert len(drawn.dots) == sum(share is not None for share in shares)
    for dot in drawn.dots:
        assert 0 <= dot.x <= WIDTH
        assert 0 <= dot.y <= HEIGHT
        assert dot.band_height >= 0
    assert [dot.x for dot in drawn.dots] == sorted(dot.x for dot in drawn.dots)


def test_few_are_not_joined() -> None:
    drawn = chart([Value("1", 0.5, ""), Value("2", 0.1, "", few=True), Value("3", 0.6, "")])
    assert drawn.line.count("L") == 1
    assert drawn.dots[1].few


# --- The page over real verdicts -------------------------------------------------------------------


def past_week(team: Team, agent: Agent, bob: User, ago: int, decisions: list[str], **memory: Any) -> ReviewBatch:
    """A batch of `ago` weeks back in which `bob` decided so."""
    at = timezone.now() - timedelta(weeks=ago)
    made = [factories.memory(agent, f"{uuid.uuid4()} is the key of {n}.") for n in range(len(decisions))]
    with team_transaction(team):
        Memory.objects.filter(pk__in=[one.pk for one in made]).update(created_at=at, **memory)
        batch = open_batch(team=team, by=SYSTEM, at=at)
        batch.items.update(quorum=1)  # those for two have tests of their own
        ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=timezone.now() + timedelta(days=1))
        batch.refresh_from_db()
        for item, decision in zip(batch.items.order_by("position"), decisions, strict=False):
            more = {"reason": "wrong"} if decision == "demote" else {}
            more |= {"content": f"{item.memory.content} Put right."} if decision == "edit" else {}
            decide(team=team, by=person(bob), reviewer=bob, item=item, decision=decision, version=1, **more)
        Verdict.objects.filter(item__batch=batch).update(created_at=at + timedelta(hours=6))
        ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=week_of(at, team.time_zone).ends)
    return batch


def table(client: Any, name: str, **query: str) -> list[dict[str, str]]:
    answer = client.get(reverse("review-metrics-table", args=[name]), query)
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


@pytest.mark.django_db
def test_the_tables_hold_what_people_decided(team, agent, bob, browse) -> None:
    batch = past_week(team, agent, bob, 1, ["approve", "approve", "demote", "edit"], prompt_version="v1")
    client = browse(bob)
    last = table(client, "acceptance")[-1]
    assert (last["Week"], last["Approved"], last["Demoted"], last["Edited"], last["n"]) == (
        batch.week,
        "2",
        "1",
        "1",
        "4",
    )
    assert float(last["Accepted"]) == 0.5
    assert last["Limit below"] == "", "four judgements allow no limits"
    assert table(client, "reasons")[-1]["Wrong or outdated"] == "1"
    edits = table(client, "edits")[-1]
    assert (edits["Edited"], edits["n"]) == ("1", "4")
    assert 0 < float(edits["Median share of words changed"]) < 0.5
    coverage = table(client, "coverage")[-1]
    assert (coverage["New or changed"], coverage["Of these drawn"]) == ("4", "4")
    assert float(coverage["Median hours to a verdict"]) == pytest.approx(6, abs=0.01)
    assert [row["n"] for row in table(client, "split", by="prompt")] == ["4"]


@pytest.mark.django_db
def test_an_undone_or_open_verdict_does_not_count(team, agent, bob, browse) -> None:
    past_week(team, agent, bob, 0, ["approve", "demote"])
    assert {row["n"] for row in table(browse(bob), "acceptance")} == {"0"}, "the running week is not over"
    batch = past_week(team, agent, bob, 2, ["approve", "demote"])
    with team_transaction(team):
        Verdict.objects.filter(item__batch=batch, decision="demote").update(undone_at=timezone.now())
    assert [row["Demoted"] for row in table(browse(bob), "acceptance") if row["Week"] == batch.week] == ["0"]


@pytest.mark.django_db
def test_narrowed_to_one_value(team, agent, bob, browse) -> None:
    past_week(team, agent, bob, 1, ["approve", "demote"], model="small")
    past_week(team, agent, bob, 2, ["approve", "approve", "approve"], model="")
    client = browse(bob)
    assert sum(int(row["n"]) for row in table(client, "acceptance", by="model", only="small")) == 2
    assert sum(int(row["n"]) for row in table(client, "acceptance", by="model", only="-")) == 3
    assert sum(int(row["n"]) for row in table(client, "acceptance", by="nonsense", only="small")) == 5
    page = client.get(reverse("review-metrics"), {"by": "model", "only": "small"}).content.decode()
    assert "only model <strong>small</strong>" in page


@pytest.mark.django_db
def test_what_recalls_handed_out(team, agent, bob, browse) -> None:
    known, other = factories.memory(agent), factories.memory(agent, "The default branch is main.")
    at = timezone.now() - timedelta(weeks=1)
    with team_transaction(team):
        Memory.objects.filter(pk=known.pk).update(approved_at=at - timedelta(days=1))
        Memory.objects.filter(pk=other.pk).update(approved_at=at + timedelta(days=1))
        recall = Recall.objects.create(team=team, agent=agent, status="matched", created_at=at)
        for rank, memory in enumerate((known, other), start=1):
            RecallHit.objects.create(
                team=team, recall=recall, memory=memory, revision=1, rank=rank, score=1, relevance=1
            )
    last = table(browse(bob), "recalls")[-1]
    assert (last["Approved by then"], last["Handed out"]) == ("1", "2"), "approved later is not approved by then"


@pytest.mark.django_db
def test_an_alert_is_said_on_the_page(team, agent, bob, browse) -> None:
    for ago in (4, 3, 2):
        past_week(team, agent, bob, ago, ["approve"] * 22)
    page = browse(bob).get(reverse("review-metrics")).content.decode()
    assert "No week is out of control" in page
    past_week(team, agent, bob, 1, ["demote"] * 20)
    page = browse(bob).get(reverse("review-metrics")).content.decode()
    assert "is out of control: outside 3 sigma" in page
    assert "data-alert" in page


@pytest.mark.django_db
def test_a_viewer_reads_it_and_the_empty_page_says_why(carol, browse) -> None:
    page = browse(carol).get(reverse("review-metrics")).content.decode()
    assert "Nothing judged in this time" in page
    for name in ("acceptance", "reasons", "agreement", "coverage", "edits", "recalls", "split"):
        assert browse(carol).get(reverse("review-metrics-table", args=[name])).status_code == 200
    assert browse(carol).get(reverse("review-metrics-table", args=["nonsense"])).status_code == 404


@pytest.mark.django_db
def test_the_queries_do_not_grow_with_the_weeks(team, agent, bob, browse) -> None:
    client = browse(bob)
    past_week(team, agent, bob, 1, ["approve", "edit"])
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(reverse("review-metrics"), {"weeks": "52", "by": "kind"})
    for ago in (2, 3, 4):
        past_week(team, agent, bob, ago, ["approve", "demote", "edit"])
    with CaptureQueriesContext(connection) as many:
        client.get(reverse("review-metrics"), {"weeks": "52", "by": "kind"})
    assert len(many) == len(few) <= 20


@pytest.mark.django_db
def test_a_cell_that_a_spreadsheet_would_run_is_text(team, agent, bob, browse) -> None:
    past_week(team, agent, bob, 1, ["approve"], model='=HYPERLINK("http://evil.test")')
    row = table(browse(bob), "split", by="model")[0]
    assert row["Model"].startswith("'=HYPERLINK")


@pytest.mark.django_db
def test_another_teams_weeks_are_not_counted(team, agent, bob, mallory, browse) -> None:
    past_week(team, agent, bob, 1, ["approve"])
    assert {row["n"] for row in table(browse(mallory), "acceptance")} == {"0"}
