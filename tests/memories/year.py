"""A year of a team in an evening: what happens is drawn from a seed, written down, and done to the database.

The log that comes out is all that `tests.memories.ledger` knows. Days are counted from `BEGIN`.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.actions import FeedbackItem
from memories.enums import FailureClass, Kind, Status, Tier
from memories.lifecycle.sweep import sweep
from memories.models import Memory, SweepRun
from tests.memories.handing import handed_out
from tests.memories.lives import lives

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
DAYS = 365
KINDS = [Kind.TASK] * 5 + [Kind.EXPERIENCE] * 4 + [Kind.FACT] * 3 + [Kind.PREFERENCE, Kind.RELATION]
LIVE = (Status.CANDIDATE, Status.ACTIVE)


@dataclass
class Entry:
    """One thing that happened to one memory: `what` with its numbers."""

    day: float
    memory: uuid.UUID
    what: str  # born, hit, told, approved, demoted, pinned, restored
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Year:
    """The whole year: the log, when sweeps ran, and what each of them reported."""

    log: list[Entry]
    sweeps: list[float]
    runs: list[SweepRun]
    lessons: list[uuid.UUID] = field(default_factory=list)  # in the order they came in


def moment(day: float) -> datetime:
    return BEGIN + timedelta(days=day)


def live_through(
    team: Team,
    agents: list[Agent],
    person_: User,
    *,
    memories: int,
    seed: int,
    sweep_every: int = 1,
    use_every: int = 1,
) -> Year:
    """Let a year pass. Every `use_every` days memories are recalled and judged, every `sweep_every` swept at noon."""
    chance, year = random.Random(seed), Year([], [], [])
    born = sorted(chance.uniform(0, DAYS - 1) for _ in range(memories))
    known: list[uuid.UUID] = []
    for day in range(DAYS):
        today = [when for when in born if day <= when < day + 0.4]
        today += [day + 0.4 for when in born if day + 0.4 <= when < day + 1]
        known += _bear(agents, year, chance, today)
        if known and day % use_every == 0:
            _use(team, agents, year, chance, known, day)
            _judge(team, person_, year, chance, known, day)
        if day % sweep_every == 0:
            year.sweeps.append(day + 0.5)
            year.runs.append(sweep(team=team, now=moment(day + 0.5)))
    return year


def _bear(agents: list[Agent], year: Year, chance: random.Random, when: list[float]) -> list[uuid.UUID]:
    made: list[uuid.UUID] = []
    for day in when:
        agent, kind = chance.choice(agents), chance.choice(KINDS)
        tier = chance.choices([Tier.EPISODIC, Tier.SEMANTIC, Tier.WORKING], [80, 12, 8])[0]
        belief = chance.uniform(0.25, 0.9)
        facts: dict[str, Any] = {
            "scope": str(agent.pk), "kind": str(kind), "tier": str(tier), "belief": belief,
            "transient": tier == Tier.EPISODIC and chance.random() < 0.1,
            "ends": day + chance.uniform(0.01, 3) if tier == Tier.WORKING else None,
        }  # fmt: skip
        if tier != Tier.WORKING and chance.random() < 0.05:
            facts["ends"] = day + chance.uniform(5, 200)
        row = {
            "created_at": moment(day), "kind": kind, "tier": tier, "alpha": 2 * belief, "beta": 2 - 2 * belief,
            "confidence": belief, "expires_at": moment(facts["ends"]) if facts["ends"] is not None else None,
            "failure_class": FailureClass.TRANSIENT if facts["transient"] else FailureClass.NONE,
            "status": chance.choice([Status.ACTIVE, Status.ACTIVE, Status.CANDIDATE]), "id": _id(day, chance),
        }  # fmt: skip
        memory = lives(agent, [row])[0]
        year.log.append(Entry(day, memory.pk, "born", facts))
        year.lessons += [memory.pk] if kind == Kind.EXPERIENCE and tier != Tier.WORKING else []
        made.append(memory.pk)
    return made


def _id(day: float, chance: random.Random) -> uuid.UUID:
    """An id as the product makes them, but from the seed: it sorts by time, and the same year is drawn again."""
    milliseconds = int(moment(day).timestamp() * 1000)
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | chance.getrandbits(12) << 64 | 2 << 62 | chance.getrandbits(62))


def _use(team: Team, agents: list[Agent], year: Year, chance: random.Random, known: list[uuid.UUID], day: int) -> None:
    """Recall a few memories, some of them again and again, and tell what became of them."""
    asked = list(dict.fromkeys([chance.choice(known), *(pk for pk in year.lessons[-6:] if chance.random() < 0.5)]))
    again = [pk for pk in asked if chance.random() < 0.4]  # on the same day, perhaps by another agent
    for place, pk in enumerate([*asked, *again]):
        agent = chance.choice(agents[:2])
        when = day + (chance.uniform(0.41, 0.42) if place < len(asked) else chance.uniform(0.44, 0.449))
        with team_transaction(team):
            memory = Memory.objects.of(team).get(pk=pk)
            if memory.status not in (*LIVE, Status.ARCHIVED) or memory.tier == Tier.WORKING:
                continue
            recall = handed_out(agent, memory, at=moment(when))
            Memory.objects.of(team).filter(pk=pk).update(last_accessed_at=moment(when))
            year.log.append(Entry(when, pk, "hit"))
            if chance.random() < 0.8:
                # The id decides how often a memory is adopted, and whether it is any good.
                adopted = chance.random() < (0.05, 0.9, 0.9)[pk.int // 7 % 3]
                success = chance.random() < (0.05, 0.6, 0.95)[pk.int % 3]
                actions.give_feedback(
                    team=team, by=SYSTEM, recall=recall, items=[FeedbackItem(str(pk), adopted, success)]
                )
                facts = {"adopted": adopted, "success": success, "voice": agent.pk}
                year.log.append(Entry(when + 0.01, pk, "told", facts))


def _judge(team: Team, person_: User, year: Year, chance: random.Random, known: list[uuid.UUID], day: int) -> None:
    """What people do: judge what is flagged, approve, demote, pin, and bring something back."""
    with team_transaction(team):
        flagged = Memory.objects.of(team).filter(needs_review=True, status__in=LIVE).order_by("pk")
        chosen = list(flagged[:1]) if day % 10 == 0 else []
        chosen += list(Memory.objects.of(team).filter(pk=chance.choice(known)))
        for memory in chosen:
            if memory.tier == Tier.WORKING:
                continue
            verb = chance.choices(["approved", "demoted", "pinned", "nothing"], [30, 10, 8, 52])[0]
            if memory.needs_review and verb == "nothing":
                verb = "approved"
            if memory.status == Status.ARCHIVED and chance.random() < 0.5:
                verb = "restored"
            _do(team, person_, year, memory, verb, day + 0.46)


def _do(team: Team, person_: User, year: Year, memory: Memory, verb: str, when: float) -> None:
    who = {"team": team, "by": person(person_), "memory": memory}
    mine = Memory.objects.of(team).filter(pk=memory.pk)
    if verb == "restored":
        actions.restore(**who)
        mine.update(restored_at=moment(when), renewed_at=moment(when))
    elif memory.status not in LIVE or verb == "nothing":
        return
    elif verb == "approved":
        if memory.approved_at and memory.status == Status.ACTIVE and not memory.needs_review:
            return  # approving twice is nothing
        actions.approve(**who)
        mine.update(approved_at=moment(when))
    elif verb == "demoted":
        actions.demote(**who)
    elif memory.pinned:
        return
    else:
        actions.pin(**who)
    year.log.append(Entry(when, memory.pk, verb))
