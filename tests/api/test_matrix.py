"""Every route × every role: who gets in, who does not, and that another team's objects are not there."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import invitations
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import ChunkRole, DeliveryStatus, JobKind, JobStatus, TeamRole
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs import files
from hindsight_site.accounts.models import ApiToken, Job, Membership, Team, TeamDeletion, User, WebhookDelivery
from hindsight_site.accounts.permissions import ROLES
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks import actions as webhooks
from memories import actions, scopes
from memories.models import Memory, Recall, Relation, Scope
from reflection import model_choice
from reflection.models import Trace
from reflection.review.sampling import open_batch
from tests import factories
from tests.api.routes import ADMIN_ADDRESSES, ADMIN_MODELS, CALLS, OPEN, OPEN_ADDRESSES, PAGES, PERSON, Call, Page
from tests.factories import ALL_SCOPES, ApiClient

pytestmark = pytest.mark.django_db
API = "api/v1/"
ROLE_OF = {"alice": "owner", "dave": "admin", "bob": "reviewer", "carol": "viewer"}


def walk(patterns: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the address and the pattern of every route."""
    for found in patterns:
        address = prefix + str(found.pattern)
        if hasattr(found, "url_patterns"):
            yield from walk(found.url_patterns, address)
        else:
            yield address, found


ROUTES = list(walk(get_resolver().url_patterns))
ADMIN = [address.removeprefix("admin/") for address, _ in ROUTES if address.startswith("admin/")]


# --- Nothing is left out ---------------------------------------------------------------------------


def test_every_route_is_expected() -> None:
    """A new route wants a line in `tests/api/routes.py`."""
    unknown = []
    for address, found in ROUTES:
        known = (
            address.startswith("admin/")
            or address in OPEN_ADDRESSES
            or (address.removeprefix(API) in CALLS if address.startswith(API) else found.name in PAGES)
        )
        unknown += [] if known else [f"{address} ({found.name})"]
    assert not unknown


def test_every_expectation_is_a_route() -> None:
    names, addresses = {found.name for _, found in ROUTES}, {address for address, _ in ROUTES}
    assert set(PAGES) <= names
    assert {API + path for path in CALLS} | OPEN_ADDRESSES <= addresses


def test_every_model_of_the_admin_is_expected() -> None:
    models = {match.groups() for address in ADMIN if (match := re.match(r"(\w+)/(\w+)/$", address))}
    models -= {("password_change", "done")}
    assert models == {(app, model) for app, names in ADMIN_MODELS.items() for model in names}


def test_calls_name_the_scope_that_the_view_asks_for() -> None:
    for address, found in ROUTES:
        if address.startswith(API) and (call := CALLS.get(address.removeprefix(API))):
            assert found.callback.cls.token_scopes == call.scopes, address


# --- The cast and its things -------------------------------------------------------------------------


