"""The pure parts behind the model distiller: reading JSON, finding quotes, the schema, the prompts."""

from __future__ import annotations

import json
import re
import typing

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.enums import FailureClass, Kind
from memories.structures import STRUCTURES
from reflection import admission, said
from reflection.distill import errors, prompting, schemas
from reflection.distill.answers import AnswerError, read_object
from reflection.distill.quotes import MAX_QUOTE_CHARS, QuoteFinder
from reflection.distill.schemas import Draft, Proposal, read_answer
from reflection.enums import END_STATES, RejectReason
from reflection.forms import StepForm, TraceForm

OBJECT = {"candidates": [{"content": 'a, ] "b" }', "quotes": []}], "left_out": []}
TEXT = json.dumps(OBJECT)


# --- Reading JSON -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\ufeff  {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\nDone.",
        f"Sure! Using the form {{kind, content}}:\n```json\n{TEXT}\n```",
        f"```json\n{TEXT}",  # the closing fence was forgotten
        f"I found [1] thing: {TEXT} Hope that helps {{smile}}.",
        f"<think>maybe {{}} or {{'a': 1}}</think>{TEXT}",
        f"It is asked for JSON.\n</think>\n\n{TEXT}",
        TEXT.replace("]}", "],}").replace("}]", "}, ]"),
        TEXT.replace('"a,', '"\x00a,'),
        TEXT.replace('"a,', '"\\u0000a,'),
        TEXT.replace('"a,', '"\\ud83da,'),  # half an emoji
    ],
)
def test_an_object_is_found_however_it_is_wrapped(text):
    assert read_object(text) == OBJECT


def test_a_bare_list_of_candidates_is_taken_and_line_breaks_inside_texts_too():
    assert read_object('[{"content": "one\ntwo"}]') == {"candidates": [{"content": "one\ntwo"}]}


def test_a_tag_inside_a_text_is_not_the_end_of_thoughts():
    text = json.dumps({"candidates": [], "note": "a </think> b"})
    assert read_object(text)["note"] == "a </think> b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (" \x00\n", "empty"),
        ("Nothing to keep.", "no JSON object"),
        ("42", "no JSON object"),
        (TEXT[: len(TEXT) // 2], "cut off"),
        ('{"a": [1, 2}', "not valid JSON"),
        ("[1, 2]", "not valid JSON"),
        ("{" * 100_000, "not valid JSON"),
        ('{"a":' * 50_000, "not valid JSON"),
        ("[" * 100_000 + "]" * 100_000, "not valid JSON|nested too deeply"),
        ("x" * 400_001, "longer than"),
        ('{"n": ' + "9" * 5_000 + "}", "not valid JSON"),
    ],
)
def test_what_cannot_be_read_says_why(text, message):
    with pytest.raises(AnswerError, match=message):
        read_object(text)


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        assert isinstance(read_object(text), dict)
    except AnswerError as error:
        assert str(error).endswith(".")  # noqa: PT017 - either way is right


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*Proposal.model_fields, "trust"]), JSON))
def test_any_candidate_is_read_or_told_to_be_off(item):
    for form in (Draft, Proposal):
        reading = read_answer(json.dumps({"candidates": [item]}), form)
        assert reading.usable
        assert len(reading.candidates) + len(reading.malformed) == 1
        assert bool(reading.problems) == bool(reading.malformed)


# --- Finding quotes -----------------------------------------------------------------------------------


def finder(*texts: str) -> QuoteFinder:
    return QuoteFinder([StepForm(n, "tool", "tool_result", text) for n, text in enumerate(texts)])


LONG = "The export failed:\n  “rows”  must be at most 500 — see the docs"


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("must be at most 500", "must be at most 500"),
        ("  must be at most 500\n", "must be at most 500"),
        ("MUST BE  at most\n500", "must be at most 500"),
        ('the export failed: "rows" must', "The export failed:\n  “rows”  must"),
        ("at most 500 - see the docs", "at most 500 — see the docs"),
        ("“must be at most 500…”", "must be at most 500"),
        ("...see the docs.", "see the docs"),
        ("ｒｏｗｓ”  must be at", "rows”  must be at"),
    ],
)
def test_a_quote_is_found_and_kept_in_the_words_of_the_step(quote, found):
    (place,) = [finder("other", LONG).find(1, quote)]
    assert (place.step, place.text) == (1, found)
    assert LONG[place.start : place.end] == found


