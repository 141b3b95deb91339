"""What an erasure has to take away: traces, and memories down to the last one distilled solely from them."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db.models import BooleanField, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from hindsight_site.accounts.models import Agent, IdempotencyKey, Team
from hindsight_site.refusals import NotFound
from memories.enums import RelationKind, Status
from memories.models import Evidence, Memory, Merge, Recall, Relation
from memories.safety.sessions import stored_session_id
from reflection.erasing.columns import holding
from reflection.erasing.targets import Target, TargetKind
from reflection.models import Step, Trace

Ids = set[uuid.UUID]
# Whether a stored answer says one of the ids under `session_id`, at any depth.
_NAMES_SESSION = "jsonb_path_exists(accounts_idempotencykey.body, '$.**.session_id ? (@ == $ids[*])', %s::jsonb)"


@dataclass(frozen=True, slots=True)
class Plan:
    """`memories` in the order in which they can go: what was distilled comes before what it was distilled from,
    so that an erasure that is interrupted finds the rest again."""

    traces: tuple[uuid.UUID, ...]
    memories: tuple[uuid.UUID, ...]
    losing_evidence: tuple[uuid.UUID, ...]  # they rest on other traces too, and stay


def plan(team: Team, target: Target) -> Plan:
    """Work out what goes. Call inside the team's transaction. Raises `NotFound` for an unknown agent or trace."""
    traces = _traces(team, target)
    levels = [_directly(team, target, traces)]
    gone = set(levels[0])
    while found := _resting_solely_on(team, traces, gone, _own(team, target)) - gone:
        gone |= found
        levels.append(found)
    resting = set(_evidence_of(team, traces).values_list("memory_id", flat=True)) - gone
    order = [pk for level in reversed(levels) for pk in sorted(level)]
    return Plan(tuple(sorted(traces)), tuple(order), tuple(sorted(resting)))


def agent_of(team: Team, target: Target) -> Agent:
    """The agent that a target names. Raises `NotFound`."""
    agent = Agent.objects.of(team).filter(slug=target.values[0]).first()
    if agent is None:
        raise NotFound(f"There is no agent {target.values[0]}.", code="agent_not_found")
    return agent


def recalls_of(team: Team, target: Target) -> QuerySet[Recall]:
    """The receipts that are the agent's or the session's own and still say what was asked."""
    if target.kind == TargetKind.AGENT:
        own = Recall.objects.of(team).filter(agent=agent_of(team, target))
    elif target.kind == TargetKind.SESSION:
        own = Recall.objects.of(team).filter(session_id=target.values[0])
    else:
        return Recall.objects.none()
    return own.exclude(query="", session_id="", options={})


def merges_of(team: Team, target: Target) -> QuerySet[Merge]:
    """What memories that stay took in from the agent or the session. That from traces goes with the traces."""
    return Merge.objects.of(team).filter(_own(team, target))


def answers_of(team: Team, target: Target) -> QuerySet[IdempotencyKey]:
    """The stored answers to calls of the agent, or to calls about the session; its recalls must still be there."""
    answers = IdempotencyKey.objects.of(team)
    if target.kind == TargetKind.AGENT:
        return answers.filter(token__agent=agent_of(team, target))
    if target.kind == TargetKind.SESSION:
        recalls = recalls_of(team, target).annotate(said=Cast("pk", TextField())).values("said")
        of_recalls = answers.alias(recall=KeyTextTransform("recall_id", "body")).filter(recall__in=recalls)
        names = RawSQL(_NAMES_SESSION, [json.dumps({"ids": _ids_of(target)})], output_field=BooleanField())  # noqa: S611
        return answers.filter(Q(names) | Q(pk__in=of_recalls.values("pk")))
    return answers.none()


def named_by(team: Team, target: Target) -> QuerySet[Memory]:
    """The living memories that name the session as theirs; those that others stand behind too only lose the name."""
    if target.kind != TargetKind.SESSION:
        return Memory.objects.none()
    return Memory.objects.of(team).exclude(status=Status.FORGOTTEN).filter(session_id=target.values[0])


def hanging(team: Team, target: Target) -> dict[str, int]:
    """How many rows name the agent or the session beside what `plan` takes: nothing afterwards."""
    return {
        "memories of the session": named_by(team, target).count(),
        "receipts": recalls_of(team, target).count(),
        "merges": merges_of(team, target).count(),
        "stored answers": answers_of(team, target).count(),
    }


def _own(team: Team, target: Target) -> Q:
    """The merges that are the agent's or the session's."""
    if target.kind == TargetKind.AGENT:
        return Q(agent=agent_of(team, target))
    if target.kind == TargetKind.SESSION:
        return Q(said__session_id__in=_ids_of(target))
    return Q(pk__in=[])


