"""What the next sweep would do, without doing it: under the team's policy, or under one not saved yet."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from hindsight_site.accounts.models import Team
from memories.enums import Rule, Tier
from memories.lifecycle import capacity, rules, sweep
from memories.models import Memory
from memories.policies import LIVE
from memories.policy import Life

EXAMPLES = 3  # of each rule
SHOWN_CHARS = 160
MOST = 20_000  # memories that a preview looks at


@dataclass(frozen=True, slots=True)
class Example:
    """A memory that a rule would change, and why."""

    memory: uuid.UUID
    content: str
    reason: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What one rule would do: to how many, and to which, for example."""

    rule: str
    label: str
    count: int
    examples: list[Example]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a sweep at this moment would do. `examined` is less than `total` in a very large team."""

    effects: list[Effect]
    examined: int
    total: int
    spared: int

    @property
    def changes(self) -> int:
        """How many memories would change."""
        return sum(effect.count for effect in self.effects)


@dataclass(slots=True)
class _Tally:
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[uuid.UUID, str]]] = field(default_factory=lambda: defaultdict(list))
    leaving: Counter[uuid.UUID] = field(default_factory=Counter)  # live memories by scope
    gone: set[uuid.UUID] = field(default_factory=set)

    def count(self, memory_id: uuid.UUID, rule: Rule, reason: str) -> None:
        self.counts[rule.value] += 1
        if len(self.examples[rule.value]) < EXAMPLES:
            self.examples[rule.value].append((memory_id, reason))


def preview(*, team: Team, life: Life, now: datetime, most: int = MOST) -> Preview:
    """Count what the rules would do to `team` at `now`. Reads only; call it in a transaction of the team."""
    memories = sweep.to_examine(team, life, now)
    tally, examined, spared = _Tally(), 0, 0
    cursor: uuid.UUID | None = None
    while examined < most and (rows := sweep.read(memories, cursor, min(sweep.BATCH, most - examined))):
        cursor, examined = rows[-1].id, examined + len(rows)
        spared += sum(rules.spared(row.vitals, life, now) is not None for row in rows)
        for row in rows:
            _tally(tally, row, rules.decide(row.vitals, life, now))
    _tally_evictions(tally, team, life, now)
    total = memories.count() if examined == most else examined
    return Preview(_effects(team, tally), examined, total, spared)


def _tally(tally: _Tally, row: sweep.Row, decision: rules.Decision | None) -> None:
    if decision is None:
        return
    tally.count(row.id, decision.rule, decision.reason)
    if decision.to and row.vitals.status in LIVE:
        tally.gone.add(row.id)
        tally.leaving[row.scope_id] += row.vitals.tier != Tier.WORKING


def _tally_evictions(tally: _Tally, team: Team, life: Life, now: datetime) -> None:
    """A scope that is still too full after the other rules would lose its lowest."""
    for scope, excess in sweep.overfull(team, life).items():
        staying = ((score, ident) for score, ident in sweep.scores(team, scope, life, now) if ident not in tally.gone)
        for ident in capacity.lowest(staying, excess - tally.leaving[scope]):
            tally.count(ident, Rule.FULL, "the scope is full")


def _effects(team: Team, tally: _Tally) -> list[Effect]:
    wanted = [ident for found in tally.examples.values() for ident, _ in found]
    texts = dict(Memory.objects.of(team).filter(pk__in=wanted).values_list("pk", "content"))
    return [
        Effect(
            rule=rule.value,
            label=str(rule.label),
            count=tally.counts[rule.value],
            examples=[
                Example(ident, texts.get(ident, "")[:SHOWN_CHARS], reason)
                for ident, reason in tally.examples[rule.value]
            ],
        )
        for rule in Rule
        if tally.counts[rule.value]
    ]
