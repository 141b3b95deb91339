"""Resources and prompts."""

from __future__ import annotations

import json

import pytest

from memories import scopes
from tests import factories
from tests.mcp.caller import MODERN

pytestmark = pytest.mark.django_db


def read(mcp, uri: str) -> dict:
    contents = mcp.ask("resources/read", {"uri": uri})["contents"]
    assert [(one["uri"], one["mimeType"]) for one in contents] == [(uri, "application/json")]
    return json.loads(contents[0]["text"])


def test_what_is_listed(any_mcp) -> None:
    assert [one["uri"] for one in any_mcp.ask("resources/list")["resources"]] == ["hindsight://scopes"]
    templates = any_mcp.ask("resources/templates/list")["resourceTemplates"]
    assert [one["uriTemplate"] for one in templates] == ["hindsight://memory/{id}", "hindsight://trace/{id}"]


def test_a_memory_and_a_trace(any_mcp) -> None:
    memory = factories.memory(any_mcp.agent, "迁移先于测试 – run the migrations first.")
    told = read(any_mcp, f"hindsight://memory/{memory.pk}")
    assert told["memory"]["content"] == memory.content
    trace, reflection = factories.trace(any_mcp.agent)
    told = read(any_mcp, f"hindsight://trace/{trace.pk}")
    assert (told["task"], len(told["steps"])) == (trace.task, trace.step_count)
    assert told["reflections"][0]["id"] == str(reflection.pk)


def test_scopes(mcp, team_mcp) -> None:
    assert [scope["slug"] for scope in read(mcp, "hindsight://scopes")["scopes"]] == ["private-coder", "team"]
    assert [scope["slug"] for scope in read(team_mcp, "hindsight://scopes")["scopes"]] == ["private-coder", "team"]
    assert scopes.TEAM_SCOPE == "team"


@pytest.mark.parametrize(
    "uri",
    [
        "hindsight://memory/0199a3b2-5d21-7b0a-8c77-1e9f4a6b2c33", "hindsight://memory/x", "hindsight://memory/",
        "hindsight://other/0199a3b2-5d21-7b0a-8c77-1e9f4a6b2c33", "file:///etc/passwd", "hindsight://scopes/",
        "http://[", "", "hindsight://memory/../trace/x", "hindsight://scopes?x",
    ],
)  # fmt: skip
def test_what_is_not_there(any_mcp, uri) -> None:
    fault = any_mcp.fault("resources/read", {"uri": uri})
    assert fault["code"] == (-32602 if any_mcp.version == MODERN else -32002)
    assert fault["data"]["uri"] == uri


def test_long_traces_are_shortened_and_say_so(mcp, settings) -> None:
    settings.MCP_MAX_RESOURCE_BYTES = 2_000
    trace, _ = factories.trace(mcp.agent, result="r" * 3_000)
    told = read(mcp, f"hindsight://trace/{trace.pk}")
    assert "shortened" in told["cut"]
    assert (told["id"], told["result"][-1]) == (str(trace.pk), "…")


def test_prompts(any_mcp) -> None:
    listed = {one["name"]: one for one in any_mcp.ask("prompts/list")["prompts"]}
    assert set(listed) == {"hindsight_before_task", "hindsight_after_task"}
    before = any_mcp.ask("prompts/get", {"name": "hindsight_before_task", "arguments": {"task": "Export {x} für Åsa"}})
    assert before["messages"][0]["role"] == "user"
    text = before["messages"][0]["content"]["text"]
    assert text.startswith("Before you begin with this task: Export {x} für Åsa")
    assert "hindsight_recall" in text
    after = any_mcp.ask("prompts/get", {"name": "hindsight_after_task", "arguments": {"outcome": "failed"}})
    assert "(failed)" in after["messages"][0]["content"]["text"]
    plain = any_mcp.ask("prompts/get", {"name": "hindsight_after_task"})["messages"][0]["content"]["text"]
    assert "The task is over. Now" in plain
    assert {"hindsight_feedback", "hindsight_record_trace"} <= {word.strip(".,") for word in plain.split()}


@pytest.mark.parametrize(
    ("typed", "values"), [("", ["succeeded", "failed", "interrupted"]), ("Fa", ["failed"]), ("x", [])]
)
def test_completion_of_what_a_person_types(any_mcp, typed, values) -> None:
    ref = {"type": "ref/prompt", "name": "hindsight_after_task"}
    asked = {"ref": ref, "argument": {"name": "outcome", "value": typed}}
    assert any_mcp.ask("completion/complete", asked)["completion"]["values"] == values


def test_completion_where_there_is_nothing_to_choose_from(any_mcp) -> None:
    free = {"ref": {"type": "ref/prompt", "name": "hindsight_before_task"}, "argument": {"name": "task", "value": "s"}}
    assert any_mcp.ask("completion/complete", free)["completion"]["values"] == []
    memory = {"type": "ref/resource", "uri": "hindsight://memory/{id}"}
    asked = {"ref": memory, "argument": {"name": "id", "value": "0"}}
    assert any_mcp.ask("completion/complete", asked)["completion"]["values"] == []
    nobodys = {**free, "ref": {"type": "ref/prompt", "name": "nope"}}
    assert any_mcp.fault("completion/complete", nobodys)["code"] == -32602
