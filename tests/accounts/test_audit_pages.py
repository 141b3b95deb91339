"""The audit's page, download and API: narrowed alike, and shown to those who may see it."""

from __future__ import annotations

import csv
import io
import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from hindsight_site.accounts import audit_queries
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.audit_choices import verbs_of
from hindsight_site.accounts.audit_links import PLACES
from hindsight_site.accounts.audit_queries import AuditFilters
from hindsight_site.accounts.models import AuditEvent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import scopes
from reflection import actions as reflection
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide
from tests import factories

pytestmark = pytest.mark.django_db


def event(team: Team, verb: str = "memory.approved", **fields: Any) -> AuditEvent:
    given = {
        "actor_kind": "person",
        "actor_id": "1",
        "actor_label": "Alice",
        "object_type": "memory",
        "object_id": "m1",
    }
    with team_transaction(team):
        return AuditEvent.objects.create(team=team, verb=verb, **{**given, **fields})


def test_the_page_is_for_admins_and_owners(team, alice, bob, carol, browse) -> None:
    dave = factories.member(team, "dave@acme.test", "admin")
    for who in (alice, dave):
        page = browse(who).get("/audit/")
        assert page.status_code == 200
        assert b'href="/audit/" aria-current="page"' in page.content
    for who in (bob, carol):
        assert browse(who).get("/audit/").status_code == 403
        assert browse(who).get("/audit/download/").status_code == 403
        assert b'href="/audit/"' not in browse(who).get("/").content


def test_the_page_filters(team, alice, browse) -> None:
    event(team, "memory.approved", actor_id="7", actor_label="Zoe", object_id="m-1")
    fields = {"actor_kind": "system", "actor_id": "", "actor_label": "a rule", "object_type": "apitoken"}
    event(team, "token.revoked", object_id="t-1", at=datetime(2025, 3, 2, 12, tzinfo=UTC), **fields)
    shop = browse(alice)
    for query, seen, unseen in (
        ("verb=memory", "memory.approved", "token.revoked"),
        ("verb=memory.approved", "memory.approved", "token.revoked"),
        ("actor=zo", "memory.approved", "token.revoked"),
        ("actor=person:7", "memory.approved", "token.revoked"),
        ("actor=system:", "token.revoked", "memory.approved"),
        ("kind=apitoken", "token.revoked", "memory.approved"),
        ("object=t-1", "token.revoked", "memory.approved"),
        ("kind=memory&object=m-1", "memory.approved", "token.revoked"),
        ("since=2025-03-02&until=2025-03-02", "token.revoked", "memory.approved"),
        ("since=2025-03-03", "memory.approved", "token.revoked"),
    ):
        page = shop.get(f"/audit/?{query}").content.decode()
        assert f"<code>{seen}</code>" in page, query
        assert f"<code>{unseen}</code>" not in page, query
    nothing = shop.get("/audit/?verb=nothing").content.decode()
    assert "Nothing matches" in nothing
    assert '<option value="nothing" selected>' in nothing, "the form says what the address says"


def test_the_selects_offer_what_there_is(team, other_team, alice, browse) -> None:
    event(team, "memory.approved", actor_id="7", actor_label="Zoe")
    event(team, "memory.approved", actor_id="7", actor_label="Zoe Newname")
    event(team, "token.revoked", actor_kind="token", actor_id="t-9", actor_label="coder", object_type="apitoken")
    event(other_team, "scope.created", actor_id="9", actor_label="Mallory", object_type="scope")
    page = browse(alice).get("/audit/?actor=person:7&verb=token")
    assert page.context["verbs"] == {
        "memory": ["memory.approved"],
        "team": ["team.created"],
        "token": ["token.revoked"],
    }
    assert page.context["kinds"] == ["apitoken", "memory", "team"]
    offered = dict(page.context["actors"])
    assert offered["People"] == [("person:7", "Zoe Newname")]
    assert offered["Tokens"] == [("token:t-9", "coder")]
    text = page.content.decode()
    assert '<option value="person:7" selected>Zoe Newname</option>' in text
    assert '<option value="token" selected>token: anything</option>' in text
    assert "scope.created" not in text
    assert "Mallory" not in text


def test_times_are_absolute_and_the_readers(team, alice, browse) -> None:
    User.objects.filter(pk=alice.pk).update(time_zone="Asia/Tokyo")
    event(team, at=datetime(2025, 3, 2, 20, 30, 7, tzinfo=UTC))
    page = browse(alice).get("/audit/?until=2025-03-03").content.decode()
    assert '<time datetime="2025-03-02T20:30:07+00:00" title="3 Mar 2025">3 Mar 2025, 05:30:07</time>' in page
    assert "Asia/Tokyo" in page