def _ids_of(target: Target) -> list[str]:
    """A session's id as it was sent and as it is stored."""
    return [target.values[0], stored_session_id(target.values[0])]


def chunks(ids: Iterable[uuid.UUID], size: int = 1_000) -> Iterator[list[uuid.UUID]]:
    """Cut many ids into lists that fit into a query."""
    rest = iter(ids)
    while part := list(islice(rest, size)):
        yield part


def _traces(team: Team, target: Target) -> Ids:
    traces = Trace.objects.of(team)
    if target.kind == TargetKind.AGENT:
        return set(traces.filter(agent=agent_of(team, target)).values_list("pk", flat=True))
    if target.kind == TargetKind.SESSION:
        return set(traces.filter(session_id=target.values[0]).values_list("pk", flat=True))
    if target.kind == TargetKind.TRACE:
        return set(traces.filter(pk=uuid.UUID(target.values[0])).values_list("pk", flat=True))
    told = set(holding(Trace, team, target.needles).values_list("pk", flat=True))
    return told | set(holding(Step, team, target.needles).values_list("trace_id", flat=True))


def _directly(team: Team, target: Target, traces: Ids) -> Ids:
    alive = Memory.objects.of(team).exclude(status=Status.FORGOTTEN)
    if target.kind == TargetKind.TRACE:
        return set()
    if target.kind == TargetKind.AGENT:
        agent = agent_of(team, target)
        private = set(alive.filter(scope__agent=agent).values_list("pk", flat=True))
        shared = set(alive.filter(agent=agent).values_list("pk", flat=True)) - private
        return private | (shared - _resting_on_others(team, shared, traces, _own(team, target)))
    if target.kind == TargetKind.SESSION:
        found = set(named_by(team, target).values_list("pk", flat=True))
        return found - _resting_on_others(team, found, traces, _own(team, target))
    # Its own words say it: it cannot stay, whatever it rests on.
    return set(holding(Memory, team, target.needles).exclude(status=Status.FORGOTTEN).values_list("pk", flat=True))


def _resting_on_others(team: Team, memories: Ids, traces: Ids, own: Q) -> Ids:
    """Those that rest on something else than these traces too, or took in what somebody else said (not `own`)."""
    on_others = {pk for pk, supports in _supports(team, memories).items() if supports - traces}
    return on_others | _taking_in_others(team, memories, set(), own)


def _taking_in_others(team: Team, memories: Ids, going: Ids, own: Q) -> Ids:
    """Those that took in what somebody else said without a trace: not `own`, and not promoted from what is `going`."""
    found: Ids = set()
    for part in chunks(memories):
        taken_in = Merge.objects.of(team).filter(memory__in=part, trace_id=None).exclude(own)
        rows = taken_in.values_list("memory_id", "origin_id")
        found |= {memory_id for memory_id, origin_id in rows if origin_id not in going}
    return found


def _resting_solely_on(team: Team, traces: Ids, memories: Ids, own: Q) -> Ids:
    """The memories all of whose evidence and origins are among these traces and memories."""
    candidates = set(_evidence_of(team, traces).values_list("memory_id", flat=True))
    for part in chunks(memories):
        edges = Relation.objects.of(team).filter(kind=RelationKind.DISTILLED_FROM, target__in=part)
        candidates |= set(edges.values_list("source_id", flat=True))
    going = traces | memories
    supports = _supports(team, candidates - memories)
    solely = {pk for pk, found in supports.items() if found and found <= going}
    return solely - _taking_in_others(team, solely, memories, own)


def _supports(team: Team, memories: Ids) -> dict[uuid.UUID, Ids]:
    """What each memory rests on: the traces of its evidence and the memories it was distilled from."""
    found: dict[uuid.UUID, Ids] = defaultdict(set)
    for part in chunks(memories):
        quotes = Evidence.objects.of(team).filter(memory__in=part).exclude(trace_id=None)
        for memory_id, trace_id in quotes.values_list("memory_id", "trace_id"):
            found[memory_id].add(trace_id)  # type: ignore[arg-type] # None was left out
        edges = Relation.objects.of(team).filter(kind=RelationKind.DISTILLED_FROM, source__in=part)
        for source_id, target_id in edges.values_list("source_id", "target_id"):
            found[source_id].add(target_id)
    return found


def _evidence_of(team: Team, traces: Iterable[uuid.UUID] | Sequence[uuid.UUID]) -> QuerySet[Evidence]:
    return Evidence.objects.of(team).filter(trace_id__in=list(traces))
