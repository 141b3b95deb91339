"""Every write leaves its event; the page, the API and the download show it to those who may."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import audit, audit_queries
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.audit_queries import AuditFilters
from hindsight_site.accounts.models import Agent, ApiToken, AuditEvent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.middleware import current_request_id
from memories import actions as memories
from memories import scopes
from memories.actions import Draft, EvidenceDraft, FeedbackItem
from memories.actions.changing import governed
from memories.enums import Kind, RelationKind, Status
from memories.models import Memory, Recall
from reflection import actions as reflection
from reflection.drafts import StepDraft, TraceDraft
from reflection.models import Trace
from tests import factories
from tests.factories import ALL_SCOPES

pytestmark = pytest.mark.django_db
REQUEST = "a-request-of-ours"


@dataclass(frozen=True)
class Cast:
    """Whom and what the calls below act on."""

    team: Team
    alice: User
    agent: Agent
    token: ApiToken
    memory: Memory
    trace: Trace
    recall: Recall

    @property
    def who(self) -> dict[str, Any]:
        return {"team": self.team, "by": person(self.alice)}

    @property
    def draft(self) -> Draft:
        return Draft(kind=Kind.FACT, content="The build wants two cores and four gigabytes.")

    def evidence(self) -> EvidenceDraft:
        step = self.trace.steps.first()
        return EvidenceDraft(self.trace.pk, step.pk, step.sequence, step.role, 0, 6, step.content[:6])

    def other(self, **fields: Any) -> Memory:
        return factories.memory(self.agent, "Deploys happen on Tuesdays, after the stand-up.", **fields)

    def opened(self) -> Trace:
        return factories.trace(self.agent, outcome="")[0]

    def scope(self) -> Any:
        return scopes.create_shared(team=self.team, by=SYSTEM, slug="billing", name="Billing")


@pytest.fixture
def cast(team, alice, agent, api) -> Cast:
    memory = factories.memory(agent)
    trace, _ = factories.trace(agent)
    found = api.post("/api/v1/recall", {"query": "run the migrations before the tests", "min_relevance": 0}).json()
    with team_transaction(team):
        token = ApiToken.objects.of(team).get()
        recall = Recall.objects.of(team).get(pk=found["recall_id"])
    return Cast(team, alice, agent, token, memory, trace, recall)


def revised(c: Cast) -> Memory:
    return memories.revise(team=c.team, by=SYSTEM, memory=c.memory, content="Run the migrations, then the tests.")


def feedback(c: Cast) -> list[Any]:
    return memories.give_feedback(**c.who, recall=c.recall, items=[FeedbackItem(str(c.memory.pk), True, True)])


# MADE leave no `before`, CHANGED leave both and they differ, GONE leave no `after`.
MADE: dict[str, Callable[[Cast], Any]] = {
    "hindsight_site.accounts.actions.create_team": lambda c: accounts.create_team(
        by=person(c.alice), name="Second", owner=c.alice
    ),
    "hindsight_site.accounts.actions.create_agent": lambda c: accounts.create_agent(**c.who, slug="second"),
    "hindsight_site.accounts.actions.create_token": lambda c: accounts.create_token(
        **c.who, name="second", scopes=["review"], allowed=ALL_SCOPES
    ),
    "memories.scopes.add_agent": lambda c: scopes.add_agent(**c.who, slug="second"),
    "memories.scopes.create_shared": lambda c: scopes.create_shared(**c.who, slug="billing", name="Billing"),
    "memories.scopes.grant": lambda c: scopes.grant(
        **c.who, scope=c.scope(), agent=c.agent, can_read=True, can_write=False
    ),
    "memories.actions.remember": lambda c: memories.remember(
        **c.who, scope=c.memory.scope, draft=c.draft, agent=c.agent
    ),
    "memories.actions.remember_many": lambda c: memories.remember_many(
        **c.who, scope=c.memory.scope, drafts=[c.draft], agent=c.agent
    ),
    "memories.actions.relate": lambda c: memories.relate(
        **c.who, source=c.memory, target=c.other(), kind=RelationKind.SUPPORTS
    ),
    "memories.actions.give_feedback": feedback,
    "reflection.actions.record_trace": lambda c: reflection.record_trace(
        **c.who, agent=c.agent, draft=TraceDraft(task="Look for the invoice")
    ),
    "reflection.actions.request_reflection": lambda c: reflection.request_reflection(
        **c.who, trace=factories.trace(c.agent, steps=())[0]
    ),
}
CHANGED: dict[str, Callable[[Cast], Any]] = {
    "hindsight_site.accounts.actions.change_agent": lambda c: accounts.change_agent(
        **c.who, agent=c.agent, disabled=True
    ),
    "hindsight_site.accounts.actions.rename_token": lambda c: accounts.rename_token(
        **c.who, token=c.token, name="Other"
    ),
    "hindsight_site.accounts.actions.set_token_scopes": lambda c: accounts.set_token_scopes(
        **c.who, token=c.token, scopes=["review"], allowed=ALL_SCOPES
    ),
    "hindsight_site.accounts.actions.set_token_expiry": lambda c: accounts.set_token_expiry(
        **c.who, token=c.token, expires_at=datetime.now(UTC) + timedelta(days=1)
    ),
    "hindsight_site.accounts.actions.rotate_token": lambda c: accounts.rotate_token(
        **c.who, token=c.token, allowed=ALL_SCOPES
    ),
    "hindsight_site.accounts.actions.revoke_token": lambda c: accounts.revoke_token(**c.who, token=c.token),
    "memories.scopes.change": lambda c: scopes.change(**c.who, scope=c.memory.scope, name="Own"),
    "memories.actions.revise": lambda c: memories.revise(**c.who, memory=c.memory, content="Migrate, then test."),
    "memories.actions.rollback": lambda c: memories.rollback(**c.who, memory=revised(c), to=1),
    "memories.actions.approve": lambda c: memories.approve(**c.who, memory=c.memory),
    "memories.actions.demote": lambda c: memories.demote(**c.who, memory=c.memory),
    "memories.actions.archive": lambda c: memories.archive(**c.who, memory=c.memory),
    "memories.actions.restore": lambda c: memories.restore(**c.who, memory=c.other(status=Status.ARCHIVED)),
    "memories.actions.pin": lambda c: memories.pin(**c.who, memory=c.memory),
    "memories.actions.quarantine": lambda c: memories.quarantine(**c.who, memory=c.memory, reason="looks odd"),
    "memories.actions.release": lambda c: memories.release(**c.who, memory=c.other(status=Status.QUARANTINED)),
    "memories.actions.reject": lambda c: memories.reject(**c.who, memory=c.other(status=Status.QUARANTINED)),
    "memories.actions.put_back": lambda c: memories.put_back(
        **c.who, memory=c.memory, before={**governed(c.memory), "weight": 0.5}
    ),
    "memories.actions.confirm": lambda c: memories.confirm(
        **c.who, memory=c.memory, draft=Draft(kind=Kind.FACT, content="x", evidence=(c.evidence(),))
    ),
    "memories.actions.forget": lambda c: memories.forget(**c.who, memory=c.memory),
    "reflection.actions.append_steps": lambda c: reflection.append_steps(
        **c.who, trace=c.opened(), steps=[StepDraft(role="user", content="One more thing.")]
    ),
    "reflection.actions.finish_trace": lambda c: reflection.finish_trace(**c.who, trace=c.opened(), outcome="failed"),
}
GONE: dict[str, Callable[[Cast], Any]] = {
    "memories.scopes.delete": lambda c: scopes.delete(**c.who, scope=c.scope()),
    "reflection.actions.delete_trace": lambda c: reflection.delete_trace(**c.who, trace=c.trace),
}


def writers(module: ModuleType) -> list[str]:
    """The public functions of a module that somebody does: they take `by`."""
    return [
        f"{module.__name__}.{name}"
        for name, found in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_")
        and found.__module__.startswith(module.__name__)
        and "by" in inspect.signature(found).parameters
    ]


WRITERS = [name for module in (accounts, scopes, memories, reflection) for name in writers(module)]


def test_every_writer_is_walked() -> None:
    assert len(WRITERS) > 30
    assert set(WRITERS) == set(MADE) | set(CHANGED) | set(GONE)


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_leaves_its_event(cast, name) -> None:
    marker = current_request_id.set(REQUEST)
    try:
        with team_transaction(cast.team):
            done = {**MADE, **CHANGED, **GONE}[name](cast)
            team = done if isinstance(done, Team) else cast.team
            mine = AuditEvent.objects.of(team).filter(actor_id=str(cast.alice.pk), request_id=REQUEST)
            events = list(mine.order_by("at"))
    finally:
        current_request_id.reset(marker)
    assert events, f"{name} left no event"
    for event in events:
        assert (event.actor_kind, event.actor_label) == ("person", str(cast.alice))
        assert event.object_type
        assert event.object_id
    # The event of the change itself; what follows from it (a token made by a rotation) has its own.
    expected = (name in CHANGED or name in GONE, name not in GONE)
    assert any((bool(e.before), bool(e.after)) == expected and e.before != e.after for e in events), events


def test_no_event_holds_what_a_memory_says(cast) -> None:
    with team_transaction(cast.team):
        for name in ("memories.actions.remember", "memories.actions.revise", "memories.actions.forget"):
            {**MADE, **CHANGED}[name](cast)
        told = [str(event) for event in AuditEvent.objects.of(cast.team).values()]
    assert not any("migrat" in text.lower() or "gigabytes" in text for text in told)


def test_a_fingerprint_tells_states_apart(team, agent) -> None:
    with team_transaction(team):
        token, _ = accounts.create_token(team=team, by=SYSTEM, name="t", scopes=["review"], allowed=ALL_SCOPES)
        stored = ApiToken.objects.of(team).get(pk=token.pk)
        assert audit.state_of(stored) == audit.state_of(ApiToken.objects.of(team).get(pk=token.pk))
        stored.name = "u"
        assert audit.state_of(stored) != audit.state_of(token)


# --- The page -------------------------------------------------------------------------------------


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
    event(team, "memory.approved", actor_label="Zoe", object_id="m-1")
    event(team, "token.revoked", object_type="apitoken", object_id="t-1", at=datetime(2025, 3, 2, 12, tzinfo=UTC))
    shop = browse(alice)
    for query, seen, unseen in (
        ("verb=memory", "memory.approved", "token.revoked"),
        ("verb=memory.approved", "memory.approved", "token.revoked"),
        ("actor=zo", "memory.approved", "token.revoked"),
        ("object=apitoken", "token.revoked", "memory.approved"),
        ("object=t-1", "token.revoked", "memory.approved"),
        ("since=2025-03-02&until=2025-03-02", "token.revoked", "memory.approved"),
        ("since=2025-03-03", "memory.approved", "token.revoked"),
    ):
        page = shop.get(f"/audit/?{query}").content.decode()
        assert f"<code>{seen}</code>" in page, query
        assert f"<code>{unseen}</code>" not in page, query
    assert "Nothing matches" in shop.get("/audit/?verb=nothing").content.decode()


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
    assert len(seen) == 95
    assert len(set(seen)) == 95


def test_the_page_asks_the_database_little(team, alice, browse) -> None:
    for _ in range(60):
        event(team)
    shop = browse(alice)
    with CaptureQueriesContext(connection) as few:
        shop.get("/audit/")
    assert len(few) < 14


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


@pytest.mark.parametrize("label", ["=1+1", "+SUM(A1)", "-2", "@cmd", "\t=1"])
def test_a_spreadsheet_runs_nothing(team, alice, browse, label) -> None:
    event(team, "memory.pinned", actor_label=label)
    rows = rows_of(browse(alice).get("/audit/download/?verb=memory.pinned"))
    assert rows[1][3] == f"'{label}"


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
