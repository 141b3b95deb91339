"""The weekly review over REST: who may judge through a token, blind lists, verdicts, undo."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Agent, ApiToken, AuditEvent, Membership, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.enums import Status
from memories.models import Memory
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide
from tests import factories
from tests.factories import ApiClient

pytestmark = pytest.mark.django_db
API = "/api/v1/reviews"


@pytest.fixture
def batch(team: Team, agent: Agent) -> ReviewBatch:
    for n in range(4):
        factories.memory(agent, f"Rule {n}: {uuid.uuid4()}", confidence=0.6)
    with team_transaction(team):
        drawn = open_batch(team=team, by=SYSTEM)
        drawn.items.update(quorum=1)  # those for two have tests of their own
        return drawn


@pytest.fixture
def as_bob(team: Team, bob: User) -> ApiClient:
    """A token of the team's own that acts for the reviewer bob."""
    return factories.api_client(team, None, ["review"], bob)


def items(client: ApiClient, batch: ReviewBatch, **query: str) -> list[dict[str, Any]]:
    answer = client.get(f"{API}/batches/{batch.pk}/items", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def judge(client: ApiClient, item: dict[str, Any], **body: Any) -> Any:
    return client.post(f"{API}/items/{item['id']}/verdict", {"version": item["version"], **body})


def status_of(item: dict[str, Any]) -> str:
    return Memory.objects.get(pk=item["memory"]["id"]).status


def test_a_batch_says_how_far_it_is(as_bob, batch) -> None:
    first = items(as_bob, batch)[0]
    judge(as_bob, first, decision="approve")
    (shown,) = as_bob.get(f"{API}/batches").json()["results"]
    assert (shown["week"], shown["pending"], shown["decided"], shown["void"]) == (batch.week, 3, 1, 0)
    assert (shown["acceptance"]["hits"], shown["acceptance"]["n"], shown["acceptance"]["is_enough"]) == (1, 1, False)


def test_items_are_blind_until_they_are_decided(as_bob, batch) -> None:
    first, *rest = items(as_bob, batch)
    assert [item["position"] for item in (first, *rest)] == [0, 1, 2, 3]
    assert first["stratum"] is None
    assert "confidence" not in first["memory"]
    answer = judge(as_bob, first, decision="cannot_tell").json()
    assert answer["verdict"] is None, "what one could not tell must not sway the next"
    shown = judge(as_bob, answer, decision="demote", reason="trivial", note="Nobody needs it.").json()
    assert (shown["state"], shown["stratum"]) == ("decided", "random")
    assert (shown["verdict"]["decision"], shown["verdict"]["reason"]) == ("demote", "trivial")
    assert shown["verdict"]["reviewer"] == "bob@acme.test"
    assert [item["id"] for item in items(as_bob, batch, state="decided")] == [first["id"]]


def test_a_closed_batch_is_blind_no_longer(as_bob, batch, team) -> None:
    with team_transaction(team):
        ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=timezone.now() - timedelta(minutes=1))
    assert {item["stratum"] for item in items(as_bob, batch)} == {"random"}
    answer = judge(as_bob, items(as_bob, batch)[0], decision="approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "batch_closed")


def test_the_verdict_is_the_persons_and_the_audit_names_the_token(as_bob, batch, bob, team) -> None:
    first = items(as_bob, batch)[0]
    assert judge(as_bob, first, decision="approve").status_code == 200
    with team_transaction(team):
        verdict = Verdict.objects.get(item=first["id"])
        event = AuditEvent.objects.of(team).get(verb="review.decided")
    assert verdict.reviewer == bob
    assert event.actor_kind == "token"


def test_an_edit_and_its_undo(as_bob, batch) -> None:
    first = items(as_bob, batch)[0]
    before = first["memory"]["content"]
    edited = judge(as_bob, first, decision="edit", content="Said better. Mail eve@acme.test.").json()
    assert edited["memory"]["revision"] == 2
    assert "eve@acme.test" not in edited["memory"]["content"], "masked like everything that is written"
    undone = as_bob.post(f"{API}/items/{first['id']}/undo").json()
    assert (undone["state"], undone["memory"]["content"], undone["verdict"]) == ("pending", before, None)


def test_sensitive_hides_it_at_once(as_bob, batch) -> None:
    first = items(as_bob, batch)[0]
    judge(as_bob, first, decision="sensitive")
    assert status_of(first) == Status.QUARANTINED


def test_the_same_verdict_twice_is_one_and_another_is_refused(as_bob, batch, team) -> None:
    first = items(as_bob, batch)[0]
    for _ in range(2):
        assert judge(as_bob, first, decision="demote").status_code == 200
    assert Verdict.objects.filter(item=first["id"]).count() == 1
    answer = judge(as_bob, first, decision="approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "already_decided")


def test_a_colleague_was_faster(as_bob, batch, alice, team) -> None:
    first = items(as_bob, batch)[0]
    with team_transaction(team):
        item = ReviewItem.objects.get(pk=first["id"])
        decide(team=team, by=person(alice), reviewer=alice, item=item, decision="approve", version=1)
    answer = judge(as_bob, first, decision="demote")
    assert answer.status_code == 409
    assert "alice@acme.test decided this already" in answer.json()["detail"]
    assert answer.json()["decision"] == "approve"


def test_a_memory_that_was_read_in_an_older_form(as_bob, batch) -> None:
    first = items(as_bob, batch)[0]
    answer = judge(as_bob, first, decision="approve", memory_revision=7)
    assert (answer.status_code, answer.json()["code"]) == (409, "memory_changed")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decision": "perhaps"},
        {"decision": "approve", "reason": "wrong"},
        {"decision": "edit"},
        {"decision": "edit", "content": "  "},
        {"decision": "demote", "note": "n" * 2001},
        {"decision": "approve", "version": 0},
    ],
)
def test_judgements_that_are_none(as_bob, batch, body) -> None:
    first = items(as_bob, batch)[0]
    answer = as_bob.post(f"{API}/items/{first['id']}/verdict", body)
    assert answer.status_code == 422, answer.content
    assert status_of(first) == Status.ACTIVE


