"""People connect MCP clients: the whole way, and everything that tries to get around it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from hindsight_site.accounts import access_tokens, people
from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import (
    ApiToken,
    AuditEvent,
    AuthorizationCode,
    ConnectedClient,
    Membership,
    RefreshToken,
    User,
)
from hindsight_site.accounts.permissions import ROLES_IN_GIFT
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories
from tests.accounts.oauth_steps import (
    REDIRECT,
    answer_of,
    code_from,
    decide,
    exchange,
    post,
    question,
    redeem,
    registered,
    renew,
)

pytestmark = pytest.mark.django_db
GIFT = ROLES_IN_GIFT["owner"]


@pytest.fixture
def client_id() -> str:
    return registered()


@pytest.fixture
def tokens(client_id, agent, alice, browse) -> dict[str, Any]:
    """What a client has after alice pressed Allow."""
    return redeem(code_from(browse(alice), client_id), client_id).json()


def is_error(answer: Any, error: str, status: int = 400) -> str:
    assert answer.status_code == status, answer.content
    body = answer.json()
    assert body["error"] == error, body
    assert body["error_description"].isascii()
    assert answer["Cache-Control"] == "no-store"
    return body["error_description"]


def opens(access: str) -> frozenset[str]:
    """What an access token may at the MCP endpoint. Raises `BadCredential`."""
    return access_tokens.read(access, audience=Audience.MCP).scopes


def is_dead(tokens: dict[str, Any], client_id: str) -> bool:
    with pytest.raises(BadCredential):
        opens(tokens["access_token"])
    return is_error(renew(tokens["refresh_token"], client_id), "invalid_grant") != ""


# --- The way ------------------------------------------------------------------------------------------


def test_the_whole_way(client_id, team, agent, alice, browse, settings) -> None:
    browser = browse(alice)
    page = browser.get("/oauth/authorize", question(client_id))
    assert page.status_code == 200
    text = page.content.decode()
    assert "Test client" in text
    assert "a program on this computer" in text
    assert "nobody vouches for it" in text
    assert "read memories, and recall" in text
    back = decide(browser, question(client_id))
    assert back["Location"].startswith(f"{REDIRECT}?")
    answer = answer_of(back)
    assert (answer["state"], answer["iss"]) == ("s-1", settings.SITE_URL)
    granted = redeem(answer["code"], client_id, resource=f"{settings.SITE_URL}/mcp")
    assert granted.status_code == 200, granted.content
    assert (granted["Cache-Control"], granted["Pragma"]) == ("no-store", "no-cache")
    body = granted.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope", "refresh_token"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 600, "memory:read memory:write")
    verified = access_tokens.read(body["access_token"], audience=Audience.MCP)
    assert (verified.token.team, verified.token.agent, verified.token.on_behalf_of) == (team, agent, alice)
    assert verified.scopes == {"memory:read", "memory:write"}
    with pytest.raises(BadCredential):
        access_tokens.read(body["access_token"], audience=Audience.REST)
    with team_transaction(team):
        verbs = AuditEvent.objects.of(team).filter(actor_id=str(alice.pk)).values_list("verb", flat=True)
        assert {"client.allowed", "client.connected"} <= set(verbs)


def test_no_secret_is_kept(tokens, team) -> None:
    with team_transaction(team):
        kept = [
            str({name: bytes(value) if isinstance(value, memoryview) else value for name, value in row.items()})
            for model in (ApiToken, AuthorizationCode, ConnectedClient, RefreshToken, AuditEvent)
            for row in model.objects.of(team).values()
        ]
    assert len(kept) > 4
    secret = tokens["refresh_token"].rpartition("_")[2]
    assert not any(secret in row or tokens["access_token"] in row for row in kept)


def test_denying_sends_back_without_a_code(client_id, team, agent, alice, browse, settings) -> None:
    for decision in ("deny", None, "anything"):
        answer = answer_of(decide(browse(alice), question(client_id), decision=decision))
        assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "s-1", settings.SITE_URL)
        assert "code" not in answer
    with team_transaction(team):
        assert not AuthorizationCode.objects.of(team).exists()


def test_who_is_not_logged_in_logs_in_first(client_id) -> None:
    for answer in (
        Client().get("/oauth/authorize", question(client_id)),
        Client().post("/oauth/authorize?" + urlencode(question(client_id)), {"decision": "allow"}),
    ):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/login/?next=/oauth/authorize%3F")


def test_every_request_asks_anew(tokens, client_id, alice, browse) -> None:
    assert browse(alice).get("/oauth/authorize", question(client_id)).status_code == 200


def test_renewing_rotates(tokens, client_id) -> None:
    second = renew(tokens["refresh_token"], client_id).json()
    assert second["refresh_token"] != tokens["refresh_token"]
    assert opens(second["access_token"]) == {"memory:read", "memory:write"}
    third = renew(second["refresh_token"], client_id, scope="memory:read").json()
    assert third["scope"] == "memory:read"
    assert opens(third["access_token"]) == {"memory:read"}
    assert renew(third["refresh_token"], client_id).json()["scope"] == "memory:read memory:write"


def test_a_client_of_the_stores_kind_comes_back_to_its_app(agent, alice, browse) -> None:
    uri = "cursor://anysphere.cursor-mcp/oauth/callback?x=1"
    client_id = registered(uri)
    page = browse(alice).get("/oauth/authorize", question(client_id, redirect_uri=uri))
    assert "form-action 'self' cursor:" in page["Content-Security-Policy"]
    back = decide(browse(alice), question(client_id, redirect_uri=uri))
    assert back["Location"].startswith(f"{uri}&code=hsc_")


# --- Where nobody is sent anywhere --------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:4711/other",
        "http://127.0.0.1:4711/back?more=1",
        "http://127.0.0.1:4711/back#x",
        "http://127.0.0.1:47\n12/back",
        "http://127.0.0.1:4712/ba\tck",
        "http://evil@127.0.0.1:4711/back",
        "http://localhost:4711/back",
        "https://127.0.0.1:4711/back",
        "http://127.0.0.1.evil.test/back",
        "http://127.0.0.1:4711@evil.test/back",
        "http://127.0.0.1:x/back",
        "https://evil.test/back",
        "//evil.test/back",
        "javascript:alert(1)",
        "",
        None,
    ],
)
def test_an_address_that_is_not_registered(client_id, agent, alice, browse, uri) -> None:
    browser, asked = browse(alice), question(client_id, redirect_uri=uri)
    for answer in (
        browser.get("/oauth/authorize", asked),
        browser.post("/oauth/authorize?" + urlencode(asked), {"agent": "coder", "decision": "allow"}),
    ):
        assert answer.status_code == 400
        assert "Location" not in answer
        assert "cannot be connected" in answer.content.decode()


def test_only_the_port_may_differ_and_only_on_loopback(agent, alice, browse) -> None:
    own = registered("http://127.0.0.1/back", "https://app.test/back")
    other_port = browse(alice).get("/oauth/authorize", question(own, redirect_uri="http://127.0.0.1:59999/back"))
    assert other_port.status_code == 200
    elsewhere = browse(alice).get("/oauth/authorize", question(own, redirect_uri="https://app.test:8443/back"))
    assert elsewhere.status_code == 400


def test_a_client_that_does_not_exist(agent, alice, browse) -> None:
    changed = registered()[:-3] + "abc"
    for ident in ("", "x", changed, "hsc.", "http://app.test/mcp", "https://app.test", "https://app.test/../x"):
        answer = browse(alice).get("/oauth/authorize", question(ident))
        assert answer.status_code == 400, ident
        assert "Location" not in answer


def test_a_parameter_twice(client_id, agent, alice, browse) -> None:
    doubled = urlencode(question(client_id)) + "&redirect_uri=https://evil.test"
    assert browse(alice).get(f"/oauth/authorize?{doubled}").status_code == 400
    doubled = urlencode(question(client_id)) + "&scope=admin"
    assert answer_of(browse(alice).get(f"/oauth/authorize?{doubled}"))["error"] == "invalid_request"


# --- Mistakes that the client is told -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "!" * 43}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"resource": "https://elsewhere.test/mcp"}, "invalid_target"),
        ({"scope": "openid offline_access"}, "invalid_scope"),
        ({"state": "s" * 3000}, "invalid_request"),
    ],
)
def test_what_the_client_is_told(client_id, agent, alice, browse, settings, changes, error) -> None:
    back = browse(alice).get("/oauth/authorize", question(client_id, **changes))
    assert back["Location"].startswith(f"{REDIRECT}?error={error}&")
    assert answer_of(back)["iss"] == settings.SITE_URL


def test_the_rest_resource_is_not_for_clients_of_people(client_id, agent, alice, browse, settings) -> None:
    back = browse(alice).get("/oauth/authorize", question(client_id, resource=f"{settings.SITE_URL}/api/v1"))
    assert answer_of(back)["error"] == "invalid_target"


# --- The page -----------------------------------------------------------------------------------------


def test_the_form_wants_the_pages_token(client_id, agent, alice) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    address = "/oauth/authorize?" + urlencode(question(client_id))
    form = {"agent": "coder", "scopes": "memory:read", "decision": "allow"}
    assert strict.post(address, form).status_code == 403
    strict.get(address)
    form["csrfmiddlewaretoken"] = strict.cookies["csrftoken"].value
    assert strict.post(address, form).status_code == 303


def test_the_page_cannot_be_framed_or_kept(client_id, agent, alice, browse) -> None:
    page = browse(alice).get("/oauth/authorize", question(client_id))
    assert page["X-Frame-Options"] == "DENY"
    policy = page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:4711" in policy
    assert "no-store" in page["Cache-Control"]


def test_names_cannot_draw_on_the_page(agent, alice, browse) -> None:
    client_id = registered(name='<script>x</script>\u202eevil\nline "')
    text = browse(alice).get("/oauth/authorize", question(client_id)).content.decode()
    assert "<script>x" not in text
    assert "\u202e" not in text


def test_nobody_gives_more_than_their_role_has(client_id, agent, bob, carol, browse) -> None:
    wanted = "memory:read memory:write review admin"
    for user, may in ((carol, {"memory:read"}), (bob, {"memory:read", "review"})):
        asked = question(client_id, scope=wanted)
        assert "what your role may not give" in browse(user).get("/oauth/authorize", asked).content.decode()
        refused = decide(browse(user), asked, scopes=["memory:read", "admin"])
        assert refused.status_code == 422
        assert "nothing beyond your own role" in refused.content.decode()
        code = answer_of(decide(browse(user), asked, scopes=sorted(may)))["code"]
        assert opens(redeem(code, client_id).json()["access_token"]) == may


def test_nobody_gives_what_was_not_asked_for(client_id, agent, alice, browse) -> None:
    assert decide(browse(alice), question(client_id), scopes=["admin"]).status_code == 422
    assert decide(browse(alice), question(client_id), scopes=None).status_code == 422


def test_without_scopes_an_agents_are_asked_for(client_id, agent, alice, browse) -> None:
    text = browse(alice).get("/oauth/authorize", question(client_id, scope=None)).content.decode()
    assert "trace:write" in text
    assert 'value="admin"' not in text


def test_another_teams_agent_cannot_be_chosen(client_id, agent, other_agent, alice, browse) -> None:
    for changes in ({"agent": "spy"}, {"agent": ""}, {"agent": "nobody"}):
        assert decide(browse(alice), question(client_id), **changes).status_code == 422
    foreign = decide(browse(alice), question(client_id), team=str(other_agent.team_id), agent="spy")
    assert foreign.status_code == 403


def test_the_team_is_chosen_on_the_page(client_id, agent, other_agent, alice, browse) -> None:
    with team_transaction(other_agent.team):
        Membership.objects.create(team=other_agent.team, user=alice, role="viewer")
    browser, team_id = browse(alice), str(other_agent.team_id)
    assert "Choose this team" in browser.get("/oauth/authorize", question(client_id)).content.decode()
    page = browser.get("/oauth/authorize", {**question(client_id), "team": team_id}).content.decode()
    assert "Rival" in page
    assert 'value="memory:write"' not in page
    answer = answer_of(decide(browser, question(client_id), team=team_id, agent="spy", scopes=["memory:read"]))
    verified = access_tokens.read(redeem(answer["code"], client_id).json()["access_token"], audience=Audience.MCP)
    assert verified.token.team == other_agent.team


def test_a_disabled_agent_cannot_be_chosen(client_id, agent, alice, browse) -> None:
    with team_transaction(agent.team):
        accounts.change_agent(team=agent.team, by=SYSTEM, agent=agent, disabled=True)
    page = browse(alice).get("/oauth/authorize", question(client_id)).content.decode()
    assert "has no agent yet" in page
    assert decide(browse(alice), question(client_id)).status_code == 422


# --- Codes --------------------------------------------------------------------------------------------


def test_a_replayed_code_closes_what_it_opened(client_id, team, agent, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    tokens = redeem(code, client_id).json()
    assert opens(tokens["access_token"])
    is_error(redeem(code, client_id), "invalid_grant")
    assert is_dead(tokens, client_id)
    with team_transaction(team):
        event = AuditEvent.objects.of(team).get(verb="client.disconnected")
        assert (event.actor_kind, event.actor_label) == ("system", "replay of a code")


@pytest.mark.parametrize("verifier", ["", "b" * 43, "short", "é" * 43, "a" * 200])
def test_a_code_without_its_verifier(client_id, agent, alice, browse, verifier) -> None:
    code = code_from(browse(alice), client_id)
    error = "invalid_grant" if verifier else "invalid_request"
    is_error(redeem(code, client_id, code_verifier=verifier), error)


def test_the_challenge_is_no_verifier(client_id, agent, alice, browse) -> None:
    challenge = question(client_id)["code_challenge"]
    is_error(redeem(code_from(browse(alice), client_id), client_id, code_verifier=challenge), "invalid_grant")


def test_a_code_of_another_client(client_id, agent, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    is_error(redeem(code, registered(name="Other")), "invalid_grant")
    assert redeem(code, client_id).status_code == 200  # which the other could not spoil


def test_a_code_for_another_address(client_id, agent, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    is_error(redeem(code, client_id, redirect_uri="http://127.0.0.1:4712/back"), "invalid_grant")
    is_error(redeem(code, client_id), "invalid_grant")  # spent


def test_an_old_code(client_id, team, agent, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    with team_transaction(team):
        AuthorizationCode.objects.of(team).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired" in is_error(redeem(code, client_id), "invalid_grant")


def test_a_code_of_another_team(client_id, agent, other_team, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    moved = code.replace(agent.team_id.hex, other_team.pk.hex)
    is_error(redeem(moved, client_id), "invalid_grant")
    for made_up in ("x", "hsc_" + "0" * 32 + "_" + "A" * 43, code.replace("hsc_", "hsr_")):
        is_error(redeem(made_up, client_id), "invalid_grant")


@pytest.mark.parametrize("missing", ["code", "client_id", "redirect_uri", "code_verifier"])
def test_what_an_exchange_needs(client_id, agent, alice, browse, missing) -> None:
    code = code_from(browse(alice), client_id)
    given = {"code": code, "client_id": client_id, missing: None}
    assert missing in is_error(redeem(**given), "invalid_request")


def test_another_resource_at_the_exchange(client_id, tokens, agent, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    is_error(redeem(code, client_id, resource="https://elsewhere.test/mcp"), "invalid_target")
    is_error(renew(tokens["refresh_token"], client_id, resource="https://elsewhere.test/mcp"), "invalid_target")


def test_what_happened_between_consent_and_exchange_counts(client_id, team, agent, alice, bob, browse) -> None:
    code = code_from(browse(bob), client_id, scopes=["memory:read"])
    with team_transaction(team):
        people.remove(team=team, by=SYSTEM, membership=Membership.objects.of(team).get(user=bob), allowed=GIFT)
    is_error(redeem(code, client_id), "invalid_grant")
    with team_transaction(team):
        assert not ConnectedClient.objects.of(team).exists()


# --- Refresh tokens -----------------------------------------------------------------------------------


def test_a_refresh_token_used_twice_ends_all_of_them(tokens, client_id, team) -> None:
    second = renew(tokens["refresh_token"], client_id).json()
    is_error(renew(tokens["refresh_token"], client_id), "invalid_grant")
    assert is_dead(second, client_id)
    with team_transaction(team):
        event = AuditEvent.objects.of(team).get(verb="client.disconnected")
        assert event.actor_label == "reuse of a refresh token"


def test_a_refresh_token_of_another_client(tokens, client_id) -> None:
    is_error(renew(tokens["refresh_token"], registered(name="Other")), "invalid_grant")
    assert renew(tokens["refresh_token"], client_id).status_code == 200


@pytest.mark.parametrize("scope", ["memory:read memory:write admin", "reflect", "nonsense"])
def test_renewing_gives_no_more_than_was_granted(tokens, client_id, scope) -> None:
    is_error(renew(tokens["refresh_token"], client_id, scope=scope), "invalid_scope")
    assert renew(tokens["refresh_token"], client_id).status_code == 200


def test_a_refusal_that_passes_does_not_spend_it(tokens, client_id, team, agent) -> None:
    with team_transaction(team):
        accounts.change_agent(team=team, by=SYSTEM, agent=agent, disabled=True)
    is_error(renew(tokens["refresh_token"], client_id), "invalid_grant")
    with team_transaction(team):
        accounts.change_agent(team=team, by=SYSTEM, agent=agent, disabled=False)
    assert renew(tokens["refresh_token"], client_id).status_code == 200


def test_an_old_refresh_token(tokens, client_id, team) -> None:
    with team_transaction(team):
        RefreshToken.objects.of(team).update(expires_at=timezone.now())
    is_error(renew(tokens["refresh_token"], client_id), "invalid_grant")


def test_people_s_clients_have_no_secret(tokens, client_id) -> None:
    is_error(renew(tokens["refresh_token"], client_id, client_secret="x"), "invalid_client", 401)
    is_error(exchange(grant_type="refresh_token", client_id=client_id), "invalid_request")


# --- Two at once --------------------------------------------------------------------------------------


def at_once(work: Callable[[], Any]) -> list[int]:
    """Do the same four times at the same moment; the statuses of the answers."""
    gate = threading.Barrier(4)

    def one(_: int) -> int:
        try:
            gate.wait()
            return work().status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        return sorted(pool.map(one, range(4)))


@pytest.mark.django_db(transaction=True)
def test_a_code_is_redeemed_by_one_of_many(client_id, team, agent, alice, browse) -> None:
    code = code_from(browse(alice), client_id)
    assert at_once(lambda: redeem(code, client_id)) == [200, 400, 400, 400]
    with team_transaction(team):
        assert ApiToken.objects.of(team).get(on_behalf_of=alice).revoked_at  # three of them were replays


@pytest.mark.django_db(transaction=True)
def test_a_refresh_token_is_renewed_by_one_of_many(tokens, client_id, team, alice) -> None:
    assert at_once(lambda: renew(tokens["refresh_token"], client_id)) == [200, 400, 400, 400]
    with team_transaction(team):
        assert ApiToken.objects.of(team).get(on_behalf_of=alice).revoked_at
        assert AuditEvent.objects.of(team).filter(verb="client.disconnected").count() == 1


# --- What ends it -------------------------------------------------------------------------------------


def removed(team, user, agent) -> None:
    people.remove(team=team, by=SYSTEM, membership=Membership.objects.of(team).get(user=user), allowed=GIFT)


def agent_disabled(team, user, agent) -> None:
    accounts.change_agent(team=team, by=SYSTEM, agent=agent, disabled=True)


def suspended(team, user, agent) -> None:
    people.suspend_team(team=team, by=SYSTEM)


def switched_off(team, user, agent) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def token_revoked(team, user, agent) -> None:
    token = ApiToken.objects.of(team).get(on_behalf_of=user)
    accounts.revoke_token(team=team, by=SYSTEM, token=token)


@pytest.mark.parametrize("happens", [removed, agent_disabled, suspended, switched_off, token_revoked])
def test_what_ends_a_connection_at_once(client_id, team, agent, bob, browse, happens) -> None:
    tokens = redeem(code_from(browse(bob), client_id, scopes=["memory:read"]), client_id).json()
    assert opens(tokens["access_token"]) == {"memory:read"}
    with team_transaction(team):
        happens(team, bob, agent)
    assert is_dead(tokens, client_id)


def test_a_lesser_role_takes_scopes_away(client_id, team, agent, browse) -> None:
    erin = factories.member(team, "erin@acme.test", "admin")
    tokens = redeem(code_from(browse(erin), client_id), client_id).json()
    with team_transaction(team):
        membership = Membership.objects.of(team).get(user=erin)
        people.change_role(team=team, by=SYSTEM, membership=membership, role="viewer", allowed=GIFT)
    assert opens(tokens["access_token"]) == {"memory:read"}
    assert renew(tokens["refresh_token"], client_id).json()["scope"] == "memory:read"


def test_revoking(tokens, client_id, team) -> None:
    def revoke(**form: str) -> int:
        return post("/oauth/revoke", **form).status_code

    assert revoke(token=tokens["refresh_token"], client_id=registered(name="Other")) == 200
    assert revoke(token="unknown", client_id=client_id) == 200
    assert opens(tokens["access_token"])
    assert revoke(client_id=client_id) == 400
    assert revoke(token=tokens["refresh_token"], client_id=client_id) == 200
    assert is_dead(tokens, client_id)
    assert revoke(token=tokens["refresh_token"], client_id=client_id) == 200
    with team_transaction(team):
        assert AuditEvent.objects.of(team).filter(verb="client.disconnected").count() == 1


def test_revoking_by_the_access_token(tokens, client_id) -> None:
    answer = post("/oauth/revoke", token=tokens["access_token"], client_id=client_id)
    assert answer.status_code == 200
    assert is_dead(tokens, client_id)


def test_disconnecting_on_the_account_page(tokens, client_id, team, alice, browse, mallory) -> None:
    browser = browse(alice)
    assert "Test client" in browser.get("/account/").content.decode()
    with team_transaction(team):
        connected = ConnectedClient.objects.of(team).get()
    address = f"/account/clients/{team.pk}/{connected.pk}/disconnect/"
    assert browse(mallory).post(address).status_code == 404
    assert browser.post(address).status_code == 302
    assert is_dead(tokens, client_id)
    assert "Test client is disconnected" in browser.get("/account/").content.decode()
    assert "Connected clients" not in browser.get("/account/").content.decode()


def test_disconnecting_as_an_admin(client_id, team, agent, alice, bob, browse) -> None:
    tokens = redeem(code_from(browse(bob), client_id, scopes=["memory:read"]), client_id).json()
    with team_transaction(team):
        connected = ConnectedClient.objects.of(team).get()
    address = f"/team/clients/{team.pk}/{connected.pk}/disconnect/"
    assert browse(bob).post(address).status_code == 403
    assert browse(alice).post(f"/account/clients/{team.pk}/{connected.pk}/disconnect/").status_code == 404
    assert "bob@acme.test" in browse(alice).get("/team/tokens/").content.decode()
    assert browse(alice).post(address).status_code == 302
    assert is_dead(tokens, client_id)


def test_a_connected_clients_token_is_not_to_be_changed(tokens, team, team_api) -> None:
    with team_transaction(team):
        prefix = ApiToken.objects.of(team).get(on_behalf_of__isnull=False).prefix
    assert team_api.post(f"/api/v1/tokens/{prefix}/rotate", {}).json()["code"] == "connected_client"
    assert team_api.patch(f"/api/v1/tokens/{prefix}", {"scopes": ["admin"]}).json()["code"] == "connected_client"
    assert team_api.delete(f"/api/v1/tokens/{prefix}").status_code == 204
    with pytest.raises(BadCredential):
        opens(tokens["access_token"])
