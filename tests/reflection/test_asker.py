"""A run carries the token that it was asked for with, and ends when that does not stand any more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import credentials
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import ApiToken, Team
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory
from reflection import actions, pipeline
from reflection.drafts import TraceDraft
from reflection.models import Reflection
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(agent) -> ApiToken:
    secret = factories.token(agent.team, agent, ["trace:write", "reflect", "memory:read"])
    with team_transaction(agent.team):
        return credentials.find(secret)


def queued(token: ApiToken) -> Reflection:
    draft = TraceDraft(task="Export the invoices", steps=factories.failing_then_fixed(), outcome="succeeded")
    with team_transaction(token.team):
        _, reflection = actions.record_trace(team=token.team, by=SYSTEM, agent=token.agent, draft=draft, token=token)
    assert reflection.status == "queued"
    return reflection


def ended(reflection: Reflection) -> Reflection:
    with team_transaction(reflection.team):
        return Reflection.objects.of(reflection.team).get(pk=reflection.pk)


def revoke(token: ApiToken) -> None:
    accounts.revoke_token(team=token.team, by=SYSTEM, token=token)


def disable_agent(token: ApiToken) -> None:
    accounts.change_agent(team=token.team, by=SYSTEM, agent=token.agent, disabled=True)


def suspend_team(token: ApiToken) -> None:
    Team.objects.filter(pk=token.team_id).update(suspended_at=timezone.now())


def let_expire(token: ApiToken) -> None:
    ApiToken.objects.of(token.team).filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def take_scopes(token: ApiToken) -> None:
    ApiToken.objects.of(token.team).filter(pk=token.pk).update(scopes=["memory:read"])


LOSSES = {
    revoke: "revoked", disable_agent: "disabled", suspend_team: "suspended", let_expire: "expired",
    take_scopes: "no more",
}  # fmt: skip


def test_with_a_token_that_stands(token) -> None:
    reflection = queued(token)
    assert pipeline.reflect(token.team, reflection.pk) == "stored"


@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__)
def test_a_token_that_fell_ends_its_queued_runs(token, lose: Callable[[ApiToken], None]) -> None:
    reflection = queued(token)
    with team_transaction(token.team):
        lose(token)
    assert pipeline.reflect(token.team, reflection.pk) == "failed"
    row = ended(reflection)
    assert LOSSES[lose] in row.error
    assert (row.attempts, row.finished_at is not None) == (1, True)  # not tried again
    with team_transaction(token.team):
        assert not Memory.objects.of(token.team).exists()


def test_a_token_that_falls_while_the_run_works_writes_nothing(token, monkeypatch) -> None:
    reflection = queued(token)
    judge = pipeline._judge

    def judge_then_revoke(*arguments):
        with team_transaction(token.team):
            revoke(token)
        return judge(*arguments)

    monkeypatch.setattr(pipeline, "_judge", judge_then_revoke)
    assert pipeline.reflect(token.team, reflection.pk) == "failed"
    assert "revoked" in ended(reflection).error
    with team_transaction(token.team):
        assert not Memory.objects.of(token.team).exists()


def test_what_a_person_asked_for_needs_no_token(agent) -> None:
    trace, reflection = factories.trace(agent)
    assert reflection.token is None
    assert pipeline.reflect(agent.team, reflection.pk) == "stored"