def test_nothing_of_theirs_to_undo(as_bob, batch) -> None:
    answer = as_bob.post(f"{API}/items/{items(as_bob, batch)[0]['id']}/undo")
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_undo")


# --- Settling ---------------------------------------------------------------------------------------


@pytest.fixture
def differing(team: Team, batch: ReviewBatch, alice: User, bob: User) -> ReviewItem:
    """An item that alice approved and bob demoted."""
    with team_transaction(team):
        item = batch.items.select_related("batch").first()
        batch.items.filter(pk=item.pk).update(quorum=2)
        for version, (who, decision) in enumerate([(alice, "approve"), (bob, "demote")], start=1):
            decide(team=team, by=person(who), reviewer=who, item=item, decision=decision, version=version)
    return item


@pytest.fixture
def as_dora(team: Team) -> ApiClient:
    """A token that acts for a third person, who reviews too."""
    return factories.api_client(team, None, ["review"], factories.member(team, "dora@acme.test", "reviewer"))


def settle(client: ApiClient, item: ReviewItem, **body: Any) -> Any:
    return client.post(f"{API}/items/{item.pk}/settle", body)


def test_a_third_person_settles_what_two_differ_on(as_dora, batch, differing, team) -> None:
    (shown,) = items(as_dora, batch, state="conflicted")
    assert [one["decision"] for one in shown["opinions"]] == ["approve", "demote"]
    answer = settle(
        as_dora, differing, decision="demote", reason="wrong", note="Not since May.", version=shown["version"]
    )
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["state"], told["verdict"]["decision"], told["verdict"]["reviewer"]) == (
        "resolved", "demote", "dora@acme.test",
    )  # fmt: skip
    assert [one["decision"] for one in told["opinions"]] == ["approve", "demote"], "both are kept"
    assert status_of(told) == Status.DEMOTED
    with team_transaction(team):
        event = AuditEvent.objects.of(team).get(verb="review.settled")
    assert (event.actor_kind, event.detail["decision"]) == ("token", "demote")
    assert settle(as_dora, differing, decision="demote").status_code == 200, "the same again is the same"
    undone = as_dora.post(f"{API}/items/{differing.pk}/undo").json()
    assert (undone["state"], status_of(undone)) == ("conflicted", Status.ACTIVE)


def test_one_of_the_two_does_not_settle_it(as_bob, differing) -> None:
    answer = settle(as_bob, differing, decision="demote")
    assert (answer.status_code, answer.json()["code"]) == (403, "one_of_the_two")