def test_a_wrong_step_number_is_put_right_by_the_nearest_step_that_has_it():
    found = finder("disk is full", "a", "b", "disk is full", "c").find(4, "disk is full")
    assert found.step == 3
    assert finder("a", "the disk is full").find(77, "disk is full").step == 1


def test_letters_as_they_are_win_over_folded_ones_nearby():
    assert finder("Disk is FULL", "disk is full").find(0, "disk is full").step == 1


@pytest.mark.parametrize("quote", ["", " ", "…", "“”", "must be at least 500", "rows ... docs", "be", "500", "a"])
def test_what_is_not_there_or_proves_nothing_is_not_found(quote):
    assert finder("other", LONG).find(1, quote) is None


def test_a_short_quote_must_be_the_whole_step():
    assert finder("x", " OK\n").find(1, "ok").text == "OK"
    assert finder("x", "OK, moved").find(1, "OK") is None


def test_ideographs_count_double():
    assert finder("请先确认订单状态再修改").find(0, "确认订单").text == "确认订单"


def test_a_long_quote_is_cut_and_stays_verbatim():
    text = "word " * 400
    found = finder(text).find(0, text)
    assert len(found.text) == MAX_QUOTE_CHARS
    assert text[found.start : found.end] == found.text


TEXTS = st.text(alphabet=st.sampled_from("aB ß\n\tİ“ﬁ1中\u00a0-"), min_size=1, max_size=40)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), quote=TEXTS, step=st.integers(0, 5))
def test_whatever_is_found_stands_there(texts, quote, step):
    found = finder(*texts).find(step, quote)
    if found is not None:
        assert found.text
        assert texts[found.step][found.start : found.end] == found.text


@given(text=st.text(min_size=12, max_size=80), cut=st.tuples(st.integers(0, 40), st.integers(8, 80)))
def test_every_passage_long_enough_is_found_whatever_its_case(text, cut):
    passage = text[cut[0] : cut[0] + cut[1]].strip()
    if sum(char.isalnum() for char in passage) < 6:
        return
    assert finder(text).find(0, passage) is not None


# --- The schema that is sent --------------------------------------------------------------------------


def test_the_schema_speaks_the_words_of_the_glossary():
    assert set(typing.get_args(schemas.KindName)) == set(Kind.values)
    assert set(typing.get_args(schemas.FailureName)) == set(FailureClass.values)
    reasons = typing.get_args(schemas.LeftOut.model_fields["reason"].annotation)
    assert set(reasons) <= set(RejectReason.values)


