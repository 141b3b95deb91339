"""How fast a trace is taken in: one of 100 steps, no model called."""

from __future__ import annotations

import time

from django.db import transaction

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import enter_team
from memories import scopes
from memories.evaluation.report import Figure
from reflection.actions import record_trace
from reflection.drafts import StepDraft, TraceDraft

STEPS = 100
TRACES = 25


def measure() -> Figure:
    """Record traces in a team of their own; everything is undone at the end, so the commit is not in it."""
    steps = tuple(
        StepDraft(
            role="assistant" if i % 2 else "tool",
            kind="tool_call" if i % 2 else "tool_result",
            tool="search",
            content=f"Step {i}: looked into part {i} of the report and found {i * 7} rows, nothing unusual among them.",
        )
        for i in range(STEPS)
    )
    times = []
    with transaction.atomic():
        team = Team.objects.create(name="Recording", slug=f"evaluation-{new_id().hex}")
        enter_team(team)
        scopes.team_scope(team)
        agent = scopes.add_agent(team=team, by=SYSTEM, slug="recorder")
        for number in range(TRACES):
            draft = TraceDraft(task=f"Look through report {number}", steps=steps, outcome="succeeded")
            started = time.perf_counter()
            record_trace(team=team, by=SYSTEM, agent=agent, draft=draft)
            times.append((time.perf_counter() - started) * 1000)
        transaction.set_rollback(True)
    return Figure(
        f"record_trace of {STEPS} steps, p50 ms", sorted(times)[TRACES // 2], TRACES, 40.0, 15.0, at_most=True
    )