def test_an_object_is_linked_while_it_exists(team, alice, agent, api, browse) -> None:
    memory = factories.memory(agent)
    trace, _ = factories.trace(agent)
    found = api.post("/api/v1/recall", {"query": "run the migrations", "min_relevance": 0}).json()["recall_id"]
    api.post("/api/v1/feedback", {"recall_id": found, "success": True})
    with team_transaction(team):
        batch = open_batch(team=team, by=SYSTEM)
        reflection.delete_trace(team=team, by=SYSTEM, trace=factories.trace(agent)[0])
        item = batch.items.first()
        decide(team=team, by=SYSTEM, reviewer=alice, item=item, decision="approve", version=item.version)
        scopes.create_shared(team=team, by=SYSTEM, slug="billing", name="Billing")
        gone = AuditEvent.objects.of(team).get(verb="trace.deleted").object_id
    page = browse(alice).get("/audit/").content.decode()
    links = [
        reverse("memory", args=[memory.pk]),
        reverse("trace", args=[trace.pk]),
        reverse("recall", args=[found]),
        reverse("review-batch", args=[batch.week]),
        reverse("review-item", args=[item.pk]),
        reverse("connect_agent", args=["coder"]),
        "/memories/?scope=billing",
        "/team/",
    ]
    shop = browse(alice)
    for link in links:
        assert f'<a href="{link}">' in page, link
        assert shop.get(link).status_code == 200, link
    assert f"/traces/{gone}/" not in page


def test_every_place_is_a_model_and_its_fields() -> None:
    for kind, place in PLACES.items():
        model = apps.get_model(place.model)
        assert model._meta.model_name == kind
        model._default_manager.values_list(*place.fields)


@pytest.mark.parametrize(
    "query",
    ["since=9999-12-31&until=9999-12-31", "since=0001-01-01", "until=x", "before=x", "verb=%F0%9F"],
)
def test_odd_filters_break_nothing(alice, browse, query) -> None:
    assert browse(alice).get(f"/audit/?{query}").status_code == 200
    assert browse(alice).get(f"/audit/download/?{query}").status_code == 200


def test_a_detail_may_have_any_name(team, alice, browse) -> None:
    event(team, detail={"items": 3, "keys": ["a"], "<b>": "<script>"})
    page = browse(alice).get("/audit/").content.decode()
    assert "<dt>items</dt><dd>3</dd>" in page
    assert "<script>" not in page.split("<tbody>")[1].split("</tbody>")[0]


def test_pages_hold_every_event_once(team, alice, browse) -> None:
    now = datetime(2025, 3, 2, tzinfo=UTC)
    for number in range(95):
        event(team, "memory.pinned", object_id=f"m-{number:03}", at=now)  # all at one moment: the id decides
    shop, query, seen = browse(alice), "?verb=memory.pinned", []
    while query:
        page = shop.get(f"/audit/{query}").context["page"]
        seen += [row.object_id for row in page.rows]
        query = page.older
        assert not query or "verb=memory.pinned" in query
    assert len(seen) == 95
    assert len(set(seen)) == 95


def test_the_page_asks_the_database_little(team, alice, browse) -> None:
    shop = browse(alice)
    event(team, object_id=str(uuid.uuid4()))
    shop.get("/audit/")
    with CaptureQueriesContext(connection) as few:
        shop.get("/audit/")
    for number in range(60):
        event(team, f"memory.{number}", object_id=str(uuid.uuid4()), actor_id=str(number))
    with CaptureQueriesContext(connection) as more:
        shop.get("/audit/")
    assert len(more) == len(few) < 16


def test_narrowing_uses_the_indexes(team) -> None:
    with team_transaction(team):
        AuditEvent.objects.bulk_create(
            AuditEvent(
                team=team, actor_kind="person", actor_id=str(n % 40), verb=f"memory.v{n % 50}", object_type="memory",
                object_id=str(n), after="f" * 64,
            )
            for n in range(4_000)
        )  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE accounts_auditevent")
        for filters, index in (
            (AuditFilters(verb="memory.v7"), "auditevent_verb"),
            (AuditFilters(actor="7", actor_kind="person"), "auditevent_actor"),
            (AuditFilters(object_id="77"), "auditevent_object"),
            (AuditFilters(), "auditevent_at"),
        ):
            plan = audit_queries.found(team, filters).order_by("-at", "-id")[:40].explain()
            assert index in plan, plan
        with CaptureQueriesContext(connection) as asked:
            assert len(verbs_of(team)["memory"]) == 50
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + asked[0]["sql"])
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "auditevent_verb" in plan, plan
        assert "Seq Scan" not in plan


