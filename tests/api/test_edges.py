"""Values at the edge of what JSON, Python and PostgreSQL can hold are refused by name, and never an error of ours."""

from __future__ import annotations

import json

import pytest

from hindsight_site.api.pagination import MAX_LIMIT
from tests import factories

pytestmark = pytest.mark.django_db
FACT = {"kind": "fact", "content": "Invoices go out on Mondays."}


@pytest.mark.parametrize(
    "limit", ["0", "-1", "201", "0000000201", "000001999999", "9" * 5000, "1.0", "٣", "\x00", "1e2", " 5"]
)
def test_a_limit_beyond_its_range(api, limit) -> None:
    answer = api.get("/api/v1/memories", {"limit": limit})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limit"


def test_the_largest_limit(api) -> None:
    assert api.get("/api/v1/memories", {"limit": str(MAX_LIMIT)}).status_code == 200


@pytest.mark.parametrize("wait", ["21", "00000011111111", "9" * 5000, "-1"])
def test_a_wait_beyond_its_range(api, agent, wait) -> None:
    _, reflection = factories.trace(agent, steps=())
    assert api.get(f"/api/v1/reflections/{reflection.pk}", {"wait": wait}).status_code == 422


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 400, "9" * 5000])
def test_a_number_that_cannot_be_kept(api, number) -> None:
    body = json.dumps({**FACT, "metadata": {"n": "N"}}).replace('"N"', number)
    answer = api.generic("POST", "/api/v1/memories", body, content_type="application/json")
    assert answer.status_code == 422
    assert answer.json()["code"] == "malformed"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_outside_the_calendar(api, moment) -> None:
    assert api.post("/api/v1/memories", {**FACT, "occurred_at": moment}).status_code == 422
    steps = [{"role": "user", "content": "Hello.", "at": moment}]
    answer = api.post("/api/v1/traces", {"task": "t", "steps": steps})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "steps.0.at")


@pytest.mark.parametrize(
    "query", ["text=%00", "tag=a%00b", "scope=%00", "agent=%00", "kind=%00", "created_after=%00", "cursor=%00"]
)
def test_nul_in_a_query(api, query) -> None:
    assert api.get(f"/api/v1/memories?{query}").status_code == 422
    assert api.get("/api/v1/traces?session_id=%00").status_code == 422
    assert api.get("/api/v1/audit?actor=%00").status_code == 422


@pytest.mark.parametrize("path", ["agents/%00", "scopes/a%00", "tokens/%00", "memories/%00", "agents/%F0%9F"])
def test_nul_and_half_characters_in_an_address(api, path) -> None:
    answer = api.get(f"/api/v1/{path}")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("header", ["x", '"0000000000001"', '"-1"', "é", '"1", "2"', '"' + "9" * 5000 + '"'])
def test_an_if_match_that_is_no_revision(api, agent, header) -> None:
    memory = factories.memory(agent)
    answer = api.patch(f"/api/v1/memories/{memory.pk}", {"tags": ["a"]}, HTTP_IF_MATCH=header)
    assert answer.status_code == 422


@pytest.mark.parametrize("key", ["a" * 201, "\x00", "\x7f"])
def test_an_idempotency_key_that_is_none(api, key) -> None:
    assert api.post("/api/v1/memories", FACT, HTTP_IDEMPOTENCY_KEY=key).status_code == 422
