"""Carrying decisions out: many memories in one transaction, each decided again under its lock."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from memories import indexing
from memories.actions import forget_many
from memories.actions.changing import GOVERNED, fingerprint
from memories.enums import Rule, Status
from memories.lifecycle.rules import Decision, Vitals
from memories.models import Memory
from memories.policies import can_move

# What the rules look at, in the order of `Vitals`.
COLUMNS = tuple(Vitals.__dataclass_fields__)
_READ = tuple(
    dict.fromkeys(["team_id", "scope_id", "fingerprint", "revision", "session_id", "sequence", *GOVERNED, *COLUMNS])
)
_VERBS = {Rule.FAILING: "memory.flagged", Rule.LIFTED: "memory.strengthened"}

_UPDATE = """
    UPDATE memories_memory m
    SET status = d.status, weight = d.weight, fades = d.fades::jsonb, needs_review = d.needs_review,
        archived_at = d.archived_at, archived_by = d.archived_by, updated_at = %(now)s
    FROM unnest(%(id)s::uuid[], %(status)s::text[], %(weight)s::float8[], %(fades)s::text[],
                %(needs_review)s::boolean[], %(archived_at)s::timestamptz[], %(archived_by)s::text[])
         AS d(id, status, weight, fades, needs_review, archived_at, archived_by)
    WHERE m.team_id = %(team)s AND m.id = d.id
"""
_WRITTEN = ("status", "weight", "fades", "needs_review", "archived_at", "archived_by")


def vitals_of(memory: Memory) -> Vitals:
    """The numbers of a memory that the rules look at."""
    return Vitals(**{name: getattr(memory, name) for name in COLUMNS})


def carry_out(
    *,
    team: Team,
    by: Actor,
    memory_ids: Sequence[uuid.UUID],
    decide: Callable[[Vitals], Decision | None],
    now: datetime,
) -> Counter[str]:
    """Decide about each memory under its lock and write what was decided. Returns how many, by rule.

    Call it inside a transaction of the team. A memory that somebody else is writing is skipped: the
    next sweep comes back to it.
    """
    if not memory_ids:
        return Counter()
    rows = Memory.objects.of(team).filter(pk__in=list(memory_ids)).order_by("pk").only(*_READ)
    locked = rows.select_for_update(skip_locked=True, no_key=True, of=("self",))
    decided = [(memory, decision) for memory in locked if (decision := decide(vitals_of(memory))) is not None]
    valid = [(m, d) for m, d in decided if not d.to or can_move(m, d.to)]
    for rule in (Rule.WORKING_OVER, Rule.LONG_ARCHIVED):
        leaving = [memory for memory, decision in valid if decision.rule == rule]
        forget_many(team=team, by=by, memories=leaving, reason=str(rule.label))
    _write(team, by, [(m, d) for m, d in valid if d.to != Status.FORGOTTEN], now)
    return Counter(decision.rule.value for _, decision in valid)


def _write(team: Team, by: Actor, decided: list[tuple[Memory, Decision]], now: datetime) -> None:
    if not decided:
        return
    changes = []
    for memory, decision in decided:
        before = fingerprint(memory)
        _set(memory, decision, now)
        changes.append(_event(memory, decision, before))
    columns: dict[str, list[Any]] = {name: [getattr(m, name) for m, _ in decided] for name in _WRITTEN}
    columns["fades"] = [json.dumps(fades) for fades in columns["fades"]]
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, {**columns, "id": [m.pk for m, _ in decided], "team": team.pk, "now": now})
    archived = [memory.pk for memory, decision in decided if decision.to == Status.ARCHIVED]
    if archived:
        indexing.set_statuses(team, archived, Status.ARCHIVED)
    audit.record_many(team=team, by=by, changes=changes)


def _set(memory: Memory, decision: Decision, now: datetime) -> None:
    """Put the decision on the memory in hand."""
    memory.weight, memory.fades = decision.weight, decision.fades
    memory.needs_review = memory.needs_review or decision.flag
    if decision.to:
        memory.status, memory.archived_at, memory.archived_by = decision.to, now, decision.rule.value


def _event(memory: Memory, decision: Decision, before: str) -> audit.Change:
    verb = "memory.archived" if decision.to else _VERBS.get(decision.rule, "memory.faded")
    detail = {"rule": decision.rule.value, "reason": decision.reason, "status": memory.status}
    return audit.Change(
        verb=verb,
        object_type="memory",
        object_id=str(memory.pk),
        before=before,
        after=fingerprint(memory),
        detail={**detail, "weight": round(decision.weight, 4)},
    )
