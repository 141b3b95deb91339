"""The answers of Idempotency-Keys go after a day: of every team, in batches, and those only."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from hindsight_site.accounts import kept_answers, tasks
from hindsight_site.accounts.models import ApiToken, IdempotencyKey, Team
from hindsight_site.accounts.tenancy import team_transaction
from tests.factories import ApiClient

pytestmark = pytest.mark.django_db
BODY = {"kind": "fact", "content": "Invoices go out on Mondays."}


def keep(team: Team, *hours: float) -> None:
    """Answers that old, in hours."""
    with team_transaction(team):
        token = ApiToken.objects.of(team).first()
        IdempotencyKey.objects.bulk_create(
            IdempotencyKey(
                team=team, token=token, key=f"{index}", request_digest=b"\0" * 32, status_code=201, body={},
                created_at=timezone.now() - timedelta(hours=age),
            )
            for index, age in enumerate(hours)
        )  # fmt: skip


def left(team: Team) -> int:
    with team_transaction(team):
        return IdempotencyKey.objects.of(team).count()


def test_those_older_than_a_day_go_in_every_team(api, other_api, team, other_team) -> None:
    keep(team, 1, 23.9, 24.1, 100)
    keep(other_team, 0, 25, 26, 27)
    assert tasks.purge_kept_answers() == "5 removed"
    assert (left(team), left(other_team)) == (2, 1)
    assert tasks.purge_kept_answers() == "0 removed"


def test_more_than_a_batch_goes_in_several(api, team) -> None:
    keep(team, *[25.0] * 7)
    assert kept_answers.purge_team(team, batch=3) == 7
    assert left(team) == 0


def test_when_the_turn_is_over_the_other_teams_are_left_to_the_next(api, other_api, team, other_team) -> None:
    first, second = sorted([team, other_team], key=lambda each: each.pk)
    keep(first, *[25.0] * 5)
    keep(second, *[25.0] * 5)
    assert kept_answers.purge(turn=-1.0, batch=2) == 2
    assert (left(first), left(second)) == (3, 5)
    assert OrmQ.objects.count() >= 1
    assert tasks.purge_kept_answers(str(first.pk)) == "5 removed"
    assert (left(first), left(second)) == (3, 0)


def test_a_key_can_be_used_anew_once_its_answer_is_gone(api: ApiClient, team) -> None:
    def send(content: str) -> int:
        answer = api.post("/api/v1/memories", {**BODY, "content": content}, headers={"Idempotency-Key": "monday"})
        return answer.status_code

    assert [send("Invoices go out on Mondays."), send("Printers are on the second floor.")] == [201, 409]
    with team_transaction(team):
        IdempotencyKey.objects.of(team).update(created_at=timezone.now() - timedelta(hours=25))
    tasks.purge_kept_answers()
    assert send("Printers are on the second floor.") == 201
