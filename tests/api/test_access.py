"""Tokens, idempotency keys, agents and scopes, and the form of errors."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import credentials
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import ApiToken
from memories.models import Memory
from tests import factories

pytestmark = pytest.mark.django_db


def test_me(api) -> None:
    me = api.get("/api/v1/me").json()
    assert (me["team"], me["agent"], me["writes_to"]) == ("acme", "coder", "private-coder")
    assert me["searches"] == ["private-coder", "team"]


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Basic eDp5", "Bearer hs_aaaaaaaa_" + "A" * 43, "Bearer é"]
)
def test_no_or_a_wrong_token_is_401(client, header) -> None:
    headers = {"HTTP_AUTHORIZATION": header} if header else {}
    answer = client.get("/api/v1/me", **headers)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer["Content-Type"] == "application/problem+json"


def test_a_token_stops_at_once(api, team, agent) -> None:
    token = ApiToken.objects.of(team).get(prefix=api.secret[3:11])
    accounts.change_agent(team=team, by=SYSTEM, agent=agent, disabled=True)
    assert "disabled" in api.get("/api/v1/me").json()["detail"]
    accounts.change_agent(team=team, by=SYSTEM, agent=agent, disabled=False)
    assert api.get("/api/v1/me").status_code == 200
    team.suspended_at = timezone.now()
    team.save()
    assert "suspended" in api.get("/api/v1/me").json()["detail"]
    team.suspended_at = None
    team.save()
    accounts.revoke_token(team=team, by=SYSTEM, token=token)
    assert "revoked" in api.get("/api/v1/me").json()["detail"]


def test_an_expired_token(api, team) -> None:
    ApiToken.objects.of(team).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired" in api.get("/api/v1/me").json()["detail"]


def test_the_secret_is_not_stored(api, team) -> None:
    stored = ApiToken.objects.of(team).values().first()
    assert api.secret.split("_", 2)[2] not in str(stored)
    minted = credentials.mint()
    assert credentials.SECRET.fullmatch(minted.secret)
    assert len(minted.digest) == 32


def test_scopes_beyond_the_creators_are_refused(team) -> None:
    from hindsight_site.refusals import Invalid

    with pytest.raises(Invalid, match="hand out: admin"):
        accounts.create_token(team=team, by=SYSTEM, name="t", scopes=["admin"], allowed=["memory:read"])


def test_an_idempotency_key_gives_the_same_answer_once(api) -> None:
    body = {"content": "Written once.", "kind": "fact"}
    first = api.post("/api/v1/memories", body, HTTP_IDEMPOTENCY_KEY="k1")
    again = api.post("/api/v1/memories", body, HTTP_IDEMPOTENCY_KEY="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert Memory.objects.count() == 1
    other = api.post("/api/v1/memories", {**body, "content": "Another."}, HTTP_IDEMPOTENCY_KEY="k1")
    assert other.status_code == 409
    assert other.json()["code"] == "idempotency_key_reused"


def test_a_refused_request_may_use_its_key_again(api) -> None:
    assert api.post("/api/v1/memories", {"kind": "fact"}, HTTP_IDEMPOTENCY_KEY="k").status_code == 422
    done = api.post("/api/v1/memories", {"kind": "fact", "content": "x y"}, HTTP_IDEMPOTENCY_KEY="k")
    assert done.status_code == 201


@pytest.mark.django_db(transaction=True)
def test_an_idempotency_key_holds_under_parallel_calls(api) -> None:
    ids = []

    def post() -> None:
        client = factories.ApiClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {api.secret}")
        ids.append(client.post("/api/v1/traces", {"task": "t"}, HTTP_IDEMPOTENCY_KEY="same").json()["id"])
        connection.close()

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 6
    assert len(set(ids)) == 1


def test_agents(team_api) -> None:
    made = team_api.post("/api/v1/agents", {"slug": "support-bot", "name": "Support"})
    assert made.status_code == 201
    assert team_api.post("/api/v1/agents", {"slug": "support-bot"}).status_code == 409
    assert team_api.post("/api/v1/agents", {"slug": "No Good!"}).status_code == 422
    assert team_api.patch("/api/v1/agents/support-bot", {"name": "Help"}).json()["name"] == "Help"
    assert team_api.delete("/api/v1/agents/support-bot").status_code == 204
    assert team_api.get("/api/v1/agents/support-bot").json()["disabled"] is True
    assert team_api.get("/api/v1/agents/nobody").status_code == 404


def test_scopes(api, team_api) -> None:
    made = api.post("/api/v1/scopes", {"slug": "billing", "name": "Billing", "kind": "shared"})
    assert made.status_code == 201
    grants = team_api.get("/api/v1/scopes/billing/grants").json()["results"]
    assert grants == [{"agent": "coder", "can_read": True, "can_write": True}]
    for slug in ("private-coder", "private", "Ümlaut", "private-x"):
        assert api.post("/api/v1/scopes", {"slug": slug}).status_code == 422
    assert api.post("/api/v1/memories", {"content": "x y z", "kind": "fact", "scope": "billing"}).status_code == 201
    assert team_api.delete("/api/v1/scopes/billing").status_code == 409
    assert team_api.delete("/api/v1/scopes/team").status_code == 409
    assert api.post("/api/v1/recall", {"query": "x", "scopes": ["nowhere"]}).status_code == 404


def test_a_gated_scope_waits_for_a_person(api, team_api) -> None:
    team_api.patch("/api/v1/scopes/team", {"review_mode": "gate_all"})
    made = api.post("/api/v1/memories", {"content": "Hold me back.", "kind": "fact", "scope": "team"}).json()
    assert (made["status"], made["needs_review"]) == ("candidate", True)


def test_unknown_addresses_are_problems_too(api) -> None:
    answer = api.get("/api/v1/nothing-here")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert api.put("/api/v1/me", {}).status_code == 405
    assert api.get("/api/v1/memories/not-a-uuid").status_code == 404


def test_a_request_id_is_kept_when_it_is_one(api) -> None:
    assert api.get("/api/v1/me", HTTP_X_REQUEST_ID="my-trace-12345")["X-Request-ID"] == "my-trace-12345"
    forged = api.get("/api/v1/me", HTTP_X_REQUEST_ID='x"}\nforged: 1')["X-Request-ID"]
    assert len(forged) == 32
