"""Traces in other tools' shapes: the same task in each becomes the same steps."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.refusals import Refused
from reflection.api.steps import read_steps
from reflection.formats import FORMATS, READERS

TASK, THOUGHT, ANSWER = "出口三月的发票", "The month wants digits.", "412 invoices in invoices.csv"
BAD, GOOD = {"month": "March"}, {"month": "2026-03"}
ERROR, ROWS = "Error: month must be YYYY-MM", '{"rows": 412}'


def openai_chat() -> list[dict[str, Any]]:
    def calls(number: int, arguments: dict[str, str]) -> list[dict[str, Any]]:
        function = {"name": "export", "arguments": json.dumps(arguments)}
        return [{"id": f"call_{number}", "type": "function", "function": function}]

    return [
        {"role": "user", "content": [{"type": "text", "text": TASK}]},
        {"role": "assistant", "content": None, "tool_calls": calls(1, BAD)},
        {"role": "tool", "tool_call_id": "call_1", "content": ERROR},
        {"role": "assistant", "content": None, "reasoning_content": THOUGHT, "tool_calls": calls(2, GOOD)},
        {"role": "tool", "tool_call_id": "call_2", "content": ROWS},
        {"role": "assistant", "content": ANSWER},
    ]


def openai_responses() -> list[dict[str, Any]]:
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TASK}]},
        {"type": "function_call", "name": "export", "arguments": json.dumps(BAD), "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": ERROR},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {"type": "function_call", "name": "export", "arguments": json.dumps(GOOD), "call_id": "call_2"},
        {"type": "function_call_output", "call_id": "call_2", "output": ROWS},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ]


def anthropic() -> list[dict[str, Any]]:
    def use(number: int, arguments: dict[str, str]) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"call_{number}", "name": "export", "input": arguments}

    def result(number: int, text: str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"type": "tool_result", "tool_use_id": f"call_{number}", "content": content, **more}

    return [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": [use(1, BAD)]},
        {"role": "user", "content": [result(1, ERROR, is_error=True)]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": THOUGHT}, use(2, GOOD)]},
        {"role": "user", "content": [result(2, ROWS)]},
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ]


def langchain_flat() -> list[dict[str, Any]]:
    def call(number: int, arguments: dict[str, str]) -> dict[str, Any]:
        return {"name": "export", "args": arguments, "id": f"call_{number}", "type": "tool_call"}

    thinking = [{"type": "reasoning", "reasoning": THOUGHT}, {"type": "tool_use", "id": "call_2", "name": "export"}]
    return [
        {"type": "human", "content": TASK},
        {"type": "ai", "content": "", "tool_calls": [call(1, BAD)]},
        {"type": "tool", "tool_call_id": "call_1", "content": ERROR, "status": "error"},
        {"type": "ai", "content": thinking, "tool_calls": [call(2, GOOD)]},
        {"type": "tool", "tool_call_id": "call_2", "content": ROWS, "status": "success"},
        {"type": "ai", "content": ANSWER},
    ]


def langchain_wrapped() -> list[dict[str, Any]]:
    return [{"type": item["type"], "data": item} for item in langchain_flat()]


def langchain_dumped() -> list[dict[str, Any]]:
    names = {"human": "HumanMessage", "ai": "AIMessageChunk", "tool": "ToolMessage"}
    return [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", names[item["type"]]],
            "kwargs": {key: value for key, value in item.items() if key != "type"},
        }
        for item in langchain_flat()
    ]


def _model_call(start: int, told: list[dict[str, Any]], said: dict[str, Any]) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(told),
        "gen_ai.output.messages": json.dumps([said]),
    }
    return {"name": "chat", "start_time": f"2026-03-31T09:00:{start:02}Z", "attributes": attributes}


def _tool_call(start: int, number: int, arguments: dict[str, str], answer: str, **more: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "export",
        "gen_ai.tool.call.id": f"call_{number}",
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": answer,
    }
    return {"name": "execute_tool", "start_time": f"2026-03-31T09:00:{start:02}Z", "attributes": attributes, **more}


def otel() -> list[dict[str, Any]]:
    """Each model call repeats the conversation; the spans come in the order in which they ended."""

    def said(*parts: dict[str, Any]) -> dict[str, Any]:
        return {"role": "assistant", "parts": list(parts)}

    def call(number: int, arguments: dict[str, str]) -> dict[str, Any]:
        return {"type": "tool_call", "id": f"call_{number}", "name": "export", "arguments": arguments}

    def answered(number: int, text: str) -> dict[str, Any]:
        part = {"type": "tool_call_response", "id": f"call_{number}", "response": text}
        return {"role": "tool", "parts": [part]}

    asked = {"role": "user", "parts": [{"type": "text", "content": TASK}]}
    first, second = said(call(1, BAD)), said({"type": "reasoning", "content": THOUGHT}, call(2, GOOD))
    history = [asked, first, answered(1, ERROR), second, answered(2, ROWS)]
    return [
        _tool_call(2, 1, BAD, ERROR, status={"code": "STATUS_CODE_ERROR"}),
        _tool_call(4, 2, GOOD, ROWS),
        _model_call(1, history[:1], first),
        _model_call(3, history[:3], second),
        _model_call(5, history, said({"type": "text", "content": ANSWER})),
    ]


def otlp() -> list[dict[str, Any]]:
    spans = []
    for span in otel():
        listed = [{"key": key, "value": {"stringValue": value}} for key, value in span["attributes"].items()]
        second = int(span["start_time"][-3:-1])
        spans.append({**span, "attributes": listed, "startTimeUnixNano": str(second * 10**9)})
    return [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]


def named(value: Any) -> str:
    """The id of a parameter: a function by its name."""
    return getattr(value, "__name__", value)


SHAPES = [
    ("openai", openai_chat),
    ("openai", openai_responses),
    ("anthropic", anthropic),
    ("langchain", langchain_flat),
    ("langchain", langchain_wrapped),
    ("langchain", langchain_dumped),
    ("otel", otel),
    ("otel", otlp),
]


@pytest.mark.parametrize(("shape", "make"), SHAPES, ids=named)
def test_one_task_in_every_shape_becomes_the_same_steps(shape, make) -> None:
    steps = read_steps(make(), shape)
    told = [(step.role, step.kind, step.tool, step.arguments, step.content) for step in steps]
    assert told == [
        ("user", "message", "", None, TASK),
        ("assistant", "tool_call", "export", BAD, ""),
        ("tool", "tool_result", "export", None, ERROR),
        ("assistant", "thought", "", None, THOUGHT),
        ("assistant", "tool_call", "export", GOOD, ""),
        ("tool", "tool_result", "export", None, ROWS),
        ("assistant", "message", "", None, ANSWER),
    ]
    assert [step.extra.get("call_id") for step in steps if step.tool] == ["call_1", "call_1", "call_2", "call_2"]


@pytest.mark.parametrize(("shape", "make"), [pair for pair in SHAPES if pair[0] != "openai"], ids=named)
def test_an_error_flag_is_kept_where_the_shape_has_one(shape, make) -> None:
    assert [step.is_error for step in read_steps(make(), shape) if step.kind == "tool_result"] == [True, False]


@pytest.mark.parametrize(
    ("shape", "items", "field"),
    [
        ("openai", ["hello"], "steps.0"),
        ("openai", [{"role": "user", "content": "a"}, {"role": "robot"}], "steps.1.role"),
        ("openai", [{"role": "assistant", "tool_calls": [{"id": "x"}]}], "steps.0.tool_calls"),
        ("anthropic", [{"role": "tool", "content": "x"}], "steps.0.role"),
        ("anthropic", [{"role": "assistant", "content": [{"type": "tool_use"}]}], "steps.0.content"),
        ("langchain", [{"type": "alien", "content": "x"}], "steps.0.type"),
        ("otel", [{"attributes": {"gen_ai.input.messages": "{not json"}}], "steps.0.attributes.gen_ai.input.messages"),
        ("otel", [{"name": "chat"}], "steps.0.attributes"),
    ],
)
def test_what_is_not_of_the_shape_is_refused_where_it_stands(shape, items, field) -> None:
    with pytest.raises(Refused) as refused:
        read_steps(items, shape)
    assert refused.value.errors[0].field == field
    assert shape in refused.value.errors[0].message


NAMES = (
    "role content type data tool_calls function name text assistant user tool ai id kwargs constructor attributes "
    "resourceSpans tool_use tool_result value gen_ai.input.messages gen_ai.output.messages parts status start_time "
    "thinking reasoning function_call arguments scopeSpans spans key arrayValue values kvlistValue"
)
WORDS = st.sampled_from(NAMES.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize("shape", READERS)
@given(items=st.lists(st.dictionaries(WORDS, JSON, max_size=6), max_size=4))
def test_any_json_is_read_or_refused(shape, items) -> None:
    with contextlib.suppress(Refused):
        read_steps(items, shape)


@pytest.mark.django_db
def test_a_trace_is_taken_in_every_format(api) -> None:
    for shape, make in SHAPES:
        sent = api.post("/api/v1/traces", {"task": TASK, "format": shape, "steps": make(), "outcome": "succeeded"})
        assert sent.status_code == 201, sent.json()
        steps = api.get(f"/api/v1/traces/{sent.json()['id']}").json()["steps"]
        assert [step["kind"] for step in steps].count("tool_call") == 2
    assert {shape for shape, _ in SHAPES} == set(FORMATS) - {"hindsight"}


@pytest.mark.django_db
def test_steps_are_appended_in_a_format_and_an_unknown_one_is_named(api) -> None:
    opened = api.post("/api/v1/traces", {"task": TASK}).json()["id"]
    more = api.post(f"/api/v1/traces/{opened}/steps", {"steps": anthropic(), "format": "anthropic"})
    assert (more.status_code, more.json()["step_count"]) == (201, 7)
    refused = api.post("/api/v1/traces", {"task": TASK, "format": "smoke", "steps": []})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "format")
