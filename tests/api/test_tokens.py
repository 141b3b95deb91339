"""auth/token and tokens: exchanging, listing, making, changing, rotating and revoking over REST."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from hindsight_site.accounts import access_tokens, actions
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import ApiToken, AuditEvent, IdempotencyKey, Membership
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories
from tests.factories import ALL_SCOPES, ApiClient

pytestmark = pytest.mark.django_db

EXCHANGE, TOKENS = "/api/v1/auth/token", "/api/v1/tokens"


def with_bearer(credential: str) -> ApiClient:
    client = ApiClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {credential}")
    return client


def exchanged(client: ApiClient, **body: Any) -> str:
    answer = client.post(EXCHANGE, body)
    assert answer.status_code == 200, answer.json()
    return answer.json()["access_token"]


def make(client: ApiClient, **fields: Any) -> dict[str, Any]:
    answer = client.post(TOKENS, {"name": "ci", "scopes": ["memory:read"], **fields})
    assert answer.status_code == 201, answer.json()
    return answer.json()


def last_event(team) -> AuditEvent:
    return AuditEvent.objects.of(team).latest("at")


# --- The exchange -------------------------------------------------------------------------------------


def test_exchange(api) -> None:
    answer = api.post(EXCHANGE, {})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    body = answer.json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 600)
    assert body["scope"] == " ".join(sorted(factories.ALL_SCOPES))
    me = with_bearer(body["access_token"]).get("/api/v1/me").json()
    assert (me["team"], me["agent"], me["token"]) == ("acme", "coder", f"hs_{api.secret[3:11]}_…")


def test_fewer_scopes(api) -> None:
    narrow = with_bearer(exchanged(api, scope="memory:read"))
    assert narrow.get("/api/v1/me").json()["token_scopes"] == ["memory:read"]
    assert narrow.get("/api/v1/agents").status_code == 200
    refusal = narrow.post("/api/v1/memories", {"content": "x y z", "kind": "fact"})
    assert (refusal.status_code, refusal.json()["code"]) == (403, "insufficient_scope")


def test_never_more_scopes(agent) -> None:
    weak = factories.api_client(agent.team, agent, ["memory:read"])
    answer = weak.post(EXCHANGE, {"scope": "memory:read admin"})
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "admin" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body", [{"scope": "root"}, {"scope": ""}, {"scope": ["admin"]}, {"scope": None}, {"audience": "x"}, []]
)
def test_wrong_exchanges(api, body) -> None:
    assert api.post(EXCHANGE, body).status_code == 422


def test_the_audience(api) -> None:
    for_mcp = exchanged(api, audience="mcp")
    assert access_tokens.read(for_mcp, audience=Audience.MCP)
    answer = with_bearer(for_mcp).get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "wrong_audience")


def test_an_access_token_cannot_be_exchanged_again(api) -> None:
    answer = with_bearer(exchanged(api)).post(EXCHANGE, {})
    assert (answer.status_code, answer.json()["code"]) == (401, "not_exchangeable")
    assert with_bearer("").post(EXCHANGE, {}).status_code == 401


def test_no_payload_key_moves_the_token(api, other_agent) -> None:
    signed = exchanged(api, team="rival", team_id=str(other_agent.team_id), agent="spy")
    assert with_bearer(signed).get("/api/v1/me").json()["team"] == "acme"


def test_revoking_stops_access_tokens_at_once(api, team) -> None:
    working = with_bearer(exchanged(api))
    assert working.get("/api/v1/me").status_code == 200
    actions.revoke_token(team=team, by=SYSTEM, token=ApiToken.objects.of(team).get(prefix=api.secret[3:11]))
    answer = working.get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")


def test_what_an_access_token_does_is_told_of_its_api_token(api, team) -> None:
    with_bearer(exchanged(api)).post("/api/v1/scopes", {"slug": "billing"})
    assert f"hs_{api.secret[3:11]}" in AuditEvent.objects.of(team).get(verb="scope.created").actor_label
    assert ApiToken.objects.of(team).get(prefix=api.secret[3:11]).last_used_at is not None


# --- Managing tokens ----------------------------------------------------------------------------------


def test_a_new_token_works_and_its_secret_is_shown_once(team_api, agent) -> None:
    answer = team_api.post(TOKENS, {"name": "ci", "scopes": ["memory:read", "reflect"], "agent": "coder"})
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    made = answer.json()
    assert (made["name"], made["agent"], made["scopes"]) == ("ci", "coder", ["memory:read", "reflect"])
    assert made["works"] is True
    assert made["secret"].startswith(f"hs_{made['prefix']}_")
    me = with_bearer(made["secret"]).get("/api/v1/me").json()
    assert (me["agent"], me["token_scopes"]) == ("coder", ["memory:read", "reflect"])
    for address in (TOKENS, f"{TOKENS}/{made['prefix']}"):
        assert made["secret"] not in str(team_api.get(address).content)


def test_listing_and_reading(team_api, other_api) -> None:
    made = make(team_api)
    listed = team_api.get(TOKENS).json()["results"]
    assert [row["prefix"] for row in listed] == [made["prefix"], team_api.secret[3:11]]
    read = team_api.get(f"{TOKENS}/{made['prefix']}").json()
    assert read == listed[0]
    assert set(read) == {
        "prefix", "name", "agent", "scopes", "works", "created_at", "expires_at", "revoked_at", "last_used_at"
    }  # fmt: skip
    assert team_api.get(f"{TOKENS}/hs_{made['prefix']}").json() == read
    assert team_api.get(f"{TOKENS}/nosuchon").status_code == 404


def test_a_long_list_takes_no_more_queries(team_api, agent, django_assert_max_num_queries) -> None:
    for _ in range(6):
        make(team_api, agent="coder")
    # The savepoint and its end, the caller's token, the team's setting, the list; nothing per token.
    with django_assert_max_num_queries(8):
        assert len(team_api.get(TOKENS).json()["results"]) == 7


@pytest.mark.parametrize("verb", ["get", "patch", "delete", "rotate"])
def test_another_teams_token_is_404(team_api, other_api, verb) -> None:
    address = f"{TOKENS}/{other_api.secret[3:11]}"
    if verb == "rotate":
        answer = team_api.post(f"{address}/rotate", {})
    else:
        answer = getattr(team_api, verb)(address, **({"data": {"name": "mine"}} if verb == "patch" else {}))
    assert (answer.status_code, answer.json()["code"]) == (404, "token_not_found")
    assert other_api.get("/api/v1/me").status_code == 200


def test_admin_is_needed(agent) -> None:
    scopes = [scope for scope in factories.ALL_SCOPES if scope != "admin"]
    client = factories.api_client(agent.team, None, scopes)
    own = client.secret[3:11]
    answers = [
        client.get(TOKENS), client.post(TOKENS, {"name": "x", "scopes": ["memory:read"]}),
        client.get(f"{TOKENS}/{own}"), client.patch(f"{TOKENS}/{own}", {"name": "x"}),
        client.delete(f"{TOKENS}/{own}"), client.post(f"{TOKENS}/{own}/rotate", {}),
    ]  # fmt: skip
    assert [answer.status_code for answer in answers] == [403] * 6
    narrowed = with_bearer(exchanged(factories.api_client(agent.team, None), scope="memory:read"))
    assert narrowed.get(TOKENS).status_code == 403


def test_no_scope_is_handed_out_that_the_caller_lacks(team) -> None:
    weak = factories.api_client(team, None, ["admin", "memory:read"])
    answer = weak.post(TOKENS, {"name": "x", "scopes": ["memory:read", "memory:write"]})
    assert (answer.status_code, answer.json()["code"]) == (422, "scope_beyond_role")
    assert answer.json()["errors"][0]["field"] == "scopes"
    # An access token counts for what it was narrowed to, not for what its ApiToken may.
    strong = factories.api_client(team, None)
    narrowed = with_bearer(exchanged(strong, scope="admin memory:read"))
    assert narrowed.post(TOKENS, {"name": "x", "scopes": ["reflect"]}).status_code == 422
    assert narrowed.post(TOKENS, {"name": "x", "scopes": ["memory:read"]}).status_code == 201
    itself = f"{TOKENS}/{strong.secret[3:11]}"
    assert narrowed.post(f"{itself}/rotate", {}).status_code == 403
    weaker = make(strong)["prefix"]
    assert narrowed.patch(f"{TOKENS}/{weaker}", {"scopes": ["memory:read", "reflect"]}).status_code == 422


def test_a_stronger_token_is_neither_rotated_nor_raised(team) -> None:
    weak = factories.api_client(team, None, ["admin", "memory:read"])
    strong = make(factories.api_client(team, None), scopes=["memory:read", "reflect"])["prefix"]
    answer = weak.post(f"{TOKENS}/{strong}/rotate", {})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_beyond_role")
    raised = weak.patch(f"{TOKENS}/{strong}", {"scopes": ["memory:read", "reflect", "review"]})
    assert raised.status_code == 422
    assert ApiToken.objects.of(team).get(prefix=strong).scopes == ["memory:read", "reflect"]
    # Taking away is fine, and what it had already may stay.
    kept = weak.patch(f"{TOKENS}/{strong}", {"scopes": ["reflect"]})
    assert kept.json()["scopes"] == ["reflect"]


def test_a_token_of_an_agent_manages_that_agents_tokens_only(api, team_api, team) -> None:
    factories.agent(team, "other")
    others = make(team_api, agent="other")["prefix"]
    teams = make(team_api)["prefix"]
    assert {row["agent"] for row in api.get(TOKENS).json()["results"]} == {"coder"}
    for prefix in (others, teams):
        assert api.get(f"{TOKENS}/{prefix}").status_code == 404
        assert api.post(f"{TOKENS}/{prefix}/rotate", {}).status_code == 404
    assert api.post(TOKENS, {"name": "x", "scopes": ["admin"], "agent": "other"}).status_code == 403
    assert make(api)["agent"] == "coder"


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": []}, {"scopes": ["root"]}, {"scopes": "memory:read"}, {"name": ""}, {"name": "x" * 121},
        {"expires_at": "2026-01-01T00:00:00"}, {"expires_at": "2020-01-01T00:00:00Z"}, {"scopes": None},
    ],
)  # fmt: skip
def test_wrong_input(team_api, wrong) -> None:
    answer = team_api.post(TOKENS, {"name": "ci", "scopes": ["memory:read"], **wrong})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].partition(".")[0] == next(iter(wrong))


def test_an_unknown_agent(team_api) -> None:
    answer = team_api.post(TOKENS, {"name": "x", "scopes": ["reflect"], "agent": "nobody"})
    assert answer.status_code == 404


def test_changing(team_api, team) -> None:
    prefix = make(team_api)["prefix"]
    ends = (timezone.now() + timedelta(days=3)).replace(microsecond=0)
    wanted = {"name": "nightly", "scopes": ["reflect", "memory:read"], "expires_at": ends.isoformat()}
    changed = team_api.patch(f"{TOKENS}/{prefix}", wanted).json()
    assert (changed["name"], changed["scopes"]) == ("nightly", ["memory:read", "reflect"])
    assert changed["expires_at"] == ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert team_api.get(f"{TOKENS}/{prefix}").json() == changed
    verbs = AuditEvent.objects.of(team).order_by("at").values_list("verb", flat=True)
    assert list(verbs)[-3:] == ["token.renamed", "token.scopes_changed", "token.expiry_changed"]
    assert last_event(team).actor_kind == "token"
    assert team_api.patch(f"{TOKENS}/{prefix}", {"expires_at": None}).json()["expires_at"] is None
    assert team_api.patch(f"{TOKENS}/{prefix}", {}).json()["name"] == "nightly"


def test_a_change_is_whole_or_not_at_all(team_api) -> None:
    prefix = make(team_api)["prefix"]
    past = (timezone.now() - timedelta(days=1)).isoformat()
    assert team_api.patch(f"{TOKENS}/{prefix}", {"name": "new", "expires_at": past}).status_code == 422
    assert team_api.get(f"{TOKENS}/{prefix}").json()["name"] == "ci"


def test_revoking(team_api, team) -> None:
    made = make(team_api)
    address = f"{TOKENS}/{made['prefix']}"
    assert team_api.delete(address).status_code == 204
    assert with_bearer(made["secret"]).get("/api/v1/me").status_code == 401
    seen = team_api.get(address).json()
    assert seen["works"] is False
    assert seen["revoked_at"] is not None
    assert team_api.delete(address).status_code == 204
    assert AuditEvent.objects.of(team).filter(verb="token.revoked").count() == 1
    for answer in (
        team_api.patch(address, {"scopes": ["memory:read"]}), team_api.patch(address, {"expires_at": None}),
        team_api.post(f"{address}/rotate", {}),
    ):  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (409, "token_revoked")


def test_an_expired_token_is_not_brought_back(team_api, team) -> None:
    prefix = make(team_api)["prefix"]
    ApiToken.objects.of(team).filter(prefix=prefix).update(expires_at=timezone.now())
    answer = team_api.patch(f"{TOKENS}/{prefix}", {"expires_at": None})
    assert (answer.status_code, answer.json()["code"]) == (409, "token_expired")


# --- Rotation -----------------------------------------------------------------------------------------


def test_rotating_ends_the_old_secret_at_once(team_api, agent, team) -> None:
    ends = timezone.now() + timedelta(days=30)
    old = make(team_api, agent="coder", scopes=["memory:read", "reflect"], expires_at=ends.isoformat())
    signed = exchanged(with_bearer(old["secret"]))
    answer = team_api.post(f"{TOKENS}/{old['prefix']}/rotate", {})
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    new = answer.json()
    assert new["prefix"] != old["prefix"]
    same = ("name", "agent", "scopes", "expires_at")
    assert {key: new[key] for key in same} == {key: old[key] for key in same}
    assert with_bearer(new["secret"]).get("/api/v1/me").status_code == 200
    assert with_bearer(old["secret"]).get("/api/v1/me").status_code == 401
    assert with_bearer(signed).get("/api/v1/me").json()["code"] == "token_revoked"
    event = last_event(team)
    assert (event.verb, event.detail) == ("token.rotated", {"replaced_by": new["prefix"], "grace_seconds": 0})


def test_a_grace_lets_the_old_secret_work_on(team_api, agent, team) -> None:
    old = make(team_api)
    new = team_api.post(f"{TOKENS}/{old['prefix']}/rotate", {"grace_seconds": 3600}).json()
    for one in (old, new):
        assert with_bearer(one["secret"]).get("/api/v1/me").status_code == 200
    row = ApiToken.objects.of(team).get(prefix=old["prefix"])
    assert timedelta(minutes=59) < row.expires_at - timezone.now() <= timedelta(hours=1)
    assert new["expires_at"] is None


def test_a_grace_does_not_outlive_the_old_expiry(team_api, team) -> None:
    ends = timezone.now() + timedelta(minutes=5)
    old = make(team_api, expires_at=ends.isoformat())
    team_api.post(f"{TOKENS}/{old['prefix']}/rotate", {"grace_seconds": 3600})
    assert ApiToken.objects.of(team).get(prefix=old["prefix"]).expires_at == ends


@pytest.mark.parametrize("grace", [-1, 86401, "soon", None])
def test_a_wrong_grace(team_api, grace) -> None:
    prefix = make(team_api)["prefix"]
    assert team_api.post(f"{TOKENS}/{prefix}/rotate", {"grace_seconds": grace}).status_code == 422
    assert team_api.get(f"{TOKENS}/{prefix}").json()["works"] is True


def test_a_token_may_rotate_itself(team) -> None:
    client = factories.api_client(team, None)
    new = client.post(f"{TOKENS}/{client.secret[3:11]}/rotate", {}).json()
    assert client.get("/api/v1/me").status_code == 401
    assert with_bearer(new["secret"]).get(TOKENS).status_code == 200


def test_a_replay_makes_nothing_and_holds_no_secret(team_api, team) -> None:
    body = {"name": "ci", "scopes": ["memory:read"]}
    first = team_api.post(TOKENS, body, HTTP_IDEMPOTENCY_KEY="k").json()
    again = team_api.post(TOKENS, body, HTTP_IDEMPOTENCY_KEY="k")
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == {**first, "secret": None}
    address = f"{TOKENS}/{first['prefix']}/rotate"
    new = team_api.post(address, {}, HTTP_IDEMPOTENCY_KEY="r").json()
    assert team_api.post(address, {}, HTTP_IDEMPOTENCY_KEY="r").json() == {**new, "secret": None}
    with team_transaction(team):
        assert ApiToken.objects.of(team).count() == 3
    kept = str(list(IdempotencyKey.objects.of(team).values_list("body", flat=True)))
    assert first["secret"] not in kept
    assert new["secret"] not in kept
    assert first["prefix"] in kept


@pytest.mark.django_db(transaction=True)
def test_two_rotations_at_once_make_one_new_token(team_api, team) -> None:
    old = make(team_api)["prefix"]
    gate = threading.Barrier(4)
    statuses: list[int] = []

    def rotate() -> None:
        client = with_bearer(team_api.secret)
        gate.wait()
        statuses.append(client.post(f"{TOKENS}/{old}/rotate", {}).status_code)
        connection.close()

    threads = [threading.Thread(target=rotate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 409, 409, 409]
    with team_transaction(team):
        assert ApiToken.objects.of(team).count() == 3


def test_what_a_persons_token_makes_ends_with_the_person(team, bob) -> None:
    with team_transaction(team):
        Membership.objects.of(team).filter(user=bob).update(role="admin")
        _, secret = actions.create_token(
            team=team, by=SYSTEM, name="script", scopes=["admin", "memory:read"], allowed=ALL_SCOPES, on_behalf_of=bob
        )
    client = ApiClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    made = client.post("/api/v1/tokens", {"name": "eternal", "scopes": ["admin", "memory:read"]})
    assert made.status_code == 201, made.json()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.json()['secret']}")
    assert client.get("/api/v1/tokens").status_code == 200
    with team_transaction(team):
        Membership.objects.of(team).filter(user=bob).update(role="viewer")
    assert client.get("/api/v1/tokens").status_code == 403
    with team_transaction(team):
        Membership.objects.of(team).filter(user=bob).delete()
    assert client.get("/api/v1/me").status_code == 401
