"""The week's sample: drawn by chance that can be repeated, in strata that are kept apart, once."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import connections
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import AuditEvent, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict
from memories import actions
from memories.models import Memory
from reflection.enums import BatchStatus, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem
from reflection.review import drawing, sampling
from reflection.review.drawing import draw, draw_random, mix, pick_targeted, seed_of
from reflection.review.sampling import close_due, open_batch, open_due
from reflection.review.verdicts import decide
from reflection.review.weeks import opening_after, week_of
from tests import factories

IDS = st.lists(st.uuids(), max_size=60, unique=True)
SEED = seed_of(uuid.UUID(int=7), "2026-W49")
WEDNESDAY = datetime(2026, 12, 2, 12, tzinfo=UTC)


# --- Pure: the draw --------------------------------------------------------------------------------


@given(IDS, st.integers(0, 40), st.randoms())
def test_a_draw_repeats_whatever_the_order_of_the_population(ids, size, random) -> None:
    drawn = draw(SEED, ids, size)
    shuffled = list(ids)
    random.shuffle(shuffled)
    assert draw(SEED, shuffled, size) == drawn
    assert len(drawn) == min(size, len(ids))
    assert set(drawn) <= set(ids)


def test_another_week_and_another_team_draw_differently() -> None:
    ids = [uuid.UUID(int=n) for n in range(1000)]
    draws = {
        tuple(draw(seed_of(uuid.UUID(int=team), week), ids, 30)) for team in (1, 2) for week in ("2026-W49", "2026-W50")
    }
    assert len(draws) == 4


def test_every_memory_has_the_same_chance() -> None:
    """300 weeks, 10 of 50: each is drawn 60 times on average; 5 deviations of Binomial(300, 0.2) are 35."""
    ids = [uuid.UUID(int=n) for n in range(50)]
    times = dict.fromkeys(ids, 0)
    for week in range(300):
        for ident in draw(seed_of(uuid.UUID(int=1), str(week)), ids, 10):
            times[ident] += 1
    assert sum(times.values()) == 3000
    assert all(25 < count < 95 for count in times.values())


@given(IDS, IDS, IDS)
def test_the_random_stratum_keeps_its_sizes_and_probabilities(week, older, judged) -> None:
    pools = [set(week), set(older) - set(week), set(judged) - set(older) - set(week)]
    drawn = draw_random(SEED, pools)
    ids = [one.memory_id for one in drawn]
    assert len(ids) == len(set(ids)) == max(min(30, len(pools[0])), min(20, sum(map(len, pools))))
    for pool in pools:
        picked = [one for one in drawn if one.memory_id in pool]
        assert all(one.probability == len(picked) / len(pool) for one in picked)
    if len(pools[0]) >= 20:
        assert set(ids) <= pools[0], "a full week is not filled up"
    assert {one.stratum for one in drawn} <= {Stratum.RANDOM}


@given(IDS, IDS, IDS, IDS)
def test_targeted_items_are_picked_once_and_flagged_ones_first(flagged, recalled, unsure, taken) -> None:
    queues = {Stratum.FLAGGED: flagged, Stratum.MOST_RECALLED: recalled, Stratum.LOW_CONFIDENCE: unsure}
    picked = pick_targeted(queues, set(taken))
    ids = [one.memory_id for one in picked]
    free = (set(flagged) | set(recalled) | set(unsure)) - set(taken)
    assert len(ids) == len(set(ids)) == min(10, len(free))
    assert set(ids) <= free
    wanted = [ident for ident in flagged if ident not in set(taken)][:10]
    assert [one.memory_id for one in picked if one.stratum == Stratum.FLAGGED] == wanted
    assert all(one.probability == 1 for one in picked)


def test_the_other_targeted_strata_take_turns() -> None:
    recalled, unsure = ([uuid.UUID(int=base + n) for n in range(20)] for base in (0, 100))
    queues = {Stratum.FLAGGED: [], Stratum.MOST_RECALLED: recalled, Stratum.LOW_CONFIDENCE: unsure}
    picked = pick_targeted(queues, set())
    assert [one.memory_id for one in picked] == [i for pair in zip(recalled, unsure, strict=True) for i in pair][:10]


@given(IDS)
def test_mixing_loses_nothing_and_repeats(ids) -> None:
    drawn = draw_random(SEED, [ids])
    mixed = mix(SEED, drawn)
    assert sorted(mixed, key=lambda one: one.memory_id) == sorted(drawn, key=lambda one: one.memory_id)
    assert mix(SEED, reversed(drawn)) == mixed


# --- Pure: weeks -----------------------------------------------------------------------------------


def test_the_week_is_the_teams_not_greenwichs() -> None:
    sunday_night = datetime(2026, 12, 6, 23, 30, tzinfo=UTC)
    assert week_of(sunday_night, "UTC").name == "2026-W49"
    assert week_of(sunday_night, "Europe/Paris").name == "2026-W50"
    assert week_of(datetime(2027, 1, 1, tzinfo=UTC), "UTC").name == "2026-W53"


def test_a_week_with_a_clock_change_ends_at_its_own_midnight() -> None:
    week = week_of(datetime(2026, 10, 22, tzinfo=UTC), "Europe/Paris")
    length = week.ends.astimezone(UTC) - week.begins.astimezone(UTC)
    assert length == timedelta(days=7, hours=1)
    assert (week.opens.hour, week.ends.hour) == (6, 0)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_a_moment_lies_in_its_week_and_before_the_next_opening(moment) -> None:
    week = week_of(moment, "America/New_York")
    assert week.begins <= moment < week.ends
    assert moment <= opening_after(moment, "America/New_York") <= moment + timedelta(days=8)


# --- The batch of a team ---------------------------------------------------------------------------


@pytest.fixture
def remember(agent):
    """`remember(n)` writes n memories; `days` says how long ago."""

    def write(n: int, days: float = 1, **values) -> list[Memory]:
        when = timezone.now() - timedelta(days=days)
        with team_transaction(agent.team):
            start = Memory.objects.of(agent.team).count()
            made = [factories.memory(agent, f"Rule {start + i}: {uuid.uuid4()}") for i in range(n)]
            Memory.objects.of(agent.team).filter(pk__in=[m.pk for m in made]).update(created_at=when, **values)
        return made

    return write


def strata(batch: ReviewBatch) -> dict[str, list[ReviewItem]]:
    found: dict[str, list[ReviewItem]] = {}
    for item in ReviewItem.objects.of(batch.team).filter(batch=batch):
        found.setdefault(item.stratum, []).append(item)
    return found


def test_thirty_at_random_and_ten_on_purpose(team: Team, remember) -> None:
    remember(45)
    flagged = remember(4, needs_review=True)
    remember(12, access_count=3)
    remember(12, confidence=0.2)
    batch = open_batch(team=team, by=SYSTEM)
    found = strata(batch)
    random = found.pop(Stratum.RANDOM)
    assert len(random) == 30
    assert {item.inclusion_probability for item in random} == {30 / 73}
    assert sum(map(len, found.values())) == 10
    sampled = {item.memory_id for item in random}
    assert {item.memory_id for item in found.get(Stratum.FLAGGED, [])} == {m.pk for m in flagged} - sampled
    assert batch.population[Stratum.RANDOM]["eligible"] == 73
    assert batch.seed == seed_of(team.pk, batch.week)
    positions = ReviewItem.objects.of(team).filter(batch=batch).values_list("position", flat=True)
    assert sorted(positions) == list(range(40))


def test_anyone_can_draw_it_again(team: Team, remember) -> None:
    made = remember(50)
    batch = open_batch(team=team, by=SYSTEM)
    again = draw(batch.seed, [m.pk for m in made], 30)
    assert {item.memory_id for item in strata(batch)[Stratum.RANDOM]} == set(again)
    assert batch.population[Stratum.RANDOM]["pools"][0]["digest"] == drawing.digest(m.pk for m in made)


def test_a_quiet_week_is_filled_up_to_twenty_from_older_ones(team: Team, remember) -> None:
    new = remember(5)
    remember(40, days=30)
    batch = open_batch(team=team, by=SYSTEM)
    random = strata(batch)[Stratum.RANDOM]
    assert len(random) == 20
    probability = {item.memory_id: item.inclusion_probability for item in random}
    assert all(probability.pop(m.pk) == 1 for m in new)
    assert set(probability.values()) == {15 / 40}
    assert batch.population[Stratum.RANDOM]["this_week"] == 5


def test_a_small_team_gets_what_it_has(team: Team, remember) -> None:
    remember(7, days=30)
    assert len(strata(open_batch(team=team, by=SYSTEM))[Stratum.RANDOM]) == 7


def test_what_was_changed_this_week_belongs_to_it(team: Team, remember, agent) -> None:
    remember(20)
    old, untouched = remember(2, days=30)
    actions.revise(team=team, by=SYSTEM, memory=Memory.objects.get(pk=old.pk), content="Said otherwise now.")
    drawn = {item.memory_id for item in strata(open_batch(team=team, by=SYSTEM))[Stratum.RANDOM]}
    assert old.pk in drawn
    assert untouched.pk not in drawn


def test_only_what_can_be_recalled_is_sampled(team: Team, agent, remember) -> None:
    kept = remember(3)
    remember(1, status="demoted")
    remember(1, status="quarantined", needs_review=True)
    remember(1, expires_at=timezone.now() - timedelta(hours=1))
    factories.memory(agent, "The goal of this session.", tier="working")
    drawn = ReviewItem.objects.of(team).filter(batch=open_batch(team=team, by=SYSTEM))
    assert {item.memory_id for item in drawn} == {m.pk for m in kept}


def test_another_teams_memories_are_not_drawn(team: Team, remember, other_agent) -> None:
    factories.memory(other_agent, "A secret of the rival.")
    remember(3)
    batch = open_batch(team=team, by=SYSTEM)
    assert {item.team_id for item in batch.items.all()} == {team.pk}
    assert set(batch.items.values_list("memory__team", flat=True)) == {team.pk}


def test_without_memories_there_is_nothing_to_open(team: Team) -> None:
    with pytest.raises(Conflict) as refusal:
        open_batch(team=team, by=SYSTEM)
    assert refusal.value.code == "nothing_to_review"
    assert not ReviewBatch.objects.of(team).exists()


def test_opening_twice_is_one_batch_and_one_event(team: Team, remember) -> None:
    remember(3)
    first, second = open_batch(team=team, by=SYSTEM), open_batch(team=team, by=SYSTEM)
    assert first == second
    assert ReviewItem.objects.of(team).count() == 3
    assert AuditEvent.objects.of(team).filter(verb="batch.opened").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_at_once_open_one_batch(team: Team, remember) -> None:
    remember(25)

    def open_it(_: int) -> uuid.UUID:
        try:
            with team_transaction(team):
                return open_batch(team=team, by=SYSTEM).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        opened = set(pool.map(open_it, range(4)))
    assert len(opened) == 1
    with team_transaction(team):
        assert ReviewItem.objects.of(team).count() == 25


def test_what_was_judged_comes_back_only_when_there_is_nothing_else(team: Team, alice, remember) -> None:
    remember(3)
    first = open_batch(team=team, by=SYSTEM)
    judged = first.items.order_by("position").first()
    decide(team=team, by=person(alice), reviewer=alice, item=judged, decision="approve", version=1)
    remember(25)
    second = open_batch(team=team, by=SYSTEM, at=timezone.now() + timedelta(days=7))
    assert judged.memory_id not in set(second.items.values_list("memory_id", flat=True))


def test_a_missed_week_is_made_up_for(team: Team, remember) -> None:
    remember(1, days=22)
    now = timezone.now()
    open_batch(team=team, by=SYSTEM, at=now - timedelta(days=21))
    unseen = remember(22, days=15)
    batch = open_batch(team=team, by=SYSTEM, at=now)
    assert {item.memory_id for item in strata(batch)[Stratum.RANDOM]} == {m.pk for m in unseen}


# --- The schedule ----------------------------------------------------------------------------------


def test_a_due_batch_is_opened_once_at_any_time_of_the_week(team: Team, remember) -> None:
    remember(3, days=0)
    monday = datetime(2030, 1, 7, tzinfo=UTC)
    assert open_due(monday + timedelta(hours=5, minutes=59)) == "0 opened, 0 closed"
    assert open_due(monday + timedelta(days=2)) == "1 opened, 0 closed"
    assert open_due(monday + timedelta(days=3)) == "0 opened, 0 closed"
    assert ReviewBatch.objects.of(team).get().week == "2030-W02"


def test_each_team_opens_by_its_own_clock(team: Team, agent, other_team: Team, other_agent) -> None:
    Team.objects.filter(pk=other_team.pk).update(time_zone="Asia/Shanghai")
    factories.memory(agent)
    factories.memory(other_agent)
    monday_one_utc = datetime(2030, 1, 7, 1, tzinfo=UTC)
    assert open_due(monday_one_utc) == "1 opened, 0 closed"
    assert ReviewBatch.objects.get().team_id == other_team.pk


def test_suspended_and_empty_teams_are_passed_over(team: Team, agent, other_team: Team) -> None:
    factories.memory(agent)
    Team.objects.filter(pk=team.pk).update(suspended_at=timezone.now())
    assert open_due(WEDNESDAY + timedelta(days=700)) == "0 opened, 0 closed"


def test_a_batch_closes_when_its_week_is_over(team: Team, remember) -> None:
    remember(2)
    batch = open_batch(team=team, by=SYSTEM)
    assert close_due(batch.closes_at - timedelta(seconds=1)) == 0
    assert close_due(batch.closes_at) == 1
    assert close_due(batch.closes_at) == 0
    batch.refresh_from_db()
    assert batch.status == BatchStatus.CLOSED
    assert batch.closed_at == batch.closes_at
    assert set(batch.items.values_list("state", flat=True)) == {ItemState.PENDING}


def test_the_command_says_how_many(team: Team, remember, capsys) -> None:
    remember(2, days=8)
    week = week_of(timezone.now(), team.time_zone)
    call_command("open_batches")
    opened = int(timezone.now() >= week.opens)
    assert capsys.readouterr().out == f"Review batches: {opened} opened, 0 closed.\n"
    assert ReviewBatch.objects.of(team).count() == opened


def test_the_schedules_task_is_this_one(team: Team) -> None:
    from reflection import tasks

    assert tasks.open_batches() == "0 opened, 0 closed"
    assert sampling.SCHEDULE.kind == "system"
