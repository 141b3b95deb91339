"""The fence between teams, in the database itself: without the setting nothing, with it one team."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from hindsight_site.accounts.models import Agent, ApiToken, AuditEvent, Membership
from hindsight_site.accounts.row_security import role_is_bound
from hindsight_site.accounts.tenancy import enter_person, enter_team, present_token, team_transaction
from memories.models import Memory, Scope
from reflection.models import Reflection, Step, Trace
from tests import factories

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("_bound_role"),
]
TABLES = (Agent, ApiToken, AuditEvent, Membership, Memory, Scope, Trace, Step, Reflection)


@pytest.fixture
def _bound_role(db) -> None:
    if not role_is_bound():
        pytest.skip("connected as a superuser, who is not bound by row-level security")


def leave_team() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.team', '', true)")


@pytest.fixture
def both(agent, other_agent) -> tuple[Agent, Agent]:
    for one in (agent, other_agent):
        enter_team(one.team)
        factories.memory(one)
        factories.trace(one)
    return agent, other_agent


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_without_the_setting_nothing_is_visible(both, table) -> None:
    leave_team()
    assert not table.objects.exists()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_with_it_only_that_team_is(both, table) -> None:
    mine, theirs = both[0].team, both[1].team
    if table is ApiToken:
        for one in both:
            enter_team(one.team)
            factories.token(one.team, one)
    enter_team(mine)
    assert {row.team_id for row in table.objects.all()} == {mine.pk}
    assert not table.objects.of(theirs).exists(), "the wrong team in a query returns nothing"


def test_a_row_for_another_team_is_refused(both) -> None:
    mine, theirs = both
    enter_team(mine.team)
    with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
        Agent.objects.create(team=theirs.team, slug="planted", name="Planted")


def test_another_teams_row_cannot_be_changed_or_deleted(both) -> None:
    mine, theirs = both
    enter_team(mine.team)
    assert Memory.objects.of(theirs.team).update(content="mine now") == 0
    assert Memory.objects.of(theirs.team).delete()[0] == 0


def test_the_setting_ends_with_the_transaction(both) -> None:
    leave_team()
    with transaction.atomic():
        point = transaction.savepoint()
        enter_team(both[0].team)
        assert Memory.objects.exists()
        transaction.savepoint_rollback(point)
    assert not Memory.objects.exists()


def test_a_person_sees_their_own_memberships_before_a_team_is_chosen(both, alice) -> None:
    leave_team()
    enter_person(alice)
    assert [membership.user_id for membership in Membership.objects.all()] == [alice.pk]


def test_a_token_is_seen_by_its_prefix_alone(both) -> None:
    enter_team(both[0].team)
    secrets = [factories.token(both[0].team, both[0]) for _ in range(2)]
    leave_team()
    present_token(secrets[0][3:11])
    assert [token.prefix for token in ApiToken.objects.all()] == [secrets[0][3:11]]
    assert not Agent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_nothing_leaks_to_the_next_user_of_a_connection(both) -> None:
    with team_transaction(both[0].team):
        assert Memory.objects.exists()
    assert not Memory.objects.exists()
