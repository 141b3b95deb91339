"""What the demo's agent is told outright: a shared scope with two facts that cannot both hold, and a stale one."""

from __future__ import annotations

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.demo import BY
from memories import actions, scopes
from memories.actions import Draft
from memories.enums import Kind, Tier
from memories.models import Scope

SHARED = "playbook"
STALE = "Parcels are announced by fax."
FACTS = (
    ("The staging database listens on port 5432.", "staging database", "port", "5432"),
    ("The staging database listens on port 5433.", "staging database", "port", "5433"),
    (STALE, "parcels", "announced by", "fax"),
)


def share(team: Team, agent: Agent) -> Scope:
    """Return the shared scope with the facts in it. A second call changes nothing."""
    with team_transaction(team):
        scope = Scope.objects.of(team).filter(slug=SHARED).first()
        if scope is not None:
            return scope
        scope = scopes.create_shared(
            team=team, by=BY, slug=SHARED, name="Playbook", agent=agent, description="What every agent should know."
        )
        for content, subject, predicate, value in FACTS:
            structure = {"subject": subject, "predicate": predicate, "object": value}
            draft = Draft(content=content, kind=Kind.FACT, tier=Tier.SEMANTIC, structure=structure)
            actions.remember(team=team, by=BY, scope=scope, draft=draft, agent=agent)
        return scope
