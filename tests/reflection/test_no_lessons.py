"""What must not become a lesson: other errands, ways around, retries, made-up data, passing errors."""

from __future__ import annotations

import pytest

from reflection.distill.pairs import find_pairs
from tests.reflection.traces import call, episode, lessons, put_right, result, say, trace

NONE = [
    ("get_order", {"order_id": "#W1000001"}, "Error: order not found", {"order_id": "#W2000002"}),
    ("search", {"q": "cats"}, "no results, try other words", {"q": "dogs"}),
    ("weather", {"city": "Pariss"}, "unknown city 'Pariss'", {"city": "Paris"}),
    ("find", {"name": "Ann"}, "Error: user not found", {"name": "Ben"}),
    (
        "create_user",
        {"name": "Ann", "role": "admin"},
        "permission denied for role admin",
        {"name": "Ann", "role": "guest"},
    ),
    ("book", {"flight": "F1", "seat": "a12"}, "seat a12 is taken", {"flight": "F1", "seat": "c14"}),
    ("deploy", {"app": "web", "version": "v1.2"}, "version v1.2 already deployed", {"app": "web", "version": "v1.3"}),
    ("transfer", {"to": "u1", "amount": 900}, "balance is not enough", {"to": "u1", "amount": 500}),
    ("get_orders", {"user": "u1"}, "internal error", {"user": "u1", "page": 2}),
    ("get_orders", {"user": "u1", "page": "2"}, "internal error", {"user": "u1", "page": 2}),
    ("export", {"month": "2026-13"}, "invalid month '2026-13'", {"month": "2026-12"}),
    ("get_rates", {"date": "2026-03-06"}, "Error: no rates for 2026-03-06", {"date": "2026-03-05"}),
    ("update", {"cabin": "business", "id": "B1"}, "gift card balance is not enough", {"cabin": "economy", "id": "B1"}),
]


@pytest.mark.parametrize("case", NONE)
def test_another_errand_or_a_way_around_is_no_lesson(case: tuple) -> None:
    form = put_right(*case)
    assert lessons(form) == []
    assert find_pairs(form).pairs == ()
    assert "Failed on the way, though other calls of the tool worked later: step 0" in episode(form).content


def test_made_up_data_is_no_fix() -> None:
    form = trace(
        say("Load it.\n```python\nrows = load('prices.csv')\nprint(rows)\n```"),
        result("code_execution", "exit code: 1\nFileNotFoundError: prices.csv"),
        say("We need to go on with mock data.\n```python\nrows = [1, 2]  # mock_data\nprint(rows)\n```"),
        result("code_execution", "exit code: 0\n[1, 2]"),
    )
    assert lessons(form) == []


@pytest.mark.parametrize(
    "error", ["Error: 503 Service Unavailable", "HTTP 429: Too Many Requests", "请求超时，请稍后重试"]
)
def test_a_passing_error_is_no_lesson_even_when_arguments_changed(error: str) -> None:
    changed = put_right("list_users", {"page_size": 500, "team": "ops"}, error, {"page_size": 100, "team": "ops"})
    switched = trace(
        call("find_user_by_email", email="a@b.example"),
        result("find_user_by_email", error),
        call("find_user_by_name", name="Ann"),
        result("find_user_by_name", "u1"),
    )
    assert lessons(changed) == lessons(switched) == []


def test_a_mere_retry_is_passing_and_never_a_lesson() -> None:
    form = put_right("get_order", {"id": "A1"}, "Error: internal hiccup", {"id": "A1"})
    assert lessons(form) == []
    assert "A passing failure: get_order answered “internal hiccup”; the same call worked at step 2" in (
        episode(form).content
    )
