"""Our own echo is cut, repeats collapse, and shards cover every character once."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END
from reflection.distill.calls import attempts
from reflection.forms import Quote, StepForm, TraceForm
from reflection.prepare import prepare, shard
from tests.reflection.traces import call, result, say, trace, user

LESSON = "When book answers “price changed”, fetch the price again before booking."
TEXTS = st.text(alphabet="ab \n。.人[]", max_size=60)
ROLES = st.sampled_from(
    [("user", "message"), ("assistant", "message"), ("assistant", "tool_call"), ("tool", "tool_result")]
)


@st.composite
def traces(draw: st.DrawFn) -> TraceForm:
    steps = [
        StepForm(sequence=place, role=role, kind=kind, content=draw(TEXTS), tool="t" if "tool" in kind else "")
        for place, (role, kind) in enumerate(draw(st.lists(ROLES, max_size=12)))
    ]
    return TraceForm(task="t", outcome="failed", steps=tuple(steps))


def test_a_framed_context_is_cut_and_the_rest_keeps_its_place() -> None:
    framed = f"Before. {CONTEXT_BEGIN}\n- {LESSON}\n{CONTEXT_END} After that, book."
    prepared = prepare(trace(user(framed)))
    cleaned = prepared.trace.steps[0].content
    assert LESSON not in cleaned
    assert "hindsight" not in cleaned
    start = cleaned.index("After that")
    assert framed[start : start + 10] == "After that"
    assert prepared.dropped.recalled_characters > len(LESSON)


def test_of_a_context_that_never_ends_what_was_handed_out_is_cut() -> None:
    prepared = prepare(trace(user(f"Hello. {CONTEXT_BEGIN}\n- {LESSON} And this is new.")), [LESSON])
    assert prepared.trace.steps[0].content.split() == ["Hello.", "-", "And", "this", "is", "new."]


def test_recalled_texts_are_cut_word_for_word_whatever_the_white_space() -> None:
    wrapped = LESSON.replace(" fetch", "\n   fetch")
    prepared = prepare(trace(say(f"I know: {wrapped} Let me do so.")), [LESSON])
    assert prepared.trace.steps[0].content.split() == ["I", "know:", "Let", "me", "do", "so."]


def test_a_short_recalled_text_is_not_taken_for_ours() -> None:
    assert prepare(trace(say("It works well.")), ["works"]).trace.steps[0].content == "It works well."


def test_what_our_recall_tool_returned_is_cut_whole() -> None:
    told = f'{{"hits": [{{"snippet": "{LESSON}"}}]}}'
    steps = [
        call("mcp__memory__hindsight_recall", query="book"),
        result("mcp__memory__hindsight_recall", told),
    ]
    prepared = prepare(trace(*steps, call("book", id=1), result("book", "booked")))
    assert [step.content.strip() for step in prepared.trace.steps] == ["", "", "", "booked"]


def test_a_repeated_result_becomes_a_note_and_still_answers_its_call() -> None:
    error = "Error: the account is locked and must be opened by an administrator"
    steps = [call("pay", a=1), result("pay", error), call("pay", a=1), result("pay", error)]
    prepared = prepare(trace(*steps))
    assert [step.sequence for step in prepared.trace.steps] == [0, 1, 2, 3]
    assert prepared.trace.steps[3].content == "(the same result as step 1)"
    assert prepared.dropped.repeated_results == 1
    first, second = attempts(prepared.trace)
    assert second.error == first.error
    assert second.ended == 3


def test_short_results_and_messages_stay() -> None:
    steps = [
        result("ping", "ok"),
        result("ping", "ok"),
        say("I will look again now, please wait"),
        say("I will look again now, please wait"),
    ]
    assert prepare(trace(*steps)).dropped.repeated_results == 0


def test_quotes_lead_back_to_the_original() -> None:
    long = "x" * 40 + " the price is 12"
    prepared = prepare(trace(result("get", long), result("get", long), say("fine")))
    assert prepared.original_quote(Quote(2, 0, 4, "fine")) == Quote(2, 0, 4, "fine")
    note = prepared.trace.steps[1].content
    assert prepared.original_quote(Quote(1, 0, len(note), note)) is None
    assert prepared.original_quote(Quote(9, 0, 1, "f")) is None
    assert prepared.original_quote(Quote(2, 1, 5, "fine")) is None


@given(traces(), st.lists(st.text(alphabet="ab 人", min_size=20, max_size=24), max_size=2))
def test_every_place_left_in_a_prepared_step_is_the_same_in_the_original(form: TraceForm, recalled: list[str]) -> None:
    prepared = prepare(form, recalled)
    for before, after in zip(form.steps, prepared.trace.steps, strict=True):
        assert before.sequence == after.sequence
        if "same result" not in after.content:
            kept = [(a, b) for a, b in zip(before.content, after.content, strict=True) if not b.isspace()]
            assert all(a == b for a, b in kept)


def test_preparing_twice_changes_nothing_more() -> None:
    once = prepare(trace(say(f"a {CONTEXT_BEGIN} b {CONTEXT_END} c"), result("x", "y" * 50), result("x", "y" * 50)))
    assert prepare(once.trace).trace == once.trace


@given(traces(), st.integers(min_value=1, max_value=80))
def test_shards_cover_every_character_exactly_once_within_the_limit(form: TraceForm, limit: int) -> None:
    shards = shard(form, limit)
    pieces = [piece for part in shards for piece in part.pieces]
    for step in form.steps:
        own = [piece for piece in pieces if piece.step is step]
        assert "".join(piece.text for piece in own) == step.text
        assert len(own) == 1 or len(step.text) > limit
        assert [piece.start for piece in own] == sorted(piece.start for piece in own)
    assert [piece.step.sequence for piece in pieces] == sorted(piece.step.sequence for piece in pieces)
    assert all(part.length <= limit for part in shards)


def test_shards_are_cut_where_a_sub_goal_begins() -> None:
    goal = [user("u" * 20), call("t", a="x"), result("t", "r" * 20)]
    first, second = shard(trace(*goal, *goal), 70)
    assert [piece.step.sequence for piece in first.pieces] == [0, 1, 2]
    assert [piece.step.sequence for piece in second.pieces] == [3, 4, 5]


def test_a_call_stays_with_its_result_where_both_fit() -> None:
    steps = [
        user("u" * 30),
        call("t", a="x" * 10),
        result("t", "r" * 30),
        call("t", a="y" * 10),
        result("t", "s" * 30),
    ]
    for part in shard(trace(*steps), 100):
        places = [piece.step.sequence for piece in part.pieces]
        assert (3 in places) == (4 in places)


def test_a_long_trace_is_prepared_quickly() -> None:
    blank = say("a" + " " * 4000 + "\n" * 4000 + "b")
    steps = [blank, *[call("t", a=1), result("t", "row " * 500)] * 1000]
    started = time.monotonic()
    shard(prepare(trace(*steps), [LESSON] * 50).trace, 8000)
    assert time.monotonic() - started < 5
