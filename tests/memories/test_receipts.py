"""Receipts: which memory text reached which agent when, on the pages and over REST."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, receipt_queries, scopes
from memories.actions import Draft
from memories.enums import Kind, RelationKind
from memories.models import Memory, Recall, RecallHit
from tests import factories
from tests.factories import ApiClient

pytestmark = pytest.mark.django_db
SAID = "The invoices of March are exported with the month as 2026-03."
SAYS_NOW = "The invoices are exported with the month as a number, such as 2026-03."
ASKED = "how are the March invoices exported?"


def ask(client: ApiClient, query: str = ASKED, **more: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/recall", {"query": query, "min_relevance": 0, **more})
    assert answer.status_code == 200, answer.content
    return answer.json()


def receipt(client: ApiClient, recall_id: str) -> dict[str, Any]:
    answer = client.get(f"/api/v1/recalls/{recall_id}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def change(memory: Memory, content: str = SAYS_NOW) -> None:
    with team_transaction(memory.team):
        memory.refresh_from_db()
        actions.revise(team=memory.team, by=SYSTEM, memory=memory, content=content)


@pytest.fixture
def memory(agent) -> Memory:
    return factories.memory(agent, SAID)


@pytest.fixture
def second(team) -> ApiClient:
    return factories.api_client(team, factories.agent(team, "second"))


# --- The text that was served -------------------------------------------------------------------------


def test_a_receipt_tells_who_asked_what_and_what_they_got(api, agent, memory) -> None:
    answer = ask(api, top_k=3, session_id="s-1", token_budget=300)
    told = receipt(api, answer["recall_id"])
    assert (told["id"], told["agent"], told["token"]) == (answer["recall_id"], "coder", "test")
    assert told["token_prefix"] == ApiToken.objects.get(agent=agent).prefix
    assert (told["query"], told["session_id"], told["status"]) == (ASKED, "s-1", "matched")
    assert (told["searched_scopes"], told["options"]["top_k"]) == (["private-coder", "team"], 3)
    (hit,) = told["hits"]
    (sent,) = answer["hits"]
    assert {name: hit[name] for name in ("memory", "revision", "score", "parts", "scope", "contested")} == {
        name: sent[name] for name in ("memory", "revision", "score", "parts", "scope", "contested")
    }
    assert (hit["content"], hit["rank"], hit["current_revision"], hit["feedback"]) == (SAID, 1, 1, None)
    assert (told["context"], told["context_exact"]) == (answer["context"], True)


def test_it_keeps_telling_the_old_text_after_an_edit(api, memory) -> None:
    answer = ask(api)
    change(memory)
    change(memory, "Something else altogether.")
    told = receipt(api, answer["recall_id"])
    assert (told["hits"][0]["revision"], told["hits"][0]["current_revision"]) == (1, 3)
    assert told["hits"][0]["content"] == SAID
    assert (told["context"], told["context_exact"]) == (answer["context"], True)


def test_contested_hits_and_a_tight_budget_come_back_to_the_letter(api, agent, memory) -> None:
    other = factories.memory(agent, "The invoices of March are exported with the month spelled out.")
    factories.memory(agent, "The invoices of March go to the archive room on the third floor of the building.")
    with team_transaction(agent.team):
        relation = actions.relate(
            team=agent.team, by=SYSTEM, source=memory, target=other, kind=RelationKind.CONTRADICTS
        )
    answer = ask(api, token_budget=110)
    assert "(contested)" in answer["context"]
    with team_transaction(agent.team):
        relation.delete()
    told = receipt(api, answer["recall_id"])
    assert (told["context"], told["context_exact"]) == (answer["context"], True)
    assert sum(hit["contested"] for hit in told["hits"]) == 2


def test_forgetting_takes_the_text_out_of_receipts(api, memory) -> None:
    answer = ask(api)
    with team_transaction(memory.team):
        actions.forget(team=memory.team, by=SYSTEM, memory=memory)
    told = receipt(api, answer["recall_id"])
    assert (told["hits"][0]["memory"], told["hits"][0]["content"]) == (str(memory.pk), None)
    assert (told["context"], told["context_exact"]) == (None, False)
    assert "invoices of March are" not in str(told)


def test_a_receipt_that_cannot_be_proved_says_so(api, memory, team) -> None:
    answer = ask(api)
    with team_transaction(team):
        Recall.objects.of(team).update(context_digest="", options={})
    told = receipt(api, answer["recall_id"])
    assert (told["context"], told["context_exact"]) == (answer["context"], False)


def test_feedback_stands_on_the_receipt(api, memory) -> None:
    answer = ask(api)
    item = {"memory": str(memory.pk), "adopted": True, "success": False, "note": "wrong month"}
    api.post("/api/v1/feedback", {"recall_id": answer["recall_id"], "items": [item]})
    told = receipt(api, answer["recall_id"])["hits"][0]["feedback"]
    assert (told["adopted"], told["success"], told["note"]) == (True, False, "wrong month")


def test_the_query_is_told_masked(api, memory) -> None:
    answer = ask(api, "invoices for jane.doe@example.com?")
    assert receipt(api, answer["recall_id"])["query"] == "invoices for <EMAIL_1>?"


def test_the_environment_is_told_masked(api, alice, browse, memory) -> None:
    sent = {"os": "linux", "owner": "jane.doe@example.com", "password": "hunter2-hunter2", "python": {"minor": 12}}
    answer = ask(api, "invoices for jane.doe@example.com?", environment=sent)
    told = receipt(api, answer["recall_id"])["options"]["environment"]
    assert (told["os"], told["owner"], told["python"]) == ("linux", "<EMAIL_1>", {"minor": 12})
    assert "hunter2" not in str(told)
    page = browse(alice).get(reverse("recall", args=[answer["recall_id"]])).content.decode()
    assert "os linux, owner &lt;EMAIL_1&gt;" in page
    assert "environment=os+%3D+linux" in page, "asked again in the same place"
    plain = receipt(api, ask(api)["recall_id"])
    assert plain["options"]["environment"] == {}


def test_an_environment_that_no_memory_could_have_is_refused(api, memory, settings) -> None:
    body = {"query": ASKED, "environment": {"os": "x" * settings.MAX_METADATA_BYTES}}
    answer = api.post("/api/v1/recall", body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "environment")


# --- Who may see it -----------------------------------------------------------------------------------


def test_an_agent_sees_its_own_recalls_only(api, second, team_api, other_api, memory) -> None:
    mine, theirs, ours = (ask(client)["recall_id"] for client in (api, second, team_api))
    listed = [row["id"] for row in api.get("/api/v1/recalls").json()["results"]]
    assert listed == [mine]
    for foreign in (theirs, ours):
        answer = api.get(f"/api/v1/recalls/{foreign}")
        assert (answer.status_code, answer.json()["code"]) == (404, "recall_not_found")
    assert [row["id"] for row in team_api.get("/api/v1/recalls").json()["results"]] == [ours, theirs, mine]
    assert other_api.get("/api/v1/recalls").json()["results"] == []
    assert other_api.get(f"/api/v1/recalls/{mine}").status_code == 404
    assert factories.api_client(api.team, None, ["memory:write"]).get("/api/v1/recalls").status_code == 403


def test_what_an_agent_may_no_longer_read_is_not_told_again(team, agent, api, second) -> None:
    with team_transaction(team):
        shared = scopes.create_shared(team=team, by=SYSTEM, slug="billing", name="Billing", agent=second.agent)
        actions.remember(team=team, by=SYSTEM, scope=shared, agent=agent, draft=Draft(kind=Kind.FACT, content=SAID))
    answer = ask(second)
    assert receipt(second, answer["recall_id"])["hits"][0]["content"] == SAID
    with team_transaction(team):
        scopes.grant(team=team, by=SYSTEM, scope=shared, agent=second.agent, can_read=False, can_write=False)
    told = receipt(second, answer["recall_id"])
    assert (told["hits"][0]["content"], told["context"]) == (None, None)


# --- The list -----------------------------------------------------------------------------------------


def test_the_list_narrows_by_memory_agent_result_and_time(api, second, team_api, agent, memory) -> None:
    with_it = ask(api)["recall_id"]
    without = ask(second)["recall_id"]
    nothing = ask(api, "zzz qqq", min_relevance=1)["recall_id"]
    moment = Recall.objects.get(pk=without).created_at

    def found(**query: str) -> list[str]:
        answer = team_api.get("/api/v1/recalls", query)
        assert answer.status_code == 200, answer.content
        return [row["id"] for row in answer.json()["results"]]

    assert found(memory=str(memory.pk)) == [with_it]
    assert found(memory=str(uuid.uuid4())) == []
    assert found(agent="second") == [without]
    assert found(agent="nobody") == []
    assert found(status="no_match") == [nothing, without]
    assert found(created_before=moment.isoformat()) == [with_it]
    assert found(created_after=moment.isoformat()) == [nothing, without]
    assert api.get("/api/v1/recalls", {"agent": "second"}).json()["results"] == []
    for query in ({"memory": "x"}, {"created_after": "2026-01-01T00:00:00"}, {"limit": "0"}, {"status": "odd"}):
        assert team_api.get("/api/v1/recalls", query).status_code == 422, query


def test_the_list_is_read_page_by_page(api, memory) -> None:
    made = [ask(api)["recall_id"] for _ in range(5)]
    address, seen = "/api/v1/recalls?limit=2", []
    while address:
        answer = api.get(address).json()
        seen += [row["id"] for row in answer["results"]]
        assert all(row["hits"][0]["memory"] == str(memory.pk) for row in answer["results"])
        address = answer["next"]
    assert seen == made[::-1]


def test_lists_and_receipts_ask_a_constant_number_of_questions(api, agent, alice, browse) -> None:
    for number in range(3):
        factories.memory(agent, f"Rule {number}: invoices of month {number} are exported on day {number * 3 + 1}.")
    first = ask(api, top_k=1)["recall_id"]
    shop = browse(alice)

    def questions(client: Any, path: str) -> int:
        client.get(path)
        with CaptureQueriesContext(connection) as asked:
            assert client.get(path).status_code == 200
        return len(asked)

    paths = [(api, "/api/v1/recalls"), (shop, reverse("recalls"))]
    few = [questions(client, path) for client, path in paths]
    one = [questions(api, f"/api/v1/recalls/{first}"), questions(shop, reverse("recall", args=[first]))]
    more = ask(api, top_k=3)["recall_id"]
    for found in Memory.objects.filter(agent=agent):
        change(found, f"{found.content} Since spring.")
    earlier = "one more: the earlier revisions, together"
    assert [questions(client, path) for client, path in paths] == [few[0], few[1] + 1], earlier
    three = [questions(api, f"/api/v1/recalls/{more}"), questions(shop, reverse("recall", args=[more]))]
    assert three == [count + 1 for count in one], earlier


# --- The pages ----------------------------------------------------------------------------------------


def test_the_pages_answer_what_an_agent_got_on_a_day(api, second, alice, browse, memory, team) -> None:
    answer = ask(api)
    with team_transaction(team):
        recall = Recall.objects.of(team).get(pk=answer["recall_id"])
        tuesday = recall.created_at - timedelta(days=6)
        Recall.objects.of(team).filter(pk=recall.pk).update(created_at=tuesday)
    ask(second)
    change(memory)
    shop = browse(alice)
    day = f"{tuesday:%Y-%m-%d}"
    listed = shop.get(reverse("recalls"), {"agent": "coder", "since": day, "until": day})
    assert [recall.pk for recall in listed.context["page"].rows] == [uuid.UUID(answer["recall_id"])]
    assert SAYS_NOW not in listed.content.decode(), "that is not what was handed out"
    link = reverse("recall", args=[answer["recall_id"]])
    assert f'href="{link}"' in listed.content.decode()
    page = shop.get(link).content.decode()
    assert f'<p class="words">{SAID}</p>' in page
    assert f"{reverse('memory', args=[memory.pk])}#revision-1" in page
    assert "Changed since" in page
    assert "To the letter" in page
    assert "test" in page
    of_memory = shop.get(reverse("memory", args=[memory.pk])).content.decode()
    assert f'href="{link}"' in of_memory
    assert 'id="revision-1"' in of_memory
    assert f"/recalls/?memory={memory.pk}" in of_memory
    assert link in shop.get("/audit/").content.decode() or "recall.feedback" not in shop.get("/audit/").content.decode()


@pytest.mark.parametrize("query", ["memory=x", "since=x", "until=9999-12-31", "before=x", "agent=%F0%9F"])
def test_odd_filters_break_nothing(api, alice, browse, memory, query) -> None:
    ask(api)
    assert browse(alice).get(f"{reverse('recalls')}?{query}").status_code == 200


def test_empty_pages_say_what_to_do(alice, api, browse) -> None:
    assert "No recalls yet" in browse(alice).get(reverse("recalls")).content.decode()
    nothing = ask(api, "zzz", min_relevance=1)["recall_id"]
    assert (
        "Nothing: no memory was relevant enough"
        in browse(alice).get(reverse("recall", args=[nothing])).content.decode()
    )
    assert "Nothing matches" in browse(alice).get(reverse("recalls"), {"agent": "nobody"}).content.decode()


def test_the_list_of_a_memory_uses_the_index(api, agent, memory) -> None:
    ask(api)
    with team_transaction(agent.team):
        hit = RecallHit.objects.get()
        recalls = Recall.objects.bulk_create(
            Recall(team=agent.team, agent=agent, query=f"q {n}", status="matched") for n in range(3_000)
        )
        others = [factories.memory(agent, f"Other {n} {uuid.uuid4()}") for n in range(3)]
        RecallHit.objects.bulk_create(
            RecallHit(
                team=agent.team, recall=recall, memory=others[n % 3], revision=1, rank=1, score=0.5, relevance=0.5
            )
            for n, recall in enumerate(recalls)
        )
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE memories_recall, memories_recallhit")
        rows = receipt_queries.narrow(
            receipt_queries.visible(agent.team, None), agent.team, receipt_queries.ReceiptFilters(memory=memory.pk)
        )
        plan = rows.order_by("-created_at", "-id")[:40].explain()
        assert "recallhit_of_memory" in plan, plan
        assert "Seq Scan on memories_recall" not in plan, plan
        assert [recall.pk for recall in rows] == [hit.recall_id]