@pytest.fixture
def things(team, alice, carol, agent, api, other_agent) -> dict[str, Any]:
    """The team's objects by the names under which addresses, forms and bodies ask for them."""
    memory = factories.memory(agent, "Run them after.")
    with team_transaction(team):
        memory = actions.revise(team=team, by=SYSTEM, memory=memory, content="Run the migrations before the tests.")
    says = [factories.memory(agent, f"The default branch is {name}.") for name in ("main", "develop")]
    trace, reflection = factories.trace(agent)
    recall = api.post("/api/v1/recall", {"query": "run the migrations", "min_relevance": 0}).json()
    victim = factories.member(team, "erin@acme.test", TeamRole.VIEWER)
    factories.agent(team, "second")
    with team_transaction(team):
        conflict = Relation.objects.of(team).get(source=says[1], target=says[0])
        batch = open_batch(team=team, by=SYSTEM)
        scopes.create_shared(team=team, by=SYSTEM, slug="billing", name="Billing", agent=agent)
        token, _ = accounts.create_token(
            team=team, by=SYSTEM, name="narrow", scopes=["admin"], allowed=ALL_SCOPES, agent=agent
        )
        team_token, _ = accounts.create_token(
            team=team, by=SYSTEM, name="of the team", scopes=["admin"], allowed=ALL_SCOPES
        )
        invitation = invitations.invite(
            team=team, by=SYSTEM, email="new@acme.test", role="viewer", allowed=TeamRole.values, inviter=alice
        )
        deletion = TeamDeletion.objects.create(team=team, team_name=team.name, requested_by=alice)
        export = jobs.request(team=team, by=SYSTEM, kind=JobKind.EXPORT)
        files.put(export, ChunkRole.OUTPUT, 0, b"{}\n")
        Job.objects.of(team).filter(pk=export.pk).update(status=JobStatus.DONE)
        model_choice.set_model(team=team, by=SYSTEM, base_url="https://models.acme.test/v1", model="ours")
        webhook, _ = webhooks.create_webhook(
            team=team, by=SYSTEM, url="https://hooks.acme.test/", events=["job.finished"]
        )
        delivery = webhooks.ping(team=team, by=SYSTEM, webhook=webhook)
        WebhookDelivery.objects.of(team).update(status=DeliveryStatus.DELIVERED, finished_at=timezone.now())
        return {
            "webhook_id": webhook.pk,
            "client_id": factories.connected_client(agent, alice).pk,
            "delivery_id": delivery.pk,
            "job_id": export.pk,
            "memory_id": memory.pk,
            "conflict_id": conflict.pk,
            "decision": "release",
            "verb": "archive",
            "number": 1,
            "trace_id": trace.pk,
            "reflection_id": reflection.pk,
            "recall": recall["recall_id"],
            "recall_id": recall["recall_id"],
            "batch_id": batch.pk,
            "item_id": batch.items.first().pk,
            "week": batch.week,
            "table": "acceptance",
            "form": "csv",
            "bulk_action": "claim",
            "prefix": token.prefix,
            "token_id": token.pk,
            "team_token_id": team_token.pk,
            "membership_id": Membership.objects.of(team).get(user=victim).pk,
            "invitation_id": invitation.pk,
            "deletion_id": deletion.pk,
            "team_id": team.pk,
            "page": "review",
            "token": "no-such-link",
            "key": "no-such-key",
            "session_id": "a-session",
            "uidb36": "a",
            "pk": 10**6,
        }


