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
from memories.models import Evidence, Memory, MemoryTerms, MemoryVector
from reflection import lease, pipeline, tasks
from reflection.invariants.checks import CHECKS
from reflection.models import Reflection, ReflectionResult
from tests import factories

RUNS = int(os.environ.get("HINDSIGHT_RUNS", "100"))
KILLED = RUNS // 5  # at their first attempt
ALWAYS_KILLED = 5  # at every attempt
WORKERS = 6
STRIDE = int(os.environ.get("HINDSIGHT_STRIDE", "5"))  # statements between two deaths; 1: at every one


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


class Killed(BaseException):
    """The worker is gone: no handler of ours runs."""


def killed_at(statement: int, team: Team, pk: object) -> bool:
    """Run a reflection and die before its statement of that number; whether it came to that."""
    count = 0

    def die_there(execute, sql, params, many, context):
        nonlocal count
        count += 1
        if count == statement:
            raise Killed
        return execute(sql, params, many, context)

    with connection.execute_wrapper(die_there):
        try:
            pipeline.reflect(team, pk)
        except Killed:
            return True
    return False


@pytest.mark.django_db
@pytest.mark.parametrize("by", ["rules", "model"])
def test_a_death_at_any_statement_leaves_nothing_or_everything(agent, settings, model_server, by) -> None:
    if by == "model":
        settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
        settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
    _, reflection = factories.trace(agent)
    team, statement = agent.team, 1
    while killed_at(statement, team, reflection.pk):
        reflection.refresh_from_db()
        if reflection.status == "stored":
            break  # at the commit itself: everything is there
        tables = (Memory, Evidence, ReflectionResult, MemoryTerms, MemoryVector)
        assert [table.objects.of(team).count() for table in tables] == [0] * 5, f"left by a death at {statement}"
        assert reflection.status in ("queued", "running"), "it will be taken up again"
        past = timezone.now() - timedelta(seconds=1)
        Reflection.objects.filter(pk=reflection.pk, status="running").update(lease_until=past, attempts=0)
        statement += STRIDE
    reflection.refresh_from_db()
    assert (reflection.status, reflection.error) == ("stored", "")
    assert statement > 40, "the deaths came in every part of the run"
    assert Memory.objects.of(team).count() == reflection.results.count() > 0
    assert not [check.name for check in CHECKS if check.broken(team).exists()]
