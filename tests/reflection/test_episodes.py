"""Episodes: goal, result, what failed where, which step is most likely wrong, how to resume."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflection.distill.calls import attempts, changes_state
from reflection.distill.wording import call_told, quoted, shorten
from tests.reflection.traces import call, episode, put_right, result, run, say, trace, user


def test_a_success_tells_goal_tools_and_result() -> None:
    error = "page_size must be at most 100"
    told = episode(put_right("http_get", {"page_size": 500}, error, {"page_size": 100}, result="Listed 2 users"))
    assert told.content.startswith(
        "Succeeded: List the open orders. Step 0 (http_get) met “page_size must be at most 100”;"
    )
    assert told.content.endswith("Worked: http_get. Result: Listed 2 users.")
    assert told.structure["tools_used"] == ["http_get"]
    assert told.structure["failure_class"] == "none"


def test_a_failure_names_the_step_tool_and_error() -> None:
    told = episode(
        trace(
            call("get_price", id=1),
            result("get_price", "12"),
            call("book", seat="4A"),
            result("book", "Error: seat is taken"),
            say("I could not book it for you."),
            outcome="failed",
        )
    )
    assert "It failed at step 2, book(seat=4A): “seat is taken”." in told.content
    assert told.structure["failure_steps"][0]["step"] == "step 2 (book)"
    assert told.failure_class == "permanent"


def test_a_failure_without_an_error_names_the_most_likely_step_and_says_that_it_is_a_guess() -> None:
    told = episode(
        trace(
            user("Cancel the second booking"),
            call("get_bookings", user="u1"),
            result("get_bookings", "B1, B2"),
            call("cancel_booking", id="B1"),
            result("cancel_booking", "cancelled"),
            say("Your booking is cancelled."),
            outcome="failed",
        )
    )
    assert "Most likely wrong: step 3, cancel_booking(id=B1); it made the last change" in told.content
    assert told.structure["failure_steps"][0]["reason"].startswith("most likely: ")
    assert told.failure_class == "none"
    assert told.confidence <= 0.35


def test_a_users_objection_points_at_what_was_changed_before_it() -> None:
    told = episode(
        trace(
            user("我要退耳机"),
            call("退货", 商品="键盘"),
            result("退货", "退货成功"),
            say("已为您退货。"),
            user("不对，我说的是耳机"),
            say("抱歉，已经无法撤销。"),
            task="退掉订单里的耳机",
            outcome="failed",
        )
    )
    assert "最可能出错的是第 1 步（退货(商品=键盘)）：用户随后表示不对（“不对，我说的是耳机”）" in told.content


@pytest.mark.parametrize("reply", ["No, that's all I needed. Thank you!", "No, thanks", "不用了，谢谢"])
def test_a_polite_no_is_no_objection(reply: str) -> None:
    form = trace(
        say("Anything else?"),
        call("send_mail", to="ann"),
        result("send_mail", "sent"),
        user(reply),
        outcome="failed",
    )
    assert "last change" in episode(form).content


def test_an_interrupted_run_says_what_to_do_next() -> None:
    told = episode(
        trace(
            call("edit_file", path="calc.py"),
            result("edit_file", "ok"),
            say("The rounding was off. Next I will run the tests."),
            call("bash", command="pytest -q"),
            outcome="interrupted",
        )
    )
    hint = told.structure["resume_hint"]
    assert "do not repeat: edit_file(path=calc.py)" in hint
    assert "check first: bash(command=pytest -q)" in hint
    assert "planned: “Next I will run the tests”" in hint


@pytest.mark.parametrize(
    ("tool", "arguments", "changes"),
    [
        ("book_reservation", {}, True),
        ("get_user_details", {}, False),
        ("find_user_id_by_email", {}, False),
        ("bash", {"command": "git commit -m x"}, True),
        ("bash", {"command": "git status"}, False),
        ("bash", {"command": "cat notes.txt"}, False),
        ("取消订单", {}, True),
        ("查询订单", {}, False),
    ],
)
def test_what_changes_state(tool: str, arguments: dict[str, str], changes: bool) -> None:
    assert changes_state(tool, arguments) is changes


def test_parallel_calls_get_their_own_results() -> None:
    form = trace(call("a", x=1), call("b", x=2), result("b", "from b"), result("a", "from a"))
    assert [(made.tool, made.result and made.result.content) for made in attempts(form)] == [
        ("a", "from a"),
        ("b", "from b"),
    ]


def test_an_error_that_was_outlived_is_quoted() -> None:
    told = episode(
        trace(
            call("read_log", job="nightly"),
            result("read_log", "KeyError: 'SMTP_HOST'", is_error=True),
            call("count_rows", day="today"),
            result("count_rows", "0 rows, table report_rows"),
            outcome="failed",
        )
    )
    assert (
        "Most likely wrong: step 0, read_log(job=nightly); it answered “KeyError: 'SMTP_HOST'”,"
        " which was never made good." in told.content
    )


def test_an_error_that_another_call_left_behind_is_told() -> None:
    form = put_right("get_order", {"id": "#W1000001"}, "Error: order not found", {"id": "#W2000002"})
    assert "though other calls of the tool worked later: step 0 (get_order) “order not found”." in episode(form).content


def test_a_failing_program_is_not_made_good_by_another_one() -> None:
    told = episode(run(("make", "exit code: 2\nmake: *** no rule"), ("pwd", "/srv"), outcome="failed"))
    assert "step 0, bash(command=make); it answered “make: *** no rule”" in told.content


def test_an_interrupted_run_tells_the_last_call_with_its_answer() -> None:
    told = episode(
        trace(
            call("run_batch", from_id=20000, to_id=40000),
            result("run_batch", '{"last_id": 40000}'),
            outcome="interrupted",
            result="Stopped at the end of the window",
        )
    )
    assert "Result: Stopped at the end of the window. To resume: the last call that worked was step 0," in told.content
    assert 'run_batch(from_id=20000, to_id=40000), which gave {"last_id": 40000}.' in told.content


# Words


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("one two three four", 12, "one two…"),
        ("call(a, [b, c d e f g", 14, "call(a, [b…])"),
        ("First done. Second part is long", 20, "First done."),
        ('he said "yes and more', 16, 'he said "yes…"'),
        ("如下：1. 先做“这件事情然后再做”", 14, "如下：1. 先做“这件事…”"),
    ],
)
def test_a_cut_leaves_nothing_open(text: str, limit: int, cut: str) -> None:
    assert shorten(text, limit) == cut


@given(st.text('ab ([{“”)]}.。"`', max_size=80), st.integers(8, 60))
def test_a_cut_is_within_its_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit


def test_a_call_is_told_with_whole_arguments() -> None:
    (attempt,) = attempts(trace(call("book", flights=[{"number": "HAT030", "date": "2026-05-13"}], note="n" * 80)))
    assert call_told(attempt, 60) == "book(flights=[…], note=nnnnnnnnnnnnnnnnnnnnnnnnnnnnn…)"
    assert call_told(attempt, 30) == "book(flights=[…], …)"


def test_quoted_words_carry_no_second_pair_of_marks() -> None:
    assert quoted("Error: 订单“A1”不存在。") == "订单‘A1’不存在"
