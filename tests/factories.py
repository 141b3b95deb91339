"""Small makers of real rows, through the same actions as the product."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils import timezone
from rest_framework.test import APIClient

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import connected_clients
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import Agent, ConnectedClient, Membership, Team, User
from hindsight_site.accounts.oauth_clients import Client
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions as memory_actions
from memories import scopes
from memories.actions import Draft
from memories.enums import Kind, Status
from memories.models import Memory
from reflection import actions as reflection_actions
from reflection.drafts import StepDraft, TraceDraft
from reflection.models import Reflection, Trace

PASSWORD = "correct horse battery"
ALL_SCOPES = TokenScope.values


class ApiClient(APIClient):
    """REST framework's client with a token; posts JSON."""

    team: Team
    agent: Agent | None
    secret: str


def team(slug: str, owner: str) -> Team:
    user = User.objects.create_user(owner, PASSWORD)
    return accounts.create_team(by=SYSTEM, name=slug.title(), slug=slug, owner=user)


def member(in_team: Team, email: str, role: str) -> User:
    with team_transaction(in_team):
        user = User.objects.create_user(email, PASSWORD)
        Membership.objects.create(team=in_team, user=user, role=role)
        return user


def agent(in_team: Team, slug: str) -> Agent:
    with team_transaction(in_team):
        return scopes.add_agent(team=in_team, by=SYSTEM, slug=slug)


def token(
    in_team: Team, bound_to: Agent | None, token_scopes: Iterable[str] = ALL_SCOPES, acts_for: User | None = None
) -> str:
    with team_transaction(in_team):
        _, secret = accounts.create_token(
            team=in_team, by=SYSTEM, name="test", scopes=token_scopes, allowed=ALL_SCOPES, agent=bound_to,
            on_behalf_of=acts_for,
        )  # fmt: skip
        return secret


def api_client(
    in_team: Team, bound_to: Agent | None, token_scopes: Iterable[str] = ALL_SCOPES, acts_for: User | None = None
) -> ApiClient:
    """A client with a new token; with `acts_for` one that stands for that person."""
    client = ApiClient()
    client.team, client.agent = in_team, bound_to
    client.secret = token(in_team, bound_to, token_scopes, acts_for)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {client.secret}")
    return client


def connected_client(of: Agent, person: User, token_scopes: Iterable[str] = ("memory:read",)) -> ConnectedClient:
    """An MCP client that `person` has connected, its code redeemed."""
    client = Client("https://client.test/mcp", "A client", ("http://127.0.0.1/back",), "client.test")
    verifier = "v" * 43
    with team_transaction(of.team):
        code = connected_clients.allow(
            team=of.team, by=SYSTEM, person=person, agent=of, client=client, redirect_uri="http://127.0.0.1/back",
            challenge=connected_clients.challenge_of(verifier), scopes=token_scopes, allowed=ALL_SCOPES,
        )  # fmt: skip
        connected_clients.redeem(
            team=of.team, code=code, client_id=client.id, redirect_uri="http://127.0.0.1/back", verifier=verifier
        )
        return connected_clients.of_team(of.team)[0]


def memory(of: Agent, content: str = "Run the migrations before the tests.", **fields: Any) -> Memory:
    """A memory in the agent's private scope; `status` is set directly when given."""
    with team_transaction(of.team):
        status = fields.pop("status", None)
        draft = Draft(**{"kind": Kind.FACT, "content": content, **fields})
        done = memory_actions.remember(
            team=of.team, by=SYSTEM, scope=scopes.private_of(of.team, of), draft=draft, agent=of
        )
        if status is not None and status != Status.ACTIVE:
            Memory.objects.of(of.team).filter(pk=done.memory.pk).update(status=status, updated_at=timezone.now())
            done.memory.refresh_from_db()
        return done.memory


def failing_then_fixed() -> tuple[StepDraft, ...]:
    """A tool call that fails, changes one argument, and works."""
    return (
        StepDraft(role="user", content="Export the March invoices as CSV."),
        StepDraft(role="assistant", kind="tool_call", tool="export", arguments={"month": "March", "format": "csv"}),
        StepDraft(
            role="tool",
            kind="tool_result",
            tool="export",
            is_error=True,
            content="Error: month must be given as YYYY-MM, got 'March'",
        ),
        StepDraft(role="assistant", kind="tool_call", tool="export", arguments={"month": "2026-03", "format": "csv"}),
        StepDraft(role="tool", kind="tool_result", tool="export", content='{"rows": 412, "file": "invoices.csv"}'),
        StepDraft(role="assistant", content="The 412 March invoices are in invoices.csv."),
    )


def trace(of: Agent, outcome: str = "succeeded", **fields: Any) -> tuple[Trace, Reflection | None]:
    """A recorded trace; by default one with an error, its fix and an end."""
    with team_transaction(of.team):
        given = {"task": "Export the March invoices as CSV", "steps": failing_then_fixed(), "outcome": outcome}
        return reflection_actions.record_trace(
            team=of.team, by=SYSTEM, agent=of, draft=TraceDraft(**{**given, **fields})
        )