# --- The download ---------------------------------------------------------------------------------


def rows_of(answer: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_the_download_is_streamed_whole_and_narrowed(team, alice, browse) -> None:
    for number in range(5):
        event(team, "memory.pinned", object_id=f"m-{number}")
    answer = browse(alice).get("/audit/download/?verb=memory.pinned")
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer["Content-Disposition"]
    header, *rows = rows_of(answer)
    assert header == list(audit_queries.COLUMNS)
    assert [row[6] for row in rows] == ["m-4", "m-3", "m-2", "m-1", "m-0"]


def test_the_download_goes_on_over_chunks(team) -> None:
    now = datetime(2025, 3, 2, tzinfo=UTC)
    for number in range(11):
        event(team, "memory.pinned", object_id=f"m-{number}", at=now)
    text = "".join(audit_queries.lines(team, AuditFilters(verb="memory.pinned"), chunk=3))
    ids = [row[6] for row in csv.reader(io.StringIO(text))][1:]
    assert sorted(ids) == sorted(f"m-{number}" for number in range(11))


@pytest.mark.parametrize("label", ["=1+1", "+SUM(A1)", "-2", "@cmd", "\t=1", "  =1", "＝1", "\n=1"])
def test_a_spreadsheet_runs_nothing(team, alice, browse, label) -> None:
    event(team, "memory.pinned", actor_label=label)
    rows = rows_of(browse(alice).get("/audit/download/?verb=memory.pinned"))
    assert rows[1][3] == f"'{label}"


def test_a_detail_is_json_and_filters_are_the_pages(team, alice, browse) -> None:
    event(team, "memory.pinned", actor_id="7", detail={"week": "=1", "n": 2}, object_id="m-1")
    event(team, "memory.pinned", actor_id="8", object_id="m-2")
    query = "actor=person:7&kind=memory&object=m-1&verb=memory"
    page = browse(alice).get(f"/audit/?{query}&before=x")
    assert page.context["download"] == "actor=person%3A7&verb=memory&kind=memory&object=m-1", "no cursor in it"
    _, *rows = rows_of(browse(alice).get(f"/audit/download/?{page.context['download']}"))
    assert [row[6] for row in rows] == ["m-1"]
    assert json.loads(rows[0][9]) == {"n": 2, "week": "=1"}


# --- The API --------------------------------------------------------------------------------------


def test_the_api_lists_and_filters(team, team_api) -> None:
    event(team, "memory.approved", object_id="m-1", detail={"status": "active"})
    event(team, "memory.demoted", object_id="m-2")
    answer = team_api.get("/api/v1/audit?verb=memory&limit=1").json()
    assert [row["object_id"] for row in answer["results"]] == ["m-2"]
    older = team_api.get(answer["next"]).json()["results"]
    assert [(row["object_id"], row["detail"]) for row in older] == [("m-1", {"status": "active"})]
    assert team_api.get("/api/v1/audit?object_id=m-1").json()["results"] == older
    assert team_api.get("/api/v1/audit?since=2999-01-01T00:00:00Z").json()["results"] == []
    assert team_api.get("/api/v1/audit?since=2999-01-01T00:00:00").status_code == 422
    assert team_api.get("/api/v1/audit?actor_kind=person&actor=1&verb=memory.approved").json()["results"] == older
    assert team_api.get("/api/v1/audit?actor_kind=token&actor=1").json()["results"] == []
    assert team_api.get("/api/v1/audit?actor_kind=nobody").status_code == 422
    assert team_api.get("/api/v1/audit?object_type=memory").json()["results"][-1] == older[0]
    assert factories.api_client(team, None, ["memory:read"]).get("/api/v1/audit").status_code == 403


def test_a_bound_token_sees_its_own_agents_events(team, api, team_api) -> None:
    team_api.post("/api/v1/memories", {"kind": "fact", "content": "Written by the team's token."})
    api.post("/api/v1/memories", {"kind": "fact", "content": "Written by the agent's token."})
    rows = api.get("/api/v1/audit").json()["results"]
    assert [row["verb"] for row in rows] == ["memory.remembered"]
    assert rows[0]["actor_label"].startswith("coder")


def test_another_teams_events_are_not_there(team, other_team, mallory, other_api, browse) -> None:
    event(team, "memory.approved", object_id="m-acme")
    assert b"m-acme" not in browse(mallory).get("/audit/").content
    assert "m-acme" not in str(rows_of(browse(mallory).get("/audit/download/")))
    assert "m-acme" not in str(other_api.get("/api/v1/audit").json())