def test_what_nobody_differs_on_is_not_settled(as_dora, batch) -> None:
    answer = settle(as_dora, batch.items.first(), decision="approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_settle")


def test_a_stale_version_settles_nothing(as_dora, differing) -> None:
    answer = settle(as_dora, differing, decision="approve", version=1)
    assert (answer.status_code, answer.json()["code"]) == (409, "already_decided")


@pytest.mark.parametrize("body", [{}, {"decision": "cannot_tell"}, {"decision": "edit"}, {"decision": "perhaps"}])
def test_a_disagreement_is_not_ended_by_that(as_dora, differing, body) -> None:
    answer = settle(as_dora, differing, **body)
    assert answer.status_code == 422, answer.content
    assert ReviewItem.objects.get(pk=differing.pk).state == "conflicted"


def test_settling_takes_a_person_and_not_an_agent(team_api, api, differing) -> None:
    for client, code in ((team_api, "person_needed"), (api, "team_token_needed")):
        answer = settle(client, differing, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (403, code)


# --- Whose verdict it is ----------------------------------------------------------------------------


def test_a_token_that_acts_for_nobody_reads_and_does_not_judge(team_api, batch) -> None:
    first = items(team_api, batch)[0]
    for path, body in ((f"items/{first['id']}/verdict", {"decision": "approve"}), (f"items/{first['id']}/undo", {})):
        answer = team_api.post(f"{API}/{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (403, "person_needed")
        assert "Acts for me" in answer.json()["detail"]


def test_an_agents_own_token_takes_no_part(api, batch, agent) -> None:
    """It would judge itself."""
    item = ReviewItem.objects.first()
    for answer in (
        api.get(f"{API}/batches"),
        api.get(f"{API}/batches/{batch.pk}/items"),
        api.post(f"{API}/items/{item.pk}/verdict", {"decision": "approve"}),
        api.post(f"{API}/items/{item.pk}/undo"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "team_token_needed")


def test_a_client_that_a_person_connected_judges_what_its_agent_sees(team, bob, batch) -> None:
    second = factories.agent(team, "second")
    mine = factories.api_client(team, second, ["review"], bob)
    assert items(mine, batch) == [], "the batch is of the other agent's private memories"
    hidden = ReviewItem.objects.first()
    assert mine.post(f"{API}/items/{hidden.pk}/verdict", {"decision": "approve"}).status_code == 404


def test_the_connected_client_of_the_agent_that_learnt_it(team, agent, bob, batch) -> None:
    mine = factories.api_client(team, agent, ["review"], bob)
    assert judge(mine, items(mine, batch)[0], decision="demote").status_code == 200
    assert Verdict.objects.get().reviewer == bob


def test_whoever_may_not_review_any_more_may_not_through_a_token(as_bob, team, bob, batch) -> None:
    with team_transaction(team):
        assert Membership.objects.of(team).filter(user=bob).update(role="viewer") == 1
    answer = as_bob.get(f"{API}/batches")
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


def test_another_teams_batch_is_not_there(team, other_team, mallory, batch) -> None:
    theirs = factories.api_client(other_team, None, ["review"], mallory)
    with team_transaction(team):
        item = batch.items.first()
    assert theirs.get(f"{API}/batches").json()["results"] == []
    assert theirs.get(f"{API}/batches/{batch.pk}/items").status_code == 404
    assert theirs.post(f"{API}/items/{item.pk}/verdict", {"decision": "approve"}).status_code == 404


def test_a_person_makes_a_token_that_acts_for_them(alice, team, browse, batch) -> None:
    page = browse(alice)
    form = {"name": "Review bot", "scopes": ["review"], "days": "90", "acts_for_me": "1"}
    made = page.post(reverse("create_team_token"), form).content.decode()
    secret = re.search(r"HINDSIGHT_TOKEN=(hs_[a-z0-9]{8}_[\w-]{43})", made)
    assert secret
    client = ApiClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret[1]}")
    assert judge(client, items(client, batch)[0], decision="approve").status_code == 200
    assert Verdict.objects.get().reviewer == alice
    assert "acts for alice@acme.test" in page.get(reverse("team_tokens")).content.decode()
    token = ApiToken.objects.get(name="Review bot")
    page.post(reverse("rotate_team_token", args=[token.pk]))
    assert ApiToken.objects.filter(name="Review bot").count() == 1, "its secret would speak for alice"
