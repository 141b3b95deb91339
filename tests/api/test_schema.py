"""The OpenAPI document is whole, and every operation behaves as it says, whatever is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hindsight_site.wsgi import application
from tests import factories

pytestmark = pytest.mark.django_db

DOCUMENT = json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True)))
METHODS = ("get", "post", "patch", "put", "delete")
OPERATIONS = [
    (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method in METHODS
]
each_operation = pytest.mark.parametrize(
    ("path", "method", "operation"), OPERATIONS, ids=[operation["operationId"] for _, _, operation in OPERATIONS]
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def test_the_document_is_valid_and_without_a_warning() -> None:
    out = StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=out)
    assert "openapi: 3.1" in out.getvalue()


def test_the_document_is_served_as_3_1(client) -> None:
    answer = client.get("/api/v1/schema", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")
    assert len(answer.json()["paths"]) == len(DOCUMENT["paths"])


@each_operation
def test_an_operation_says_what_it_does_and_how_it_fails(path, method, operation) -> None:
    assert operation["summary"]
    assert operation["tags"]
    assert operation["security"]
    needed = {"401", "429"} | ({"409", "404"} if method == "post" else set()) | ({"404"} if "{" in path else set())
    assert needed <= set(operation["responses"])
    for status, answer in operation["responses"].items():
        described = resolve(answer)
        assert "X-Request-ID" in described["headers"]
        if int(status) >= 400:
            assert set(described["content"]) == {"application/problem+json"}
        if int(status) in {429, 503}:
            assert "Retry-After" in described["headers"]
        if status == "202":
            assert "Location" in described["headers"]


@each_operation
def test_headers_are_documented(path, method, operation) -> None:
    taken = {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "header"}
    if method == "post" and {"201", "202"} & set(operation["responses"]):
        assert "Idempotency-Key" in taken
    form = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    edits = "revision" in resolve(form).get("properties", {})
    assert edits == ("If-Match" in taken) == ("412" in operation["responses"])


@each_operation
def test_every_list_is_results_next_previous(path, method, operation) -> None:
    given_back = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
    assert given_back.get("type") != "array", "a bare array: lists are {results, next, previous}"
    if operation["operationId"].endswith("_list"):
        form = resolve(given_back)
        assert form["required"] == ["results", "next", "previous"]
        assert {"limit", "cursor"} <= {parameter["name"] for parameter in operation["parameters"]}


def test_recall_and_traces_have_examples_that_work(api) -> None:
    for path in ("/api/v1/recall", "/api/v1/traces", "/api/v1/memories"):
        media = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert media["examples"]
        for example in media["examples"].values():
            assert api.post(path, example["value"]).status_code in {200, 201}
    assert len(
        DOCUMENT["paths"]["/api/v1/recall"]["post"]["responses"]["200"]["content"]["application/json"]["examples"]
    )


def test_the_reference_leads_on_without_scripts(client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    without = page[page.index("<noscript>") : page.index("</noscript>")]
    assert "/api/v1/schema?format=json" in without


def test_the_reference_loads_nothing_from_another_host(client, settings) -> None:
    answer = client.get("/api/v1/docs")
    page = answer.content.decode()
    script = client.get("/api/v1/docs?script=").content.decode()
    assert answer.status_code == 200
    assets = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert len(assets) >= 3
    assert all(asset.startswith("/") and not asset.startswith("//") for asset in assets)
    assert not re.findall(r"https?://", page + script)
    for asset in assets:
        served = client.get(asset)
        assert served.status_code == 200, asset
        served.close()


def resolve(part: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference into the document's components."""
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for key in part["$ref"].removeprefix("#/").split("/"):
        found = found[key]
    return resolve(found)


# --- Whatever is sent -----------------------------------------------------------------------------


@pytest.fixture
def seeded(team, agent, api, team_api) -> dict[str, Any]:
    """A row behind every id that an address or a body can name, and a token that may everything."""
    memory = factories.memory(agent, "The invoice export wants the month as YYYY-MM.", tags=("invoices",))
    trace, _ = factories.trace(agent)
    _, reflection = factories.trace(agent, steps=())  # ended at once: nobody waits for it
    recall = api.post("/api/v1/recall", {"query": "export the invoices of one month", "min_relevance": 0}).json()
    api.patch(f"/api/v1/memories/{memory.pk}", {"content": "The invoice export wants the month as YYYY-MM only."})
    return {
        "token": team_api.secret,
        "bound": api.secret,
        "memory_id": str(memory.pk),
        "memory": str(memory.pk),
        "trace_id": str(trace.pk),
        "trace": str(trace.pk),
        "reflection_id": str(reflection.pk),
        "recall_id": recall["recall_id"],
        "prefix": api.secret.split("_")[1],
        "agent": "coder",
        "scope": "team",
        "scopes": ["team"],
        "/api/v1/agents": "coder",
        "/api/v1/scopes": "team",
    }


@pytest.fixture
def one_connection(seeded) -> Iterator[None]:
    """Requests end without closing the connection, in whose transaction the seeded rows are.

    After the seeding: the test client connects these receivers again.
    """
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


def put_real_ids(case: Any, path: str, seeded: dict[str, Any]) -> None:
    """Let the address and the body name rows that exist."""
    for name in case.path_parameters or {}:
        prefix = path.partition("/{")[0]
        case.path_parameters[name] = seeded[name] if name in seeded else seeded.get(prefix, case.path_parameters[name])
    if isinstance(case.body, dict):
        for name in set(case.body) & {"memory", "trace", "recall_id", "agent", "scope", "scopes"}:
            case.body[name] = seeded[name]


WILD = st.sampled_from(
    ["", "\x00", "a\x00b", "é" * 300, "𠮷🙂\u202e", "9" * 4400, "-1", "0" * 7 + "9", "[]", "null", "1e999"]
)


@each_operation
def test_no_input_breaks_an_operation(path, method, operation, seeded, one_connection) -> None:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.app = application
    target = schema[path][method.upper()]
    queries = [parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"]

    @settings(
        max_examples=16, derandomize=True, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=st.data())
    def try_it(data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
        case = data.draw(target.as_strategy(mode, feedback=NO_FEEDBACK))
        if data.draw(st.booleans()):
            put_real_ids(case, path, seeded)
        if queries and data.draw(st.booleans()):
            case.query = {**(case.query or {}), data.draw(st.sampled_from(queries)): data.draw(WILD)}
        secret = seeded[data.draw(st.sampled_from(["token", "bound"]))]
        with transaction.atomic():  # a view without a transaction of its own marks this one when it refuses
            case.call_and_validate(headers={"Authorization": f"Bearer {secret}"}, checks=CHECKS)

    try_it()