@contextmanager
def rolled_back() -> Iterator[None]:
    """Whatever happens inside has not happened."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def visit(client: Client, name: str, page: Page, things: dict[str, Any]) -> Any:
    pattern = next(found for _, found in ROUTES if found.name == name).pattern
    address = reverse(name, kwargs={key: slug_of(name, key, things) for key in pattern.regex.groupindex})
    form = {key: str(things[value]) for key, value in page.form.items()}
    with rolled_back():
        return client.get(address) if page.method == "get" else client.post(address, form)


def slug_of(address: str, key: str, things: dict[str, Any]) -> Any:
    if key != "slug":
        return things[key]
    return "billing" if address.startswith("scopes") else "coder"


def sent_to_log_in(answer: Any) -> bool:
    return answer.status_code == 302 and answer["Location"].startswith("/login/")


# --- Pages -------------------------------------------------------------------------------------------

each_page = pytest.mark.parametrize(
    ("name", "page"),
    [(name, page) for name, pages in PAGES.items() for page in pages],
    ids=[f"{page.method}-{name}" for name, pages in PAGES.items() for page in pages],
)


@each_page
def test_pages(name, page, things, team, alice, bob, carol, mallory, browse) -> None:
    dave = factories.member(team, "dave@acme.test", TeamRole.ADMIN)
    anonymous = visit(Client(), name, page, things)
    assert anonymous.status_code < 500
    assert sent_to_log_in(anonymous) if page.who != OPEN else anonymous.status_code != 403
    people = {"alice": alice, "dave": dave, "bob": bob, "carol": carol}
    for person, role in ROLE_OF.items():
        answer = visit(browse(people[person]), name, page, things)
        check_page(page, role, answer, f"{name} as {role}")
    other = visit(browse(mallory), name, page, things)
    assert page.who == OPEN or not sent_to_log_in(other)
    assert other.status_code < 500
    if page.ours:
        assert other.status_code == 404, f"{name}: another team's owner got {other.status_code}"


def check_page(page: Page, role: str, answer: Any, told: str) -> None:
    if page.who in (OPEN, PERSON):
        assert answer.status_code < 500, told
        assert not sent_to_log_in(answer) or page.who == OPEN, told
    elif page.who in ROLES[role]:
        assert answer.status_code not in {401, 403, 404, 405}, f"{told}: {answer.status_code}"
        assert answer.status_code < 500, f"{told}: {answer.status_code}"
        assert not sent_to_log_in(answer), told
    else:
        assert answer.status_code == 403, f"{told}: {answer.status_code}"


# --- Calls -------------------------------------------------------------------------------------------

each_call = pytest.mark.parametrize(
    ("path", "call", "method"),
    [(path, call, method) for path, call in CALLS.items() for method in call.scopes],
    ids=[f"{method}-{path}" for path, call in CALLS.items() for method in call.scopes],
)


def send(client: Client, path: str, call: Call, method: str, things: dict[str, Any]) -> Any:
    address = re.sub(r"<\w+:(\w+)>", lambda match: str(slug_of(path, match[1], things)), path)
    body = {key: things.get(value, value) if isinstance(value, str) else value for key, value in call.body.items()}
    with rolled_back():
        if method == "GET":
            return client.get(f"/{API}{address}")
        return client.generic(
            method, f"/{API}{address}", json.dumps(body, default=str), content_type="application/json"
        )


@each_call
def test_calls(path, call, method, things, team, alice, api, other_team) -> None:
    needed = call.scopes[method]
    assert send(Client(), path, call, method, things).status_code == 401
    forged = Client(headers={"Authorization": "Bearer hs_aaaaaaaa_" + "A" * 43})
    assert send(forged, path, call, method, things).status_code == 401
    if needed is not None:
        lacking = factories.api_client(team, None, [scope for scope in ALL_SCOPES if scope != needed])
        refused = send(lacking, path, call, method, things)
        assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
    acts_for = alice if call.person else None
    having = factories.api_client(team, None, [needed] if needed else ALL_SCOPES, acts_for)
    answer = send(having, path, call, method, things)
    assert answer.status_code not in {401, 403, 404, 405}, answer.content
    assert answer.status_code < 500, answer.content
    bound = send(api, path, call, method, things)
    refused_as_bound = bound.status_code == 403 and bound.json()["code"] == "team_token_needed"
    assert refused_as_bound == (method in call.team_only), bound.content
    names_an_object = call.ours and ("<" in path or method != "GET")
    for client, hidden in ((factories.api_client(other_team, None), call.ours), (second(team), call.private)):
        answer = send(client, path, call, method, things)
        assert answer.status_code < 500
        if hidden and names_an_object:
            assert answer.status_code == 404, answer.content
            assert answer["Content-Type"] == "application/problem+json"
        else:
            assert answer.status_code not in {401, 405}, answer.content


def second(team: Team) -> ApiClient:
    """A client bound to another agent of the same team, with every scope."""
    with team_transaction(team):
        agent = scopes.Agent.objects.of(team).get(slug="second")
    return factories.api_client(team, agent)


@pytest.mark.parametrize("address", sorted(OPEN_ADDRESSES))
def test_open_addresses_want_no_login(address) -> None:
    answer = Client().get(f"/{address}")
    assert answer.status_code not in {302, 403, 404}
    assert answer.status_code < 500


# --- Django's admin -----------------------------------------------------------------------------------


def admin_address(address: str) -> str:
    filled = re.sub(r"<\w+:object_id>|<id>", str(uuid.uuid4()), address)
    filled = filled.replace("<path:content_type_id>", "1")
    if filled.startswith("^"):
        return "/admin/accounts/"
    return "/admin/" + filled.replace("(?P<url>.*)$", "anything/")


@pytest.mark.parametrize("address", ADMIN)
def test_the_admin_is_for_staff(address, alice, browse) -> None:
    if address in {"login/", "logout/"}:
        return  # the way in and out: every test of a log-in walks them
    for client in (Client(), browse(alice)):
        for answer in (client.get(admin_address(address)), client.post(admin_address(address))):
            assert answer.status_code in {302, 403, 405}, answer.status_code
            assert answer.status_code != 302 or "/login/" in answer["Location"]


def test_the_admin_has_no_other_addresses() -> None:
    plain = {address for address in ADMIN if "<" not in address}
    models = {f"{app}/{model}/" for app, names in ADMIN_MODELS.items() for model in names}
    assert plain - ADMIN_ADDRESSES - models - {f"{address}add/" for address in models} == set()


@pytest.mark.parametrize(
    "address", ["", *(f"{app}/{model}/" for app, names in ADMIN_MODELS.items() for model in sorted(names))]
)
def test_staff_get_in(address, alice, things, browse) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    alice.refresh_from_db()
    assert browse(alice).get(f"/admin/{address}").status_code == 200


# --- No key of a payload moves anything ---------------------------------------------------------------


@pytest.fixture
def smuggled(other_team: Team, mallory: User) -> dict[str, str]:
    ident = str(other_team.pk)
    return {"team": ident, "team_id": ident, "organization": other_team.slug, "user_id": str(mallory.pk)}


BODIES: dict[str, dict[str, Any]] = {
    "memories": {"kind": "fact", "content": "Invoices go out on Mondays."},
    "memories/bulk": {"memories": [{"kind": "fact", "content": "Invoices go out on Mondays."}]},
    "recall": {"query": "when do invoices go out?"},
    "traces": {"task": "Send the invoices", "steps": [{"role": "user", "content": "Send them."}]},
    "agents": {"slug": "third"},
    "scopes": {"slug": "third"},
    "tokens": {"name": "third", "scopes": ["review"]},
    "auth/token": {},
}


def counts(team: Team) -> dict[str, int]:
    with team_transaction(team):
        models = (Memory, Trace, Recall, Scope, ApiToken)
        return {model.__name__: model.objects.of(team).count() for model in models}


@pytest.mark.parametrize("path", sorted(BODIES))
def test_no_key_of_a_payload_moves_it(path, api, team_api, team, other_team, smuggled) -> None:
    body = {**BODIES[path], **smuggled, "metadata": smuggled, "extra": smuggled}
    if path == "memories/bulk":
        body["memories"] = [{**item, **smuggled, "metadata": smuggled} for item in BODIES[path]["memories"]]
    if path == "traces":
        body["steps"] = [{**step, **smuggled} for step in body["steps"]]
    before, ours = counts(other_team), counts(team)
    query = "&".join(f"{key}={value}" for key, value in smuggled.items())
    headers = {"X-Team": smuggled["team"], "X-Team-Id": smuggled["team"], "X-Organization": smuggled["organization"]}
    client = team_api if "POST" in CALLS[path].team_only else api
    answer = client.post(f"/{API}{path}?{query}", body, headers=headers)
    assert answer.status_code in {200, 201}, answer.content
    assert counts(other_team) == before
    made = {"memories": "Memory", "memories/bulk": "Memory", "traces": "Trace", "recall": "Recall"}
    if path in made:
        assert counts(team)[made[path]] == ours[made[path]] + 1


def test_the_keys_are_kept_as_data(api, smuggled) -> None:
    made = api.post(f"/{API}memories", {**BODIES["memories"], "metadata": smuggled, **smuggled}).json()
    assert made["scope"] == "private-coder"
    assert set(made["metadata"]) == set(smuggled)


def test_no_key_of_a_query_widens_a_list(other_api, api, agent, smuggled, team) -> None:
    factories.memory(agent)
    ours = {"team": str(team.pk), "team_id": str(team.pk), "organization": team.slug}
    for path in ("memories", "traces", "reflections", "agents", "scopes", "tokens", "audit"):
        rows = other_api.get(f"/{API}{path}", ours).json()["results"]
        assert "coder" not in str(rows)
        assert "acme" not in str(rows)
