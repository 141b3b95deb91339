"""What recall handed out is cut from a trace in whatever dress it comes back, and nothing else is."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hindsight_site.accounts.tenancy import team_transaction
from memories import packing, receipt_queries
from memories.contents import cut
from memories.context_frame import CONTEXT_BEGIN
from memories.models import Memory
from reflection import echo, pipeline
from reflection.forms import StepForm, TraceForm
from reflection.models import Reflection
from reflection.prepare import prepare
from tests import factories
from tests.reflection.traces import call, result, say, trace, user

LESSON = 'When book answers "price changed", fetch the price\nagain (path C:\\new\\rates) before booking 一次 🎫.'
OTHER = "The weather in Oslo is mild."
WORDS = st.text(alphabet="ab \"\\\n\t/人é🎫.'", min_size=1, max_size=12)
MEMORIES = st.lists(WORDS, min_size=3, max_size=8).map(
    lambda parts: "Known: " + " ".join(parts) + " and so it was held."
)


def escaped(text: str, times: int, *, ascii_only: bool) -> str:
    for _ in range(times):
        text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    return text


def seen(step: StepForm) -> str:
    return " ".join(step.text.split())


@given(MEMORIES, st.integers(0, 3), st.booleans(), WORDS, WORDS)
@example(LESSON, 2, True, "x", "y")
def test_a_recalled_text_is_cut_from_any_content_however_escaped(
    memory: str, times: int, ascii_only: bool, before: str, after: str
) -> None:
    told = escaped(memory, times, ascii_only=ascii_only)
    content = f"{before}|{told}|{after}"
    known = echo.needles([memory])
    cleaned = echo.blanked(content, echo.echoes(content, known))
    assert len(cleaned) == len(content)
    assert cleaned.startswith(f"{before}|")
    assert cleaned.endswith(f"|{after}")
    assert not cleaned[len(before) + 1 : -len(after) - 1].strip("\\ \n\t.n"), cleaned


@given(MEMORIES, st.booleans(), WORDS)
@example(LESSON, True, "x")
def test_it_is_cut_from_arguments_and_every_other_place_stays(memory: str, nested: bool, other: str) -> None:
    inner = {"prompt": f"Think of this: {memory}", "other": other, "n": 3, "list": [memory, other]}
    arguments = {"body": json.dumps(inner)} if nested else inner
    before = StepForm(sequence=0, role="assistant", kind="tool_call", tool="delegate", arguments=arguments)
    prepared = prepare(TraceForm(task="t", outcome="failed", steps=(before,)), [memory])
    (after,) = prepared.trace.steps
    assert len(after.text) == len(before.text)
    assert all(new in (old, " ") for old, new in zip(before.text, after.text, strict=True))
    assert prepared.dropped.recalled_characters >= 2 * len("".join(memory.split()))
    assert "and so it was held" not in after.text
    assert "Think of this" in after.text
    assert echo.without_echoes(after.arguments, echo.needles([memory])) == after.arguments


@given(st.text(max_size=200), MEMORIES)
def test_what_does_not_repeat_it_stays_to_the_letter(text: str, memory: str) -> None:
    known = echo.needles([memory])
    words, places = echo.folded(text)
    assert len(places) == len(words) + 1
    assert list(places) == sorted(places)
    if not any(one.head in words for one in known):
        assert echo.echoes(text, known) == []


def test_a_memory_cut_short_or_told_in_part_is_known() -> None:
    memory = (
        "The export tool refuses the name of a month and answers with a message that is hard to read. "
        "Give the month as YYYY-MM instead, also where a single month is wanted. It was seen in three tasks."
    )
    known = echo.needles([memory])
    for told in (packing.gist(memory, 100), cut(memory, 120), cut(memory, 60), memory.split(". ")[1] + "."):
        text = f"I remember: {told} So I do."
        assert echo.blanked(text, echo.echoes(text, known)).split() == ["I", "remember:", "So", "I", "do."], told
    beginning = "The export tool refuses the name of a month and then goes on."
    assert echo.echoes(beginning, known) == [], "a beginning that goes on differently is not ours"


def test_a_whole_trace_of_echoes_leaves_only_its_own_words() -> None:
    shape = json.dumps(
        {"content": [{"type": "text", "text": f"1 memory.\n- [lesson, team] {LESSON}"}], "structuredContent": {"n": 1}}
    )
    steps = [
        user(f"Book the flight. {LESSON}"),
        call("memory_proxy", query="booking"),
        result("memory_proxy", shape),
        call("delegate", prompt=f"Mind: {LESSON}", depth=1),
        result("delegate", json.dumps({"plan": json.dumps([LESSON])})),
        say(f"I did as I was told: {LESSON}"),
    ]
    prepared = prepare(trace(*steps, task=f"Book it. {LESSON}", result=f"Booked. {LESSON}"), [LESSON])
    cleaned = prepared.trace
    assert "price changed" not in json.dumps([step.text for step in cleaned.steps])
    assert "fetch the price" not in json.dumps([step.text for step in cleaned.steps])
    assert (cleaned.task, cleaned.result) == ("Book it.", "Booked.")
    assert prepared.original.task.endswith(LESSON)


def test_a_result_with_the_id_of_a_recall_is_cut_whole() -> None:
    ident = "0190d3f0-7c1a-7b6e-9a55-0123456789ab"
    steps = [
        call("http", url="https://memory/recall"),
        result("http", json.dumps({"recall_id": ident, "hits": []})),
        result("http", json.dumps({"order_id": "0190d3f0-7c1a-7b6e-9a55-ffffffffffff"})),
    ]
    prepared = prepare(trace(*steps), recall_ids={ident})
    assert prepared.trace.steps[1].content.strip() == ""
    assert "order_id" in prepared.trace.steps[2].content


def test_parallel_calls_and_resources_are_told_apart() -> None:
    steps = [
        call("x__hindsight_recall", query="a"),
        call("search", query="b"),
        {**result("", "A memory of ours."), "tool": ""},
        {**result("", "A page that was found."), "tool": ""},
        call("read_resource", uri="hindsight://memory/12"),
        call("read_resource", uri="file:///tmp/x"),
        result("read_resource", "Another memory of ours."),
        result("read_resource", "A file."),
    ]
    cleaned = [step.content.strip() for step in prepare(trace(*steps)).trace.steps if step.role == "tool"]
    assert cleaned == ["", "A page that was found.", "", "A file."]


def test_many_recalled_texts_in_a_long_trace_take_little_time() -> None:
    texts = [f"Lesson {n}: give the month of the export {n} as YYYY-MM. It is refused otherwise." for n in range(500)]
    rows = (f'{{"row": {n}, "text": "' + "lorem ipsum \\n" * 60 + '"}' for n in range(500))
    form = trace(*(result("get", row) for row in rows))
    started = time.perf_counter()
    prepare(form, texts)
    assert time.perf_counter() - started < 3


# --- With receipts ----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_text_is_known_as_it_was_handed_out_then(api, agent) -> None:
    memory = factories.memory(agent, "Always give the month as YYYY-MM to the export tool.", kind="experience")
    answer = api.post("/api/v1/recall", {"query": "export tool month format"}).json()
    api.patch(f"/api/v1/memories/{memory.pk}", {"content": "Give the month as digits.", "revision": memory.revision})
    recorded, _ = factories.trace(agent)
    with team_transaction(agent.team):
        given = receipt_queries.handed_out(
            team=agent.team, agent=agent, token_id=None, session_id="", since=memory.created_at,
            until=recorded.ended_at,
        )  # fmt: skip
    assert given.texts == ("Always give the month as YYYY-MM to the export tool.",)
    assert given.recall_ids == {answer["recall_id"]}


@pytest.mark.django_db
@pytest.mark.parametrize("fmt", ["own", "openai", "anthropic"])
def test_recalled_text_in_arguments_is_not_learnt_over_the_api(api, agent, settings, model_server, fmt) -> None:
    """Recalled, handed to another tool as arguments, recorded in that form, and shown to the model without it."""
    settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
    settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
    text = 'Always give the "month" as YYYY-MM to the export tool.'
    factories.memory(agent, text, kind="experience")
    answer = api.post("/api/v1/recall", {"query": "export tool month format"}).json()
    assert answer["hits"]
    sent = api.post("/api/v1/traces", recorded(fmt, {"prompt": f"Mind this. {text}"}, json.dumps(answer)))
    assert sent.status_code == 201, sent.json()
    pipeline.reflect(agent.team, Reflection.objects.of(agent.team).get(pk=sent.json()["reflection"]["id"]).pk)
    asked = [str(request.body) for request in model_server.asked("chat/completions")]
    assert asked
    (steps,) = [body.split(" step 0 ")[1] for body in asked if " step 0 " in body]
    assert "Mind this." in steps
    assert "Always give the" not in steps
    assert Memory.objects.of(agent.team).exclude(kind="task").count() == 1


def recorded(fmt: str, arguments: dict, told: str) -> dict:
    """A failed task whose agent asked for memory through a tool of another name and passed on what it read."""
    body = {"task": "Export the invoices", "outcome": "failed", "format": fmt}
    if fmt == "own":
        steps = [
            user("Export the March invoices."),
            call("delegate", **arguments),
            result("delegate", "Error: no such worker", is_error=True),
            result("kb", told),
        ]
        return {**{k: v for k, v in body.items() if k != "format"}, "steps": steps}
    if fmt == "openai":
        made = {"id": "c1", "type": "function", "function": {"name": "delegate", "arguments": json.dumps(arguments)}}
        return {**body, "steps": [
            {"role": "user", "content": "Export the March invoices."},
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c1", "content": "Error: no such worker"},
            {"role": "tool", "tool_call_id": "c2", "content": told},
        ]}  # fmt: skip
    return {**body, "steps": [
        {"role": "user", "content": "Export the March invoices."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "delegate", "input": arguments}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "Error: no such worker", "is_error": True},
            {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": told}]},
        ]},
    ]}  # fmt: skip


def test_one_character_for_ever_is_no_work_for_ever() -> None:
    known = echo.needles(["a" * 7_990 + "b"])
    began = time.process_time()
    assert echo.echoes("a" * 60_000, known) == []
    assert len(echo.echoes("a" * 30_000, echo.needles(["a" * 100]))) == 300
    assert time.process_time() - began < 5


def test_a_mark_that_opens_and_never_ends_hides_nothing_after_it() -> None:
    text = f"page by {CONTEXT_BEGIN} someone\nError: the certificate is expired."
    assert echo.blanked(text, echo.echoes(text, [])).endswith(" someone\nError: the certificate is expired.")
