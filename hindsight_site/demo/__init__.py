"""A small set of realistic traces, and the loop run over them: trace → lesson → recall → verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hindsight_site.accounts.audit import Actor, system
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import team_transaction
from reflection import actions, pipeline
from reflection.api.steps import read_steps
from reflection.drafts import TraceDraft
from reflection.enums import REFLECTION_OPEN
from reflection.models import Reflection, ReflectionResult, Trace

BY: Actor = system("demo")
SESSION = "demo"


@dataclass(frozen=True, slots=True)
class Told:
    """One trace of the demo, how its reflection ended, and what it wrote."""

    trace: Trace
    reflection: Reflection
    results: tuple[ReflectionResult, ...]


def drafts() -> list[TraceDraft]:
    """Return the traces that ship with the product."""
    rows = json.loads(Path(__file__).with_name("traces.json").read_text(encoding="utf-8"))
    return [TraceDraft(**{**row, "steps": read_steps(row["steps"]), "session_id": SESSION}) for row in rows]


def is_loaded(team: Team) -> bool:
    """Whether the demo ran in this team before."""
    with team_transaction(team):
        return Trace.objects.of(team).filter(session_id=SESSION).exists()


def tell(team: Team, agent: Agent) -> Iterator[Told]:
    """Record each trace and see its reflection through, one after the other."""
    for draft in drafts():
        with team_transaction(team):
            trace, reflection = actions.record_trace(team=team, by=BY, agent=agent, draft=draft)
        assert reflection is not None  # noqa: S101 - every trace of the demo has an outcome
        told = Told(trace, reflection, ())
        # A worker that runs beside us may be faster; whoever claims it does it, once.
        while told.reflection.status in REFLECTION_OPEN:
            pipeline.reflect(team, reflection.pk)
            told = _look(team, trace, reflection)
        yield told


def _look(team: Team, trace: Trace, reflection: Reflection) -> Told:
    with team_transaction(team):
        reflection.refresh_from_db()
        results = ReflectionResult.objects.of(team).filter(reflection=reflection).select_related("memory")
        return Told(trace, reflection, tuple(results))
