"""A team's own model: used instead of the site's, its key sealed, only at a public address, within its budget."""

from __future__ import annotations

import pytest

from hindsight_site.accounts.models import AuditEvent
from reflection import pipeline
from reflection.models import Reflection, TeamModel
from tests import factories

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/model"
KEY = "sk-of-the-team-0123456789"


@pytest.fixture
def own(team_api, settings, model_server):
    """The team has set the local endpoint as its own model."""
    settings.OUTBOUND_ALLOW_PRIVATE = True
    body = {"base_url": model_server.base_url, "api_key": KEY, "model": "ours", "price_in": 1.0, "price_out": 2.0}
    answer = team_api.put(ADDRESS, body)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def reflect(agent, **fields) -> Reflection:
    _, reflection = factories.trace(agent, **fields)
    pipeline.reflect(agent.team, reflection.pk)
    reflection.refresh_from_db()
    return reflection


def test_the_teams_own_model_distils_with_its_own_key_and_price(own, agent, model_server) -> None:
    done = reflect(agent)
    assert (done.status, done.distiller, done.model) == ("stored", "model", "ours"), done.error
    (asked, *_) = model_server.asked("chat/completions")
    sent = {name.lower(): value for name, value in asked.headers.items()}
    assert sent["authorization"] == f"Bearer {KEY}"
    assert sent["host"].startswith("127.0.0.1:")
    assert done.cost_usd == pytest.approx((done.tokens_in + 2 * done.tokens_out) / 1_000_000)


def test_another_team_does_not_use_it(own, other_agent, model_server) -> None:
    assert reflect(other_agent).distiller == "rules"
    assert not model_server.requests


def test_the_key_is_sealed_and_never_shown(own, team_api, alice, browse, team) -> None:
    assert own["has_key"] is True
    assert KEY not in str(team_api.get(ADDRESS).json())
    assert KEY.encode() not in bytes(TeamModel.objects.of(team).get().sealed_key)
    assert KEY not in browse(alice).get("/settings/model/").content.decode()
    assert KEY not in str(list(AuditEvent.objects.of(team).values()))


def test_a_key_does_not_follow_to_another_address(own, team_api, model_server) -> None:
    same = team_api.put(ADDRESS, {"base_url": model_server.base_url, "model": "other"}).json()
    assert (same["has_key"], same["model"]) == (True, "other")
    moved = team_api.put(ADDRESS, {"base_url": "https://elsewhere.example/v1", "model": "other"}).json()
    assert moved["has_key"] is False


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"base_url": "ftp://example.org", "model": "m"}, "base_url"),
        ({"base_url": "https://a:b@example.org/v1", "model": "m"}, "base_url"),
        ({"base_url": "http://127.0.0.1:11434/v1", "model": "m"}, "base_url"),
        ({"base_url": "https://example.org/v1", "model": ""}, "model"),
        ({"base_url": "https://example.org/v1", "model": "m", "price_in": -1}, "price_in"),
        ({"model": "m"}, "base_url"),
    ],
)
def test_a_bad_model_is_refused_clearly(team_api, body, field) -> None:
    refused = team_api.put(ADDRESS, body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field), refused.json()


def test_a_private_address_is_not_called(own, agent, settings, model_server, team_api) -> None:
    settings.OUTBOUND_ALLOW_PRIVATE = False
    done = reflect(agent)
    assert (done.status, done.attempts) == ("failed", 1)
    assert "private or reserved network" in done.error
    assert "private or reserved network" in team_api.post(f"{ADDRESS}/test").json()["problem"]
    assert not model_server.requests


def test_a_run_stops_at_its_budget(own, agent, team_api, model_server) -> None:
    team_api.put(ADDRESS, {"base_url": model_server.base_url, "model": "ours", "run_tokens": 1})
    done = reflect(agent, outcome="failed")  # a failed trace takes two requests
    assert done.status == "failed"
    assert "token budget" in done.error
    assert done.tokens_in > 1, "what was used is counted all the same"
    assert len(model_server.asked("chat/completions")) == 1


def test_the_sites_used_up_tokens_do_not_stop_the_teams_own(own, agent, settings, model_server) -> None:
    settings.QUOTA_MODEL_TOKENS_A_MONTH = 1
    reflect(agent)
    assert reflect(agent, task="Export the April invoices as CSV").distiller == "model"


def test_a_lost_secret_key_is_said_so(own, agent, settings) -> None:
    settings.SECRET_KEY = "another-secret-key-for-this-test-only-0123456789"
    done = reflect(agent)
    assert done.status == "failed"
    assert "enter it again" in done.error


def test_trying_it_out_says_what_is_wrong(own, team_api, model_server) -> None:
    assert team_api.post(f"{ADDRESS}/test").json() == {"works": True, "problem": ""}
    model_server.refuses.add("every")
    assert team_api.post(f"{ADDRESS}/test").json() == {"works": False, "problem": "It answered 400."}
    team_api.put(ADDRESS, {"base_url": "http://127.0.0.1:9/v1", "model": "m"})
    assert "could not be reached" in team_api.post(f"{ADDRESS}/test").json()["problem"]


def test_the_page_sets_tries_and_drops_it(team, alice, browse, settings, model_server) -> None:
    settings.OUTBOUND_ALLOW_PRIVATE = True
    client, page = browse(alice), "/settings/model/"
    assert "distilled by rules" in client.get(page).content.decode()
    assert client.post(page, {"base_url": "nonsense", "model": "m"}).status_code == 422
    fields = {"base_url": model_server.base_url, "model": "ours", "api_key": KEY}
    assert client.post(page, fields, follow=True).status_code == 200
    assert "It answered." in client.post(f"{page}act/", {"act": "test"}, follow=True).content.decode()
    client.post(page, {**fields, "api_key": "", "model_strong": "big"})
    assert TeamModel.objects.of(team).get().sealed_key is not None, "an empty field keeps the key"
    client.post(f"{page}act/", {"act": "drop"})
    assert not TeamModel.objects.of(team).exists()


def test_dropping_goes_back_to_the_rules(own, team_api, agent) -> None:
    assert team_api.delete(ADDRESS).status_code == 204
    assert team_api.get(ADDRESS).json()["code"] == "model_not_found"
    assert reflect(agent).distiller == "rules"
