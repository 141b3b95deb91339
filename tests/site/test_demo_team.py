"""The demo team: made once, shown again, mended when something of it is lost."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from hindsight_site.accounts import actions, audit, credentials
from hindsight_site.accounts.enums import TeamRole
from hindsight_site.accounts.models import Agent, ApiToken, Membership, Team, User
from hindsight_site.demo_team import EMAIL, ensure_demo_team
from memories.models import Scope

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_dir(settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def sign_in(email: str, password: str) -> bool:
    client = Client()
    client.post(reverse("login"), {"username": email, "password": password})
    return "_auth_user_id" in client.session


def test_first_call_creates_a_team_that_can_be_used() -> None:
    demo = ensure_demo_team()
    assert sign_in(demo.email, demo.password)
    token = credentials.find(demo.token)
    assert token.team.name == "Demo"
    assert token.agent is not None
    assert token.agent.slug == demo.agent == "demo-agent"
    assert token.scopes == ["memory:read", "memory:write", "reflect", "review", "trace:write"]
    assert Membership.objects.get(user__email=EMAIL).role == TeamRole.OWNER
    assert Scope.objects.filter(agent=token.agent, kind="private").count() == 1


def test_second_call_returns_the_same_and_creates_nothing() -> None:
    first = ensure_demo_team()
    assert ensure_demo_team() == first
    assert [model.objects.count() for model in (Team, User, Agent, ApiToken)] == [1, 1, 1, 1]


def test_the_file_is_for_its_owner_only(data_dir: Path) -> None:
    ensure_demo_team()
    assert (data_dir / "demo.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("{"), lambda path: path.write_text("[]")])
def test_a_lost_file_gives_a_new_token_and_keeps_the_password(data_dir: Path, damage) -> None:
    first = ensure_demo_team()
    damage(data_dir / "demo.json")
    second = ensure_demo_team()
    assert second.password == ""
    assert sign_in(EMAIL, first.password)
    assert second.token != first.token
    assert credentials.find(second.token).team == credentials.find(first.token).team
    assert Team.objects.count() == 1


def test_a_file_of_another_database_counts_as_lost(data_dir: Path) -> None:
    first = ensure_demo_team()
    path = data_dir / "demo.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "team": "01900000-0000-7000-8000-000000000000"}))
    second = ensure_demo_team()
    assert second.password == ""
    assert second.token != first.token
    assert sign_in(EMAIL, first.password)
    assert ensure_demo_team() == second, "and so on the next start"


def test_a_second_data_folder_on_the_same_database_takes_nobodys_password(settings, tmp_path: Path) -> None:
    first = ensure_demo_team()
    settings.DATA_DIR = tmp_path / "other"
    settings.DATA_DIR.mkdir()
    second = ensure_demo_team()
    assert second.password == ""
    assert sign_in(EMAIL, first.password)
    assert credentials.find(first.token).team == credentials.find(second.token).team
    settings.DATA_DIR = tmp_path
    assert ensure_demo_team() == first


def test_the_command_that_is_named_sets_another_password(monkeypatch) -> None:
    ensure_demo_team()
    monkeypatch.setattr("getpass.getpass", lambda prompt="": "my own long password")
    call_command("changepassword", EMAIL, stdout=StringIO())
    assert sign_in(EMAIL, "my own long password")
    assert ensure_demo_team().password == ""


def test_a_password_that_the_person_chose_is_kept_and_not_shown() -> None:
    first = ensure_demo_team()
    user = User.objects.get(email=EMAIL)
    user.set_password("my own long password")
    user.save()
    for _ in range(2):
        again = ensure_demo_team()
        assert again.password == ""
        assert again.token == first.token
    assert sign_in(EMAIL, "my own long password")


def test_a_password_that_was_only_hashed_anew_is_still_shown() -> None:
    first = ensure_demo_team()
    user = User.objects.get(email=EMAIL)
    user.set_password(first.password)
    user.save()
    assert ensure_demo_team() == first


def test_a_revoked_token_is_replaced() -> None:
    first = ensure_demo_team()
    token = credentials.find(first.token)
    actions.revoke_token(team=token.team, by=audit.SYSTEM, token=token)
    second = ensure_demo_team()
    assert second.password == first.password
    assert credentials.find(second.token).agent == token.agent
