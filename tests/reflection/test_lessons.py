"""Lessons from error → change → success: which changes explain an error, and how they are told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflection.admission import Admitted, admit
from tests.reflection.traces import Step, call, lessons, put_right, result, say, trace

PAGE_SIZE = (
    "http_get",
    {"url": "/v1/users", "page_size": 500},
    "page_size must be at most 100",
    {"url": "/v1/users", "page_size": 100},
)


# How a change is told, and that it passes the gates

TOLD = [
    (
        ("export", {"month": "March"}, "Error: month must be given as YYYY-MM, got 'March'", {"month": "2026-03"}),
        "export takes month as YYYY-MM, not as a month name."
        " Otherwise it answers “month must be given as YYYY-MM, got '…'”.",
    ),
    (
        ("order", {"sku": "A-77", "count": "7"}, "count must be a number, got '7'", {"sku": "A-77", "count": 7}),
        "order takes count as a number, not as a string. Otherwise it answers “count must be a number, got '…'”.",
    ),
    (
        ("tag", {"item": "x", "tags": "red"}, "tags: expected a list", {"item": "x", "tags": ["red"]}),
        "tag takes tags as a list, not as a string. Otherwise it answers “tags: expected a list”.",
    ),
    (
        ("search", {"city": "Rome"}, "missing required argument: date", {"city": "Rome", "date": "2026-05-01"}),
        "search needs date. Otherwise it answers “missing required argument: date”.",
    ),
    (
        ("drop", {"index": "ix"}, "confirmation required: set confirm=true", {"index": "ix", "confirm": True}),
        "drop needs confirm = true. Otherwise it answers “confirmation required: set confirm=true”.",
    ),
    (
        ("list_users", {"team": "ops", "limit": 5}, "unknown argument: limit", {"team": "ops"}),
        "list_users does not take limit. Otherwise it answers “unknown argument: limit”.",
    ),
    (
        ("get_user", {"id": "u_17"}, "unexpected keyword argument 'id'", {"user_id": "u_17"}),
        "get_user takes user_id, not id. Otherwise it answers “unexpected keyword argument 'id'”.",
    ),
    (
        ("plot", {"kind": "donut"}, "kind must be one of: bar, line, pie", {"kind": "pie"}),
        "plot takes only bar, line or pie as kind. Otherwise it answers “kind must be one of: bar, line, pie”.",
    ),
    (
        ("rates", {"base": "eur"}, "base must be upper case", {"base": "EUR"}),
        "rates takes base in upper case. Otherwise it answers “base must be upper case”.",
    ),
    (
        ("get_order", {"order_id": "W1000001"}, "Error: order not found", {"order_id": "#W1000001"}),
        "get_order takes order_id with a leading “#”. Otherwise it answers “order not found”.",
    ),
    (
        ("weigh", {"box": "B", "weight": "4 kg"}, "weight must be a number", {"box": "B", "weight": "4000"}),
        "weigh takes weight as a plain whole number, not as a number with the unit kg."
        " Otherwise it answers “weight must be a number”.",
    ),
    (PAGE_SIZE, "When http_get answers “page_size must be at most 100”, keep page_size within that limit."),
    (
        ("http_get", {"url": "/u", "page_size": 500}, "page_size too large", {"url": "/u", "page_size": 50}),
        "When http_get answers “page_size too large”, use a smaller page_size.",
    ),
    (
        ("resize", {"file": "x.png", "mode": "fast"}, "mode fast is not supported", {"file": "x.png", "mode": "slow"}),
        "When resize answers “mode fast is not supported”, use slow as mode, not fast.",
    ),
    (
        (
            "load",
            {"file": "a.csv", "encoding": "utf-8"},
            "cannot decode, try gb18030",
            {"file": "a.csv", "encoding": "gb18030"},
        ),
        "When load answers “cannot decode, try gb18030”, change encoding from utf-8 to gb18030.",
    ),
    (
        ("export", {"month": "March"}, "Error: Bad Request", {"month": "2026-03"}),
        "export takes month as YYYY-MM, not as a month name.",
    ),
]


@pytest.mark.parametrize(("case", "told"), TOLD)
def test_a_change_is_told_as_a_rule_of_the_tool_or_as_the_answer_to_its_error(case: tuple, told: str) -> None:
    form = put_right(*case)
    (lesson,) = lessons(form)
    assert lesson.content == told
    assert lesson.structure["outcome"]["success"] is True
    assert isinstance(admit(lesson, form), Admitted)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (
            (
                "查询航班",
                {"日期": "5月1日"},
                '{"code": 400, "msg": "日期格式错误，应为 YYYY-MM-DD"}',
                {"日期": "2024-05-01"},
            ),
            "「查询航班」的「日期」要写成 YYYY-MM-DD，不能写成“某月某日”。否则会报错“日期格式错误，应为 YYYY-MM-DD”。",
        ),
        (
            ("create_order", {"商品": "键盘"}, "缺少参数：收货地址", {"商品": "键盘", "收货地址": "北京"}),
            "create_order 必须带上「收货地址」。否则会报错“缺少参数：收货地址”。",
        ),
        (
            ("set_state", {"state": "完成"}, "错误：状态只能是 open、closed", {"state": "closed"}),
            "set_state 的 state 只能是 open 或 closed。否则会报错“状态只能是 open、closed”。",
        ),
        (
            ("list_users", {"page_size": 500}, "错误：page_size 最多 100 条", {"page_size": 100}),
            "list_users 报错“page_size 最多 100 条”时，让 page_size 不超出该限制。",
        ),
    ],
)
def test_a_chinese_trace_gets_a_chinese_lesson(case: tuple, told: str) -> None:
    (lesson,) = lessons(put_right(*case, task="请完成客户交代的任务"))
    assert lesson.content == told


def test_an_id_that_was_looked_up_is_told_and_an_invented_one_is_not() -> None:
    asked = [call("get_user", user_id="Ann Smith"), result("get_user", "Error: user not found")]
    found = [call("find_user", name="Ann Smith"), result("find_user", "ann_smith_4711")]
    worked = [call("get_user", user_id="ann_smith_4711"), result("get_user", '{"name": "Ann"}')]
    (lesson,) = lessons(trace(*asked, *found, *worked))
    assert lesson.content == "When get_user answers “user not found”, look user_id up with find_user first."
    assert lessons(trace(*asked, *worked)) == []


def test_a_gap_between_two_numbers_is_told_unless_the_error_named_the_number() -> None:
    def pay(amount: int, error: str, then: int) -> str:
        form = put_right("pay", {"card": "visa", "amount": amount}, error, {"card": "visa", "amount": then})
        return lessons(form)[0].content

    assert "difference of the two numbers" in pay(5, "total price is 305, but paid 255", 55)
    assert "keep amount within that limit" in pay(500, "amount 500 exceeds the maximum 100", 100)


def test_a_value_that_the_error_lists_is_told_without_the_example() -> None:
    error = "Could not find [Ian Hunter]. Similar: ['Ian Hunter (singer)', 'Mick Ronson', 'Ian Dury']"
    (lesson,) = lessons(put_right("search", {"input": "Ian Hunter"}, error, {"input": "Ian Hunter (singer)"}))
    assert lesson.content == (
        "When search answers “Could not find […]. Similar: […]”, take input from the values that the error lists."
    )
    assert lesson.structure["decision"]["parameters"]["input"]["to"] == "Ian Hunter (singer)"


# Two runs that differ only in their own values


def same(*forms: Any) -> str:
    (text,) = {lesson.content for form in forms for lesson in lessons(form)}
    return text


@given(
    st.sampled_from(["March", "April", "May", "December"]),
    st.integers(2000, 2099),
    st.integers(1, 12),
    st.sampled_from(["Northwind", "Contoso", "Fabrikam Ltd", "A1234"]),
)
def test_the_month_and_the_customer_of_a_run_leave_no_trace_in_the_lesson(
    word: str, year: int, month: int, customer: str
) -> None:
    error = f'{{"error": "invalid month \'{word}\' for {customer}: expected YYYY-MM"}}'
    form = put_right(
        "export_invoices",
        {"customer": customer, "month": word},
        error,
        {"customer": customer, "month": f"{year}-{month:02}"},
    )
    (lesson,) = lessons(form)
    assert lesson.content == (
        "export_invoices takes month as YYYY-MM, not as a month name."
        " Otherwise it answers “invalid month '…' for …: expected YYYY-MM”."
    )
    assert lesson.structure["decision"]["parameters"]["month"] == {"from": word, "to": f"{year}-{month:02}"}


def test_runs_that_differ_in_their_own_values_give_one_text() -> None:
    for old, new in (("default", "green"), ("prod", "blue")):
        error = f'namespace "{old}" is protected; allowed: green, blue'
        assert same(put_right("deploy", {"namespace": old}, error, {"namespace": new})) == (
            "deploy takes only green or blue as namespace."
            ' Otherwise it answers “namespace "…" is protected; allowed: green, blue”.'
        )
    pairs = (("certificate_9380982", "gift_card_5634230"), ("certificate_1111111", "gift_card_2222222"))
    assert (
        same(
            *(
                put_right(
                    "update",
                    {"booking_id": "BX77", "payment_id": old},
                    f"{old} cannot be used",
                    {"booking_id": "BX77", "payment_id": new},
                )
                for old, new in pairs
            )
        )
        == "When update answers “certificate_… cannot be used”, use gift_card_… as payment_id, not certificate_…."
    )
    assert (
        same(
            *(
                put_right(
                    "list", {"team": "ops", "size": size}, f"size {size} is too large", {"team": "ops", "size": 10}
                )
                for size in (500, 70)
            )
        )
        == "When list answers “size … is too large”, use a smaller size."
    )


def test_settings_that_are_the_point_of_the_lesson_stay() -> None:
    for mode in ("slow", "careful"):
        form = put_right("resize", {"mode": "fast"}, "mode fast is not supported", {"mode": mode})
        assert f"use {mode} as mode, not fast" in lessons(form)[0].content


def test_ids_of_the_run_become_placeholders_in_the_structure_too() -> None:
    (lesson,) = lessons(
        put_right(
            "update_booking",
            {"booking_id": "BX7731", "payment_id": "certificate_9380982"},
            "Error: certificate cannot be used for BX7731",
            {"booking_id": "BX7731", "payment_id": "gift_card_5634230"},
        )
    )
    assert "use gift_card_… as payment_id, not certificate_…" in lesson.content
    assert "certificate_<id>" in json.dumps(lesson.structure)
    assert not any(given in json.dumps(lesson.structure) for given in ("BX7731", "9380982", "5634230"))


# Other tools


def test_another_tool_that_did_it_becomes_a_lesson() -> None:
    (lesson,) = lessons(
        trace(
            call("find_user_by_email", email="a@b.example"),
            result("find_user_by_email", "Error: user not found"),
            call("find_user_by_name", name="Ann"),
            result("find_user_by_name", "u1"),
        )
    )
    assert lesson.content == "When find_user_by_email answers “user not found”, use find_user_by_name instead."


def test_looking_where_something_is_does_not_stand_in_for_reading_it() -> None:
    form = trace(
        call("read_file", path="src/a.py"),
        result("read_file", "Error: No such file or directory: src/a.py"),
        call("list_dir", path="src/a.py"),
        result("list_dir", "b.py"),
    )
    assert lessons(form) == []


@pytest.mark.parametrize(("between", "told"), [("unlock_order", True), ("send_mail", False)])
def test_what_was_done_first_is_told_when_the_error_speaks_of_it(between: str, told: bool) -> None:
    form = trace(
        call("pay", order_id="W1000001"),
        result("pay", "Error: order W1000001 is locked"),
        call(between, order_id="W1000001"),
        result(between, "done"),
        call("pay", order_id="W1000001"),
        result("pay", "paid"),
    )
    expected = "When pay answers “order … is locked”, call unlock_order first, then repeat the call."
    assert [lesson.content for lesson in lessons(form)] == ([expected] if told else [])


# Scripts


def test_a_missing_import_is_told() -> None:
    (lesson,) = lessons(
        trace(
            say("```python\nrows = pd.read_csv('a.csv')\nprint(rows)\n```"),
            result("code_execution", "exit code: 1\nNameError: name 'pd' is not defined"),
            say("```python\nimport pandas as pd\nrows = pd.read_csv('a.csv')\nprint(rows.head())\n```"),
            result("code_execution", "exit code: 0\n1 2"),
        )
    )
    assert "“name 'pd' is not defined”, add `import pandas as pd`." in lesson.content


# The rest of a lesson


def test_the_agents_own_reason_is_evidence() -> None:
    steps = list(put_right(*PAGE_SIZE).steps)
    form = trace(
        *(call("http_get", **PAGE_SIZE[1]), result("http_get", PAGE_SIZE[2], is_error=True)),
        say("The limit is 100. I need to ask for smaller pages."),
        *(call("http_get", **PAGE_SIZE[3]), result("http_get", steps[-1].content)),
    )
    (lesson,) = lessons(form)
    assert lesson.structure["decision"]["reasoning"] == "I need to ask for smaller pages."
    assert "I need to ask for smaller pages." in [quote.text for quote in lesson.quotes]
    assert PAGE_SIZE[2] in [quote.text for quote in lesson.quotes]


def test_the_situation_and_the_runs_own_values_are_kept_as_data() -> None:
    (lesson,) = lessons(put_right(*PAGE_SIZE, environment={"api": "v1"}))
    assert lesson.failure_class == "permanent"
    assert lesson.structure["decision"]["parameters"] == {"page_size": {"from": 500, "to": 100}}
    assert lesson.structure["situation"]["environment"] == {"api": "v1"}


def test_at_most_three_lessons_the_one_that_acts_first() -> None:
    def pair(tool: str) -> list[Step]:
        return [
            call(tool, size=9, name="alpha beta"),
            result(tool, f"Error: {tool} wants a smaller size"),
            call(tool, size=3, name="alpha beta"),
            result(tool, "fine"),
        ]

    form = trace(*pair("read_a"), *pair("read_b"), *pair("read_c"), *pair("delete_d"))
    assert [lesson.tags for lesson in lessons(form)] == [("delete_d",), ("read_a",), ("read_b",)]


def test_a_lesson_from_a_failed_run_is_less_sure_and_says_so() -> None:
    (good,), (bad,) = lessons(put_right(*PAGE_SIZE)), lessons(put_right(*PAGE_SIZE, outcome="failed"))
    assert good.content == bad.content
    assert bad.confidence < good.confidence <= 0.5
    assert "that run as a whole did not succeed" in bad.structure["not_when"]
