"""Who may: roles as sets of permissions, and the token scopes a role may hand out."""

from __future__ import annotations

from hindsight_site.accounts.enums import TeamRole, TokenScope
from hindsight_site.accounts.models import Agent, Membership
from hindsight_site.refusals import Forbidden

READ = "read"  # see memories, traces, metrics
REVIEW = "review"  # approve, demote, edit, archive, restore
CONNECT = "connect"  # create agents and tokens
READ_AUDIT = "read_audit"  # who did what
MANAGE = "manage"  # people, scopes, policy, opening a batch early
OWN = "own"  # transfer and delete the team

_VIEWER = frozenset({READ})
_REVIEWER = _VIEWER | {REVIEW}
_ADMIN = _REVIEWER | {CONNECT, MANAGE, READ_AUDIT}
_OWNER = _ADMIN | {OWN}

ROLES: dict[str, frozenset[str]] = {
    TeamRole.OWNER: _OWNER,
    TeamRole.ADMIN: _ADMIN,
    TeamRole.REVIEWER: _REVIEWER,
    TeamRole.VIEWER: _VIEWER,
}

# The roles that a role may give and take, by invitation too.
ROLES_IN_GIFT: dict[str, frozenset[str]] = {
    TeamRole.OWNER: frozenset(TeamRole.values),
    TeamRole.ADMIN: frozenset(TeamRole.values) - {TeamRole.OWNER},
    TeamRole.REVIEWER: frozenset(),
    TeamRole.VIEWER: frozenset(),
}

_AGENT_SCOPES = frozenset({TokenScope.MEMORY_READ, TokenScope.MEMORY_WRITE, TokenScope.TRACE_WRITE, TokenScope.REFLECT})
TOKEN_SCOPES: dict[str, frozenset[str]] = {
    TeamRole.OWNER: frozenset(TokenScope.values),
    TeamRole.ADMIN: frozenset(TokenScope.values),
    TeamRole.REVIEWER: frozenset({TokenScope.MEMORY_READ, TokenScope.REVIEW}),
    TeamRole.VIEWER: frozenset({TokenScope.MEMORY_READ}),
}
# What an agent needs to run the whole loop, and nothing more.
DEFAULT_TOKEN_SCOPES = sorted(_AGENT_SCOPES)

EXPLANATIONS = {
    READ: "read this team's memories",
    REVIEW: "judge memories",
    CONNECT: "connect agents",
    MANAGE: "manage this team",
    READ_AUDIT: "read the audit",
    OWN: "transfer or delete this team",
}

WHAT_ROLES_MAY = (
    (TeamRole.OWNER.label, "everything, and hand over or delete the team"),
    (TeamRole.ADMIN.label, "manage people, agents, tokens and settings"),
    (TeamRole.REVIEWER.label, "judge, edit, archive and restore memories"),
    (TeamRole.VIEWER.label, "read memories, traces and metrics"),
)


def can(membership: Membership, permission: str) -> bool:
    """Tell whether this person may, in the team of this membership."""
    return permission in ROLES[membership.role]


def check_can(membership: Membership, permission: str) -> None:
    """Raise `Forbidden` when this person may not."""
    if not can(membership, permission):
        raise Forbidden(
            f"Your role ({membership.get_role_display()}) may not {EXPLANATIONS[permission]}. "
            "Ask an owner or admin of the team."
        )


def check_whole_team(agent: Agent | None, what: str) -> None:
    """Raise `Forbidden` when a token speaks for one agent (`agent`), whatever its scopes.

    Such a token reaches as far as its agent: `admin` makes it the master of that agent's own things, not of
    the team. `what` completes "may not". See docs/adr/0008.
    """
    if agent is not None:
        raise Forbidden(
            f"This token speaks for the agent {agent.slug} only and may not {what}. "
            "Use a token of the team's own, one that is bound to no agent.",
            code="team_token_needed",
        )
