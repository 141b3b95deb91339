"""Which agent a call speaks for. The token decides; a team's own token may name one of its agents."""

from __future__ import annotations

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.models import Agent
from hindsight_site.refusals import FieldError, Forbidden, Invalid, NotFound


def acting_agent(caller: Caller, slug: str | None) -> Agent | None:
    """Return the agent that `caller` speaks for; None for a team token that names none.

    A token bound to an agent speaks for that one only.
    """
    if caller.agent is not None:
        if slug not in (None, "", caller.agent.slug):
            raise Forbidden(f"This token speaks for the agent {caller.agent.slug} only.", code="other_agent")
        return caller.agent
    if not slug:
        return None
    agent = Agent.objects.of(caller.team).filter(slug=slug).first()
    if agent is None:
        raise NotFound(f"There is no agent {slug}.", code="agent_not_found")
    if agent.disabled_at is not None:
        raise Forbidden(f"The agent {slug} is disabled.", code="agent_disabled")
    return agent


def need_agent(caller: Caller, slug: str | None) -> Agent:
    """Like `acting_agent`, for calls that make no sense without one."""
    agent = acting_agent(caller, slug)
    if agent is None:
        message = "is needed: this token is the team's own, so say which agent you are."
        raise Invalid(f"agent {message}", errors=(FieldError("agent", message, "required"),))
    return agent
