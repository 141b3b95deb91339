"""What the tests of conflicts, quarantine, merging and promotion say and look up."""

from __future__ import annotations

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, scopes
from memories.actions import Draft, EvidenceDraft
from memories.enums import Kind, RelationKind
from memories.models import Memory, Relation, Scope
from reflection.drafts import StepDraft
from tests import factories

PORT_OLD = "The staging database listens on port 5432."
PORT_NEW = "The staging database listens on port 5433."
DO = "Retry the payment call after a timeout."
DONT = "Do not retry the payment call after a timeout."


def evidence(agent: Agent, said: str = "it says so") -> EvidenceDraft:
    """A quote from a trace of its own: an independent source."""
    steps = (StepDraft(role="tool", kind="tool_result", content=said),)
    trace, _ = factories.trace(agent, outcome="", task="Look it up", steps=steps)
    with team_transaction(agent.team):
        step = trace.steps.get()
    # As from a trace that the agent's own token sent.
    end, quote = len(step.text), step.text
    return EvidenceDraft(trace.pk, step.pk, step.sequence, step.role, 0, end, quote, witness_id=agent.pk)


def say(agent: Agent, content: str, *, scope: Scope | None = None, by_trace: bool = False, **fields) -> Memory:
    """What `agent` remembers, from a new trace of its own when `by_trace`."""
    quotes = (evidence(agent),) if by_trace else fields.pop("evidence", ())
    with team_transaction(agent.team):
        draft = Draft(**{"kind": Kind.FACT, "content": content, "evidence": quotes, **fields})
        into = scope or scopes.private_of(agent.team, agent)
        return actions.remember(team=agent.team, by=SYSTEM, scope=into, draft=draft, agent=agent).memory


def conflict_of(memory: Memory) -> Relation:
    with team_transaction(memory.team):
        edges = Relation.objects.of(memory.team).filter(kind=RelationKind.CONTRADICTS)
        return edges.select_related("source", "target").get()


def fresh(memory: Memory) -> Memory:
    with team_transaction(memory.team):
        return Memory.objects.of(memory.team).select_related("scope", "agent", "team").get(pk=memory.pk)
