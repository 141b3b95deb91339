"""A year passes through the real sweep; every memory ends as an independent calculation says.

The large one (20 agents, 5,000 memories, a sweep a day) is `pytest tests/evals/simulated_year.py`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.models import Memory
from tests import factories
from tests.memories.ledger import Books, balance
from tests.memories.year import Year, live_through

WORDS = {"candidate": "live", "active": "live"}


def a_year(
    team: Team, person: User, *, agents: int, memories: int, capacity: int, sweep_every: int, use_every: int
) -> tuple[Year, Books]:
    cast: list[Agent] = [factories.agent(team, f"agent-{place}") for place in range(agents)]
    with team_transaction(team):
        actions.change_policy(team=team, by=SYSTEM, changes={"life.capacity": capacity})
    year = live_through(team, cast, person, memories=memories, seed=2026, sweep_every=sweep_every, use_every=use_every)
    return year, balance(year.log, year.sweeps, capacity)


def check(team: Team, year: Year, books: Books) -> None:
    with team_transaction(team):
        rows = {row.pk: row for row in Memory.objects.of(team)}
    statuses = {pk: WORDS.get(row.status, row.status) for pk, row in rows.items()}
    assert statuses == {pk: page["status"] for pk, page in books.pages.items()}
    assert Counter(statuses.values()) == books.statuses()
    assert [run.spared for run in year.runs] == books.spared
    assert [run.changed.get("full", 0) for run in year.runs] == books.evicted
    for pk, page in books.pages.items():
        if page["status"] == "live" and page["tier"] != "working":
            assert rows[pk].weight == pytest.approx(_weight(page)), page
            assert rows[pk].needs_review == page["flag"], page
            assert rows[pk].confidence == pytest.approx(page["good"] / (page["good"] + page["bad"]))


def _weight(page: dict) -> float:
    return page.get("weight", 1.0)


@pytest.mark.django_db
def test_a_year_ends_as_calculated(team, alice) -> None:
    year, books = a_year(team, alice, agents=3, memories=150, capacity=15, sweep_every=10, use_every=4)
    check(team, year, books)
    # It was a full year: nothing that is compared above was empty.
    assert {"live", "archived", "forgotten", "demoted"} <= set(books.statuses())
    assert sum(books.spared) > 0
    assert sum(books.evicted) > 0
    told = Counter(rule for run in year.runs for rule in run.changed)
    assert {"idle", "episode_idle", "lesson_idle", "unused", "transient", "failing", "lifted", "long_archived"} <= set(
        told
    )
