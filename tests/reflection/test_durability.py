"""Hundreds of runs, delivered twice and in any order, with workers that die: each ends once, or visibly dead."""

from __future__ import annotations

import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Evidence, Memory
from reflection import lease, pipeline, tasks
from reflection.models import Reflection
from tests import factories

RUNS = int(os.environ.get("HINDSIGHT_RUNS", "100"))
KILLED = RUNS // 5  # at their first attempt
ALWAYS_KILLED = 5  # at every attempt
WORKERS = 6


def queue(agent: Agent) -> list[str]:
    """Record the traces. Each names a month of its own, so that none merges into another."""
    queued = []
    for number in range(RUNS):
        _, reflection = factories.trace(agent, task=f"Export the invoices of the customer number {number} as CSV")
        queued.append(str(reflection.pk))
    return queued


def work(team: Team, deliveries: list[str]) -> None:
    """Deliver the wake-ups to several workers at once."""

    def one(pk: str) -> str:
        try:
            return pipeline.reflect(team, pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, deliveries))


def die(team: Team, queued: list[str]) -> None:
    """A worker claims each and is killed: nothing of it is left but the claim, whose lease runs out."""
    for pk in queued:
        assert lease.claim(team, pk) is not None
    with team_transaction(team):
        past = timezone.now() - timedelta(seconds=1)
        Reflection.objects.of(team).filter(pk__in=queued).update(lease_until=past)


@pytest.mark.django_db(transaction=True)
def test_every_run_ends_once_or_visibly_dead(agent) -> None:
    team, dice = agent.team, random.Random(300)
    queued = queue(agent)
    dead, killed = queued[:ALWAYS_KILLED], queued[ALWAYS_KILLED:KILLED]
    die(team, [*dead, *killed])
    deliveries = [pk for pk in queued if pk not in dead] * 2
    dice.shuffle(deliveries)
    work(team, deliveries)
    for _ in range(2):
        die(team, dead)
    assert tasks.sweep_jobs() == f"0 woken, {ALWAYS_KILLED} buried"
    assert tasks.sweep_jobs() == "0 woken, 0 buried"
    with team_transaction(team):
        ended = Counter(Reflection.objects.of(team).values_list("status", "attempts"))
        assert ended == {
            ("failed", 3): ALWAYS_KILLED,
            ("stored", 2): KILLED - ALWAYS_KILLED,
            ("stored", 1): RUNS - KILLED,
        }
        # One episode of each trace that was looked at, none of the others, none twice.
        episodes = Memory.objects.of(team).filter(kind="task")
        traces = list(
            Evidence.objects.of(team).filter(memory__in=episodes).values_list("trace_id", flat=True).distinct()
        )
        assert len(traces) == len(set(traces)) == RUNS - ALWAYS_KILLED
        assert episodes.count() == RUNS - ALWAYS_KILLED
        # The lesson that all of them show was written once, and every trace counted once.
        lesson = Memory.objects.of(team).get(kind="experience")
        assert lesson.support_count == RUNS - ALWAYS_KILLED
