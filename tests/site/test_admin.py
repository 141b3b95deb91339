"""The admin: one team at a time, searched through indexes, changed through the actions, history untouched."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import deletion
from hindsight_site.accounts.admin_base import CappedPaginator, ReadOnly
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent, ApiToken, AuditEvent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.actions import forget
from memories.admin import words_query
from memories.enums import Status
from memories.models import Evidence, Memory, Recall, RecallHit, Revision, Scope
from memories.policies import LIVE
from memories.search import keywords
from reflection.models import Reflection, Step, Trace
from reflection.review.sampling import open_batch
from tests import factories

pytestmark = pytest.mark.django_db
MANY = 2_000
OURS = ("accounts", "memories", "reflection")
# Made of people and not of teams, or of the site's own queue: the lists are their own.
NOT_OURS = {"user"}


@pytest.fixture
def staff(browse, alice, team) -> Client:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    alice.refresh_from_db()
    client = browse(alice)
    client.post("/admin/work-in/", {"team": team.slug})
    return client


def ids_of(answer: Any) -> set[uuid.UUID]:
    assert answer.status_code == 200, answer
    return {row.pk for row in answer.context["cl"].result_list}


def act(client: Client, path: str, action: str, *rows: Any) -> Any:
    return client.post(path, {"action": action, "_selected_action": [str(row.pk) for row in rows]}, follow=True)


def verbs(team: Team) -> list[str]:
    with team_transaction(team):
        return list(AuditEvent.objects.of(team).order_by("at", "id").values_list("verb", flat=True))


# --- Which team -----------------------------------------------------------------------------------------


def test_every_page_says_in_which_team_staff_work(staff, team, other_team, agent) -> None:
    memory = factories.memory(agent)
    for path in (
        "",
        "memories/memory/",
        f"memories/memory/{memory.pk}/change/",
        "accounts/user/",
        "accounts/user/add/",
    ):
        page = staff.get(f"/admin/{path}").content.decode()
        assert '<option value="acme" selected>Acme</option>' in page, path
        assert '<option value="rival">Rival</option>' in page, path
        assert 'action="/admin/work-in/"' in page, path


def test_lists_hold_the_team_worked_in_and_no_other(staff, agent, other_agent, other_team) -> None:
    ours, theirs = factories.memory(agent), factories.memory(other_agent)
    assert ids_of(staff.get("/admin/memories/memory/")) == {ours.pk}
    assert ids_of(staff.get(f"/admin/memories/memory/?q={theirs.pk}")) == set()
    assert staff.get(f"/admin/memories/memory/{theirs.pk}/change/").status_code == 302
    staff.post("/admin/work-in/", {"team": other_team.slug})
    assert ids_of(staff.get("/admin/memories/memory/")) == {theirs.pk}
    assert verbs(other_team)[-1] == "staff.entered"


def test_without_a_team_chosen_lists_are_empty(browse, alice, agent) -> None:
    factories.memory(agent)
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    alice.refresh_from_db()
    client = browse(alice)
    assert ids_of(client.get("/admin/memories/memory/")) == set()
    assert ids_of(client.get("/admin/accounts/auditevent/")) == set()


# --- Nothing is changed behind the audit ------------------------------------------------------------------


def our_admins() -> list[admin.ModelAdmin]:
    return [one for model, one in admin.site._registry.items() if model._meta.app_label in OURS]


@pytest.mark.parametrize("one", our_admins(), ids=lambda one: one.model._meta.label)
def test_rows_are_only_looked_at(one, rf, alice, team) -> None:
    alice.is_staff = alice.is_superuser = True
    request = rf.get("/")
    request.user, request.staff_team = alice, team
    assert not one.has_delete_permission(request)
    if one.model._meta.model_name not in NOT_OURS:
        assert isinstance(one, ReadOnly)
        assert not one.has_add_permission(request)
        assert not one.has_change_permission(request)


@pytest.mark.parametrize("one", our_admins(), ids=lambda one: one.model._meta.label)
def test_lists_and_filters_are_bounded(one) -> None:
    assert one.paginator is CappedPaginator
    assert not one.show_full_result_count
    assert one.show_facets is admin.ShowFacets.NEVER
    assert one.date_hierarchy is None, "it looks at the whole table"
    for entry in one.list_filter:
        field = one.model._meta.get_field(entry) if isinstance(entry, str) else None
        assert field is None or field.choices or field.get_internal_type() == "BooleanField", (
            f"{entry}: distinct values"
        )
    assert not [name for name in one.search_fields if "contains" in name or name.startswith(("=", "^", "@"))]


def test_history_cannot_be_posted_away(staff, agent, team) -> None:
    memory = factories.memory(agent)
    with team_transaction(team):
        event = AuditEvent.objects.of(team).first()
    for path in (f"accounts/auditevent/{event.pk}", f"memories/memory/{memory.pk}"):
        assert staff.post(f"/admin/{path}/delete/", {"post": "yes"}).status_code == 403
        assert staff.post(f"/admin/{path}/change/", {"verb": "x", "content": "x"}).status_code == 403
    act(staff, "/admin/accounts/auditevent/", "delete_selected", event)
    with team_transaction(team):
        assert AuditEvent.objects.of(team).filter(pk=event.pk).exists()


def test_only_a_superuser_makes_staff(browse, bob, alice, team) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.refresh_from_db()
    bob.user_permissions.set(permissions("change_user", "view_user"))
    client = browse(bob)
    page = client.get(f"/admin/accounts/user/{bob.pk}/change/").content.decode()
    assert 'name="is_superuser"' not in page
    assert 'name="is_active"' in page


def permissions(*names: str) -> Any:
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(codename__in=names)


# --- Actions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "before", "after", "verb"),
    [
        ("approve_selected", Status.ACTIVE, {Status.ACTIVE}, "memory.approved"),
        ("demote_selected", Status.ACTIVE, {Status.DEMOTED}, "memory.demoted"),
        ("archive_selected", Status.ACTIVE, {Status.ARCHIVED}, "memory.archived"),
        ("restore_selected", Status.ARCHIVED, {Status.ACTIVE}, "memory.restored"),
        ("release_selected", Status.QUARANTINED, LIVE, "memory.released"),
        ("reject_selected", Status.QUARANTINED, {Status.REJECTED}, "memory.rejected"),
    ],
)
def test_memories_are_judged_through_the_actions(staff, agent, team, alice, action, before, after, verb) -> None:
    rows = [factories.memory(agent, f"Rule {n}: {uuid.uuid4()}", status=before) for n in range(2)]
    act(staff, "/admin/memories/memory/", action, *rows)
    with team_transaction(team):
        assert {Memory.objects.get(pk=row.pk).status for row in rows} <= set(after)
        events = AuditEvent.objects.of(team).filter(verb=verb)
        assert {event.object_id for event in events} == {str(row.pk) for row in rows}
        assert {event.actor_id for event in events} == {str(alice.pk)}


def test_a_refusal_stops_none_of_the_others(staff, agent, team) -> None:
    gone, live = factories.memory(agent), factories.memory(agent, "Another rule.")
    with team_transaction(team):
        forget(team=team, by=SYSTEM, memory=gone)
    page = act(staff, "/admin/memories/memory/", "demote_selected", gone, live).content.decode()
    assert "cannot become" in page
    assert "1 done" in page
    with team_transaction(team):
        assert Memory.objects.get(pk=live.pk).status == Status.DEMOTED


def test_looking_alone_lets_nobody_act(browse, bob, agent, team) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.refresh_from_db()
    bob.user_permissions.set(permissions("view_memory"))
    client, memory = browse(bob), factories.memory(agent)
    client.post("/admin/work-in/", {"team": team.slug})
    assert ids_of(client.get("/admin/memories/memory/")) == {memory.pk}
    act(client, "/admin/memories/memory/", "demote_selected", memory)
    with team_transaction(team):
        assert Memory.objects.get(pk=memory.pk).status == Status.ACTIVE


def test_agents_and_tokens_are_shut_out_through_the_actions(staff, agent, team, api) -> None:
    act(staff, "/admin/accounts/agent/", "disable", agent)
    assert verbs(team)[-1] == "agent.changed"
    assert api.get("/api/v1/me").status_code in (401, 403)
    act(staff, "/admin/accounts/agent/", "enable", agent)
    with team_transaction(team):
        assert Agent.objects.get(pk=agent.pk).disabled_at is None
        token = ApiToken.objects.of(team).get(agent=agent)
    act(staff, "/admin/accounts/apitoken/", "revoke", token)
    assert verbs(team)[-1] == "token.revoked"
    assert api.get("/api/v1/me").status_code == 401


def test_a_team_is_suspended_and_resumed(staff, team, other_team, mallory, browse, agent) -> None:
    memory = factories.memory(agent)
    page = act(staff, "/admin/accounts/team/", "suspend", other_team)
    assert "1 done" in page.content.decode()
    assert verbs(other_team)[-1] == "team.suspended"
    assert browse(mallory).get("/memories/").status_code == 403
    assert ids_of(staff.get("/admin/memories/memory/")) == {memory.pk}, "staff still work in their own choice"
    act(staff, "/admin/accounts/team/", "suspend", other_team)
    act(staff, "/admin/accounts/team/", "resume", other_team)
    assert verbs(other_team)[-2:] == ["team.suspended", "team.resumed"]
    assert browse(mallory).get("/memories/").status_code == 200


def test_a_team_that_is_being_deleted_is_not_resumed(staff, other_team, mallory) -> None:
    with team_transaction(other_team):
        deletion.request_deletion(team=other_team, by=SYSTEM, requested_by=mallory, confirmation=other_team.slug)
    page = act(staff, "/admin/accounts/team/", "resume", other_team).content.decode()
    assert "is being deleted" in page
    assert Team.objects.get(pk=other_team.pk).suspended_at is not None


# --- Searching --------------------------------------------------------------------------------------------


@pytest.fixture
def crowd(agent, team) -> dict[str, Any]:
    """A few thousand rows of everything that is looked for, with what the searches below are to find."""
    words = ["harbour", "invoice", "migration", "locker", "parcel", "stand-up", "deploy", "ledger"]
    with team_transaction(team):
        scope = Scope.objects.of(team).get(agent=agent)
        now = timezone.now()
        memories = Memory.objects.bulk_create(
            Memory(
                team=team, scope=scope, agent=agent, tier="episodic", kind="fact", status="active", fingerprint=str(n),
                content=f"The {words[n % 8]} number {n} is {words[n // 8 % 8]}.", created_at=now,
            )
            for n in range(MANY)
        )  # fmt: skip
        keywords.upsert(
            team_id=team.pk,
            rows=[
                (one.pk, scope.pk, "active", [words[n % 8], words[n // 8 % 8], str(n)])
                for n, one in enumerate(memories)
            ],
        )
        traces = Trace.objects.bulk_create(
            Trace(team=team, agent=agent, task=f"Task {n}", session_id=f"s-{n}", status="succeeded")
            for n in range(MANY)
        )
        Step.objects.bulk_create(
            Step(team=team, trace=traces[n], sequence=0, role="user", kind="message", content="x") for n in range(MANY)
        )
        Reflection.objects.bulk_create(
            Reflection(team=team, trace=traces[n], agent=agent, scope=scope, status="skipped") for n in range(MANY)
        )
        recalls = Recall.objects.bulk_create(
            Recall(team=team, agent=agent, query=f"q {n}", status="matched") for n in range(MANY)
        )
        RecallHit.objects.bulk_create(
            RecallHit(team=team, recall=recalls[n], memory=memories[n], revision=1, rank=1, score=0, relevance=0)
            for n in range(MANY)
        )
        Revision.objects.bulk_create(
            Revision(
                team=team, memory=memories[n], number=1, content="x", tier="episodic", confidence=0.5, valid_from=now,
                actor_kind="system",
            )
            for n in range(MANY)
        )  # fmt: skip
        AuditEvent.objects.bulk_create(
            AuditEvent(
                team=team, actor_kind="system", verb="memory.remembered", object_type="memory",
                object_id=str(memories[n].pk), request_id=f"r-{n}",
            )
            for n in range(MANY)
        )  # fmt: skip
        User.objects.bulk_create(User(email=f"person{n}@crowd.test", password="!") for n in range(MANY))
        with connection.cursor() as cursor:
            cursor.execute("REINDEX INDEX memoryterms_tokens")  # what a vacuum does between now and then
            cursor.execute("ANALYZE")
    return {
        "memory": memories[77].pk, "trace": traces[77].pk, "session": "s-77", "recall": recalls[77].pk,
        "request": "r-77", "words": "ledger 1015", "person": "person1234@", "agent": agent.pk,
    }  # fmt: skip


SEARCHES = [
    ("memories/memory", "memory"),
    ("memories/memory", "words"),
    ("memories/revision", "memory"),
    ("memories/recall", "recall"),
    ("memories/recallhit", "memory"),
    ("memories/recallhit", "recall"),
    ("reflection/trace", "trace"),
    ("reflection/trace", "session"),
    ("reflection/step", "trace"),
    ("reflection/reflection", "trace"),
    ("accounts/auditevent", "memory"),
    ("accounts/auditevent", "request"),
    ("accounts/user", "person"),
    ("account/emailaddress", "person"),
]
BIG = re.compile(r"Seq Scan on (?:public\.)?(\w+)")
CROWDED = {
    model._meta.db_table for model in (Memory, Trace, Step, Reflection, Recall, RecallHit, Revision, AuditEvent, User)
}


def plans_of(asked: CaptureQueriesContext, team: Team) -> list[str]:
    """The plan of each question that was asked of the database."""
    found = []
    with team_transaction(team), connection.cursor() as cursor:
        for query in asked.captured_queries:
            if query["sql"].lstrip().upper().startswith(("SELECT", "WITH")) and "set_config" not in query["sql"]:
                cursor.execute("EXPLAIN " + query["sql"])
                found.append("\n".join(row[0] for row in cursor.fetchall()))
    return found


def check_words(staff: Client, crowd: dict[str, Any], team: Team) -> None:
    with CaptureQueriesContext(connection) as asked:
        staff.get(f"/admin/memories/memory/?q={crowd['words']}")
    # With one team and a few thousand rows reading the table is as quick: what counts is that it need not be read.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    (plan,) = [plan for plan in plans_of(asked, team) if "memories_memoryterms" in plan]
    assert re.search(r"Index Scan on memoryterms_tokens\b.*\n\s+Index Cond: .*tokens @@ ", plan), plan


def test_searches_find_their_rows_through_indexes(staff, crowd, team) -> None:
    for path, term in SEARCHES:
        address = f"/admin/{path}/?q={crowd[term]}"
        with CaptureQueriesContext(connection) as asked:
            answer = staff.get(address)
        found = ids_of(answer)
        assert len(found) == (0 if path == "account/emailaddress" else 1), address
        read = {table for plan in plans_of(asked, team) for table in BIG.findall(plan)}
        assert not read & CROWDED, f"{address}: {read & CROWDED}"
    check_words(staff, crowd, team)
    assert ids_of(staff.get(f"/admin/memories/memory/?q={crowd['memory']}")) == {crowd["memory"]}
    assert ids_of(staff.get("/admin/memories/memory/?q=no such words")) == set()
    assert ids_of(staff.get("/admin/reflection/step/?q=not-an-id")) == set()


def test_words_find_what_has_them_all(staff, agent) -> None:
    both = factories.memory(agent, "Deploys to the harbour happen on Tuesdays.")
    factories.memory(agent, "The harbour is closed in winter.")
    demoted = factories.memory(agent, "Parcels of the harbour deploy themselves.", status=Status.DEMOTED)
    assert both.pk in ids_of(staff.get("/admin/memories/memory/?q=harbour deploys tuesdays"))
    assert len(ids_of(staff.get("/admin/memories/memory/?q=harbour deploys tuesdays"))) == 1
    assert demoted.pk in ids_of(staff.get("/admin/memories/memory/?q=parcels")), "whatever its status"


def test_a_search_means_every_word_in_any_of_its_forms() -> None:
    assert words_query("invoices  ERR_CONN_4031") == "('invoices' | 'invoic') & ('err_conn_4031')"
    assert words_query("出口发票").count(" & ") >= 2
    assert words_query("' ) | :* \\") == ""
    assert "'" not in words_query("it's").replace("''", "").strip("()'")


def test_chinese_words_find_their_memory(staff, agent) -> None:
    found = factories.memory(agent, "三月的发票按月份编号出口。")
    factories.memory(agent, "三月的仓库在码头旁边。")
    assert ids_of(staff.get("/admin/memories/memory/?q=发票")) == {found.pk}


def test_a_prefix_of_an_address_finds_a_person_in_any_case(staff, alice) -> None:
    odd = User.objects.create_user("Odd.Case@acme.test")
    for term in ("Odd", "odd.case@ACME.test"):
        assert ids_of(staff.get(f"/admin/accounts/user/?q={term}")) == {odd.pk}
    assert len(ids_of(staff.get("/admin/account/emailaddress/?q=odd.case@acme.test"))) == 1
    assert ids_of(staff.get("/admin/accounts/team/?q=ac")) == {staff.get("/").wsgi_request.team.pk}
    assert len(ids_of(staff.get("/admin/accounts/membership/?q=alice"))) == 1


def test_lists_ask_a_constant_number_of_questions(staff, agent, team, api) -> None:
    def grow(count: int) -> None:
        for n in range(count):
            factories.memory(agent, f"Rule {uuid.uuid4()} on day {n}.")
            factories.trace(agent)
            api.post("/api/v1/recall", {"query": "rule", "min_relevance": 0})
            with team_transaction(team):
                accounts.create_token(team=team, by=SYSTEM, name="t", scopes=["review"], allowed=["review"])
        with team_transaction(team):
            open_batch(team=team, by=SYSTEM)

    def counts() -> dict[str, int]:
        found = {}
        for one in our_admins():
            path = f"/admin/{one.model._meta.app_label}/{one.model._meta.model_name}/"
            with CaptureQueriesContext(connection) as asked:
                assert staff.get(path).status_code == 200
            found[path] = len(asked)
        return found

    grow(1)
    counts()
    few = counts()
    grow(4)
    assert counts() == few
    assert max(few.values()) < 16


def test_a_count_stops(team, agent, monkeypatch) -> None:
    monkeypatch.setattr("hindsight_site.accounts.admin_base.MOST_COUNTED", 3)
    for n in range(5):
        factories.memory(agent, f"Rule {n} {uuid.uuid4()}")
    with team_transaction(team):
        assert CappedPaginator(Memory.objects.of(team).order_by("pk"), 2).count == 3
        assert Evidence.objects.of(team).count() == 0
