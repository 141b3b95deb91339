"""The large simulated year: 20 agents, 5,000 memories, feedback, verdicts, a sweep a day.

    pytest tests/evals/simulated_year.py -s --timeout=0

Not part of the suite: it takes minutes.
"""

from __future__ import annotations

import time

import pytest

from tests.memories.test_simulated_year import a_year, check


@pytest.mark.django_db
def test_a_large_year_ends_as_calculated(team, alice) -> None:
    started = time.monotonic()
    year, books = a_year(team, alice, agents=20, memories=5000, capacity=60, sweep_every=1, use_every=1)
    print(f"\n{len(year.log)} events, {len(year.runs)} sweeps in {time.monotonic() - started:.0f} s")
    print(f"{dict(books.statuses())}, spared {sum(books.spared)}, evicted {sum(books.evicted)}")
    check(team, year, books)