def nodes(schema: object):
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("schema", [schemas.answer_schema(), schemas.drafts_schema()])
def test_the_schema_is_strict_everywhere(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    objects = [node for node in nodes(schema) if node.get("type") == "object"]
    assert objects
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    assert "$ref" not in json.dumps(schema)


def test_an_answer_in_the_sent_form_is_read_without_a_complaint():
    always = {"valid_from": None, "valid_until": None}
    structures = {
        "experience": {
            "situation": {
                "task_type": None,
                "features": [],
                "environment": [{"name": "a", "value": ""}],
                "text": None,
            },
            "decision": None,
            "outcome": {"success": None, "metrics": [{"name": "rows", "value": 3}]},
            "lesson": "x",
            "applies_when": None,
            "not_when": None,
        },
        "fact": {"subject": "a", "predicate": "b", "object": "c", **always},
        "preference": {"holder": "a", "preference": "b", "strength": 1, **always},
        "relation": {"subject": "a", "relation": "b", "object": "c"},
        "task": {
            "task_goal": "a",
            "tools_used": [],
            "success_steps": [],
            "failure_steps": [{"step": "a", "reason": None}],
            "final_result": None,
            "resume_hint": None,
        },
    }
    common = {
        "quotes": [],
        "content": "c",
        "failure_class": "none",
        "durable": True,
        "confidence": 0.5,
        "tags": [],
        "operation": "add",
        "known": None,
    }
    answer = {
        "candidates": [{"kind": kind, "structure": given_, **common} for kind, given_ in structures.items()],
        "left_out": [{"content": "x", "reason": "transient"}],
    }
    jsonschema.validate(answer, schemas.answer_schema())
    reading = read_answer(json.dumps(answer), Proposal)
    assert reading.problems == ()
    assert len(reading.candidates) == 5
    assert reading.candidates[0].structure == {
        "situation": {"environment": {"a": ""}},
        "outcome": {"metrics": {"rows": 3}},
        "lesson": "x",
    }


# --- The prompts --------------------------------------------------------------------------------------


def test_every_outcome_has_its_instructions_and_every_kind_its_guidance():
    for outcome in END_STATES:
        assert prompting.prompt(outcome).startswith("# This task")
    for kind in Kind.values:
        assert f"## {kind}:" in prompting.prompt("kinds")
        assert f"- {kind}: " in prompting.prompt("format_answer")


EXAMPLES = [
    pytest.param(path.stem, block, id=f"{path.stem}-{place}")
    for path in sorted(prompting.PROMPTS.glob("*.md"))
    for place, block in enumerate(
        re.findall(r"```json\n(.*?)```|`(\{\"candidates\".*?\})`", path.read_text(encoding="utf-8"), re.DOTALL)
    )
]


def test_the_prompts_have_examples():
    assert {name.values[0] for name in EXAMPLES} == {"format_answer", "format_drafts"}
    assert any("\u4e00" <= char <= "\u9fff" for example in EXAMPLES for char in "".join(example.values[1]))


@pytest.mark.parametrize(("name", "block"), EXAMPLES)
def test_every_example_in_the_prompts_is_a_perfect_answer(name: str, block: tuple[str, str]):
    """In the schema that is sent, without a complaint when read, past the gates, and clean."""
    is_answer = name == "format_answer"
    example = json.loads("".join(block))
    jsonschema.validate(example, schemas.answer_schema() if is_answer else schemas.drafts_schema())
    reading = read_answer(json.dumps(example), Proposal if is_answer else schemas.Draft)
    assert reading.problems == ()
    assert len(reading.candidates) == len(example["candidates"])
    assert len(reading.left_out) == len(example.get("left_out", []))
    for item in reading.candidates:
        steps = tuple(
            StepForm(number, "tool", "tool_result", f"… {quote.text} … {item.content}", tool="export_invoices")
            for number in range(10)
            for quote in [next((q for q in item.quotes if q.step == number), item.quotes[0])]
        )
        trace = TraceForm("t", "succeeded", steps)
        (found,), rejected = schemas.to_candidates([item], QuoteFinder(steps))
        assert rejected == ()
        assert isinstance(admission.admit(found, trace), admission.Admitted), admission.admit(found, trace)
        assert said.planted_in(found) == ""
        assert said.holds_pii(found) == ""


def test_the_form_that_is_told_names_the_fields_that_are_read():
    told = prompting.prompt("format_answer")
    for field in (*Proposal.model_fields, *schemas.AnsweredQuote.model_fields, *schemas.LeftOut.model_fields):
        assert f'"{field}"' in told, field
    for kind, model in STRUCTURES.items():
        (line,) = re.findall(rf"- {kind}: (.*?)(?=\n- |\n\n)", told, re.DOTALL)
        for field in set(model.model_fields) - {"failure_class"}:
            assert f'"{field}"' in line, (kind, field)
        for field, info in model.model_fields.items():
            assert (f'"{field}"*' in line) == info.is_required(), (kind, field)
    drafts = prompting.prompt("format_drafts")
    assert all(f'"{field}"' in drafts for field in schemas.Draft.model_fields)
    assert '"known"' not in drafts
    for choice in (*typing.get_args(schemas.KindName), *typing.get_args(schemas.FailureName)):
        assert f'"{choice}"' in told
        assert f'"{choice}"' in drafts


def test_the_prompt_version_changes_with_any_prompt(tmp_path, monkeypatch):
    first = prompting.prompt_version.__wrapped__()
    for path in prompting.PROMPTS.glob("*.md"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(prompting, "PROMPTS", tmp_path)
    assert prompting.prompt_version.__wrapped__() == first
    (tmp_path / "kinds.md").write_text("other")
    assert prompting.prompt_version.__wrapped__() != first
    assert len(first) <= 40


# --- Retry-After --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7),
        ("1.5", 1.5),
        ("-3", 0),
        ("soon", None),
        ("nan", None),
        ("inf", 86_400),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
    ],
)
def test_retry_after_in_all_its_forms(header, seconds):
    assert errors.retry_after(header) == seconds
