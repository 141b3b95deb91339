"""A token bound to an agent: with every scope there is, it is still the master of that agent's things only."""

from __future__ import annotations

from typing import Any

import pytest

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import scopes
from memories.models import Memory
from tests import factories
from tests.factories import ApiClient

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def second(team: Team, agent: Agent) -> ApiClient:
    """Another agent of the team, with every scope."""
    return factories.api_client(team, factories.agent(team, "second"))


def is_refused(answer: Any) -> None:
    assert answer.status_code == 403, answer.content
    body = answer.json()
    assert body["code"] == "team_token_needed"
    assert "speaks for the agent" in body["detail"]
    assert "Use a token of the team's own" in body["detail"]


def shared(client: ApiClient, content: str) -> str:
    body = {"kind": "fact", "content": content, "scope": "team"}
    return client.post(f"{API}/memories", body).json()["id"]


@pytest.mark.parametrize("method", ["patch", "delete"])
def test_its_own_record_and_no_other_agents(api, second, method) -> None:
    is_refused(getattr(second, method)(f"{API}/agents/coder", {"disabled": True}))
    assert api.get(f"{API}/me").status_code == 200, "the other agent works on"
    assert getattr(second, method)(f"{API}/agents/second", {"disabled": True}).status_code in {200, 204}
    assert second.get(f"{API}/me").status_code == 401, "it has switched itself off"


def test_it_makes_no_agents(second) -> None:
    is_refused(second.post(f"{API}/agents", {"slug": "third"}))
    assert second.get(f"{API}/agents/third").status_code == 404


def test_its_own_scope_and_no_shared_one(second, team_api) -> None:
    assert second.post(f"{API}/scopes", {"slug": "billing"}).status_code == 201
    for path, body in (("scopes/billing", {"name": "Mine"}), ("scopes/team", {"review_mode": "gate_all"})):
        is_refused(second.patch(f"{API}/{path}", body))
    is_refused(second.delete(f"{API}/scopes/billing"))
    grant = {"agent": "coder", "can_read": True, "can_write": False}
    is_refused(second.post(f"{API}/scopes/billing/grants", grant))
    assert second.patch(f"{API}/scopes/private-second", {"name": "Mine"}).status_code == 200
    assert second.post(f"{API}/scopes/private-second/grants", grant).status_code == 200
    assert team_api.post(f"{API}/scopes/billing/grants", grant).status_code == 200
    assert second.patch(f"{API}/scopes/private-coder", {"name": "Mine"}).status_code == 404, "not to be seen"


@pytest.mark.parametrize("by_verb", [True, False])
def test_it_deletes_what_it_wrote_itself(api, second, team_api, by_verb) -> None:
    def delete(client: ApiClient, memory_id: str) -> Any:
        address = f"{API}/memories/{memory_id}"
        return client.post(f"{address}/forget", {}) if by_verb else client.delete(address)

    own = second.post(f"{API}/memories", {"kind": "fact", "content": "Printers are upstairs."}).json()["id"]
    own_shared = shared(second, "The canteen opens at noon.")
    others, others_too = shared(api, "Releases are cut on Tuesdays."), shared(api, "Backups run at night.")
    is_refused(delete(second, others))
    assert second.get(f"{API}/memories/{others}").json()["status"] == "active"
    assert delete(second, own).status_code in {200, 204}
    assert delete(second, own_shared).status_code in {200, 204}
    assert delete(team_api, others).status_code in {200, 204}
    assert second.post(f"{API}/memories/{others_too}/archive", {}).status_code == 200, "archiving can be undone"


def test_what_others_wrote_into_its_private_scope_is_its_own(api, second, team, agent) -> None:
    with team_transaction(team):
        other = Agent.objects.of(team).get(slug="second")
        scopes.grant(
            team=team, by=factories.SYSTEM, scope=scopes.private_of(team, other), agent=agent, can_read=True,
            can_write=True,
        )  # fmt: skip
    body = {"kind": "fact", "content": "The canteen opens at noon.", "scope": "private-second"}
    made = api.post(f"{API}/memories", body).json()
    assert made["scope"] == "private-second"
    assert second.delete(f"{API}/memories/{made['id']}").status_code == 204


def test_the_audit_shows_what_its_own_tokens_did(api, second, team) -> None:
    shared(api, "Releases are cut on Tuesdays.")
    shared(second, "The canteen opens at noon.")
    seen = second.get(f"{API}/audit").json()["results"]
    assert seen
    assert {event["actor_kind"] for event in seen} == {"token"}
    assert {event["actor_label"].split(" ")[0] for event in seen} == {"second"}


def test_tokens_of_its_agent_only(api, second) -> None:
    listed = second.get(f"{API}/tokens").json()["results"]
    assert {token["agent"] for token in listed} == {"second"}
    assert second.post(f"{API}/tokens", {"name": "x", "scopes": ["admin"], "agent": "coder"}).status_code == 403
    made = second.post(f"{API}/tokens", {"name": "x", "scopes": ["admin"]}).json()
    assert made["agent"] == "second"


def test_a_team_token_may_all_of_it(team_api, api, team) -> None:
    memory = shared(api, "Releases are cut on Tuesdays.")
    assert team_api.post(f"{API}/agents", {"slug": "third"}).status_code == 201
    assert team_api.patch(f"{API}/agents/coder", {"name": "Coder"}).status_code == 200
    assert team_api.patch(f"{API}/scopes/team", {"name": "Team"}).status_code == 200
    assert team_api.delete(f"{API}/memories/{memory}").status_code == 204
    with team_transaction(team):
        assert Memory.objects.of(team).get(pk=memory).status == "forgotten"
