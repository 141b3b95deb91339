"""The page of a team's own tokens: made, shown once, rotated, revoked; and what they reach."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories
from tests.factories import ApiClient

pytestmark = pytest.mark.django_db
FORM = {"name": "Set-up script", "scopes": ["admin", "memory:read"], "days": "90"}


def secret_on(answer: Any) -> str:
    found = re.search(r"HINDSIGHT_TOKEN=(hs_[a-z0-9]{8}_[\w-]{43})", answer.content.decode())
    assert found, answer.content
    return found[1]


def call(secret: str, path: str = "me") -> Any:
    client = ApiClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client.get(f"/api/v1/{path}")


def only(team: Any) -> ApiToken:
    with team_transaction(team):
        return ApiToken.objects.of(team).get(revoked_at=None)


def test_a_token_is_made_shown_once_and_reaches_the_whole_team(browse, alice, team) -> None:
    client = browse(alice)
    made = client.post(reverse("create_team_token"), FORM)
    secret = secret_on(made)
    assert "no-store" in made["Cache-Control"]
    assert call(secret).json()["agent"] is None
    assert sorted(call(secret).json()["token_scopes"]) == ["admin", "memory:read"]
    page = client.get(reverse("team_tokens")).content.decode()
    assert "Set-up script" in page
    assert secret[:11] in page
    assert secret not in page
    assert abs(only(team).expires_at - timezone.now() - timedelta(days=90)) < timedelta(minutes=1)


def test_it_can_do_what_a_token_of_an_agent_is_told_it_cannot(browse, alice, api) -> None:
    assert "a token of the team's own" in api.post("/api/v1/agents", {"slug": "third"}).json()["detail"]
    secret = secret_on(browse(alice).post(reverse("create_team_token"), FORM))
    client = ApiClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert client.post("/api/v1/agents", {"slug": "third"}).status_code == 201


@pytest.mark.parametrize(
    "wrong",
    [{"name": " "}, {"name": "x" * 121}, {"scopes": []}, {"scopes": ["everything"]}, {"days": "1000"}, {"days": "-1"}],
)
def test_a_wrong_form_is_shown_again_with_what_is_wrong(browse, alice, team, wrong) -> None:
    answer = browse(alice).post(reverse("create_team_token"), {**FORM, **wrong})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'role="alert"' in page
    if wrong == {"scopes": []}:
        assert "Tick at least one thing that the token may." in page
    if "name" not in wrong:
        assert 'value="Set-up script"' in page
    with team_transaction(team):
        assert not ApiToken.objects.of(team).exists()


def test_never_is_an_end_too(browse, alice, team) -> None:
    browse(alice).post(reverse("create_team_token"), {**FORM, "days": ""})
    assert only(team).expires_at is None


def test_rotating_gives_another_and_the_old_one_an_hour(browse, alice, team) -> None:
    client = browse(alice)
    old = secret_on(client.post(reverse("create_team_token"), FORM))
    new = secret_on(client.post(reverse("rotate_team_token", args=[only(team).pk])))
    assert new != old
    assert [call(secret).status_code for secret in (old, new)] == [200, 200]
    with team_transaction(team):
        ends = ApiToken.objects.of(team).get(prefix=old[3:11]).expires_at
    assert timedelta(minutes=59) < ends - timezone.now() <= timedelta(hours=1)


def test_a_revoked_token_opens_nothing_and_cannot_be_rotated(browse, alice, team) -> None:
    client = browse(alice)
    secret = secret_on(client.post(reverse("create_team_token"), FORM))
    token = only(team)
    assert client.post(reverse("revoke_team_token", args=[token.pk])).status_code == 302
    assert call(secret).status_code == 401
    refused = client.post(reverse("rotate_team_token", args=[token.pk]))
    assert refused.status_code == 409
    assert "revoked" in refused.content.decode()


def test_tokens_of_agents_are_not_here(browse, alice, team, agent) -> None:
    factories.token(team, agent)
    client = browse(alice)
    token = only(team)
    assert token.prefix not in client.get(reverse("team_tokens")).content.decode()
    for name in ("rotate_team_token", "revoke_team_token"):
        assert client.post(reverse(name, args=[token.pk])).status_code == 404


def test_the_connect_page_leads_here(browse, alice, carol) -> None:
    assert reverse("team_tokens") in browse(alice).get(reverse("connect")).content.decode()
    assert reverse("team_tokens") not in browse(carol).get(reverse("connect")).content.decode()


def test_the_page_asks_few_questions(browse, alice, team, django_assert_max_num_queries) -> None:
    client = browse(alice)
    for _ in range(5):
        client.post(reverse("create_team_token"), FORM)
    with django_assert_max_num_queries(12):
        client.get(reverse("team_tokens"))
