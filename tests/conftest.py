"""Fixtures that every test may use. The cast: alice owns, bob reviews, carol views, mallory is another team's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.test import Client

from hindsight_site import databases
from hindsight_site.accounts.models import Agent, Team, User
from tests import factories
from tests.factories import ApiClient
from tests.model_server import model_server

__all__ = ["model_server"]


def pytest_configure() -> None:
    """Without a DATABASE_URL the tests run on the embedded server, started here and stopped at the end."""
    databases.ensure()


def pytest_xdist_auto_num_workers() -> int:
    """Three for two cores: a third of the time some test waits for processes of its own, not for a core."""
    cores = os.cpu_count() or 1
    return cores + cores // 2


@pytest.fixture(autouse=True)
def _static_files(settings) -> None:
    """Serve static files without a manifest, mail into memory, quick password hashes."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.WHITENOISE_AUTOREFRESH = True  # each new client lists all files otherwise: a third of what a page takes
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _no_rate_limits(settings) -> None:
    """Tests call as fast as they can; the tests of the limits switch them on."""
    settings.RATE_LIMIT_TOKEN_PER_MINUTE = settings.RATE_LIMIT_TEAM_PER_MINUTE = 0
    settings.RATE_LIMIT_FAILED_PER_MINUTE = 0


@pytest.fixture
def team(db) -> Team:
    return factories.team("acme", owner="alice@acme.test")


@pytest.fixture
def alice(team: Team) -> User:
    return User.objects.get(email="alice@acme.test")


@pytest.fixture
def bob(team: Team) -> User:
    return factories.member(team, "bob@acme.test", "reviewer")


@pytest.fixture
def carol(team: Team) -> User:
    return factories.member(team, "carol@acme.test", "viewer")


@pytest.fixture
def other_team(db) -> Team:
    return factories.team("rival", owner="mallory@rival.test")


@pytest.fixture
def mallory(other_team: Team) -> User:
    return User.objects.get(email="mallory@rival.test")


@pytest.fixture
def agent(team: Team) -> Agent:
    return factories.agent(team, "coder")


@pytest.fixture
def other_agent(other_team: Team) -> Agent:
    return factories.agent(other_team, "spy")


@pytest.fixture
def api(agent: Agent) -> ApiClient:
    """The agent's own client, with every token scope."""
    return factories.api_client(agent.team, agent)


@pytest.fixture
def team_api(team: Team) -> ApiClient:
    """A client of the team's own token, bound to no agent."""
    return factories.api_client(team, None)


@pytest.fixture
def other_api(other_agent: Agent) -> ApiClient:
    return factories.api_client(other_agent.team, other_agent)


@pytest.fixture
def browse() -> Iterator:
    """`browse(user)` returns Django's client, signed in."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in
