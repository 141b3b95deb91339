"""Warnings from refusals that state a rule, and from nothing else."""

from __future__ import annotations

import pytest

from reflection.admission import Admitted, admit
from reflection.forms import Candidate, TraceForm
from tests.reflection.traces import call, lessons, put_right, result, say, trace

LIMIT = "refunds above 500.00 need approval by a supervisor"


def refused(message: str, task: str = "Refund the order", tool: str = "refund_order") -> TraceForm:
    return trace(
        call(tool, order_id="44711", amount=612.0),
        result(tool, f'{{"error": "{message}"}}', is_error=True),
        say("It was refused."),
        task=task,
        outcome="failed",
    )


def warning(form: TraceForm) -> Candidate:
    (found,) = lessons(form)
    assert isinstance(admit(found, form), Admitted)
    return found


def test_a_stated_limit_becomes_a_warning_with_low_confidence() -> None:
    found = warning(refused(LIMIT))
    assert found.content == (
        "refund_order refuses refunds above 500.00: they need approval by a supervisor. Do not retry unchanged."
    )
    assert found.kind == "experience"
    assert found.confidence == 0.35
    assert found.failure_class == "permanent"
    assert found.structure["outcome"] == {"success": False}
    assert found.structure["not_when"] == "what the rule asks for has been met"
    assert found.structure["decision"]["action"].startswith("do not call refund_order")
    assert found.quotes[0].text == LIMIT
    assert "warning" in found.tags


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("A refund above 500 EUR requires approval", "refuses a refund above 500 EUR: it requires approval."),
        ("basic economy flights cannot be changed", "enforces a rule: “basic economy flights cannot be changed”."),
        ("only managers may approve credit notes", "enforces a rule: “only managers may approve credit notes”."),
        ("order 44711 must be confirmed first", "enforces a rule: “order … must be confirmed first”."),
    ],
)
def test_rules_are_told_without_the_runs_own_values(message: str, told: str) -> None:
    assert warning(refused(message)).content.startswith(f"refund_order {told} Do not retry")


@pytest.mark.parametrize("message", ["退款金额超过 500 元需要主管审批", "该账户不允许跨行转账", "每日上限为 3 次"])
def test_a_chinese_rule_is_told_in_chinese(message: str) -> None:
    found = warning(refused(message, task="把钱退给这位客户"))
    assert found.content == f"refund_order 有一条规则：“{message}”。不满足时会被拒绝，不要原样重试。"
    assert found.structure["not_when"] == "规则所要求的条件已经满足"


@pytest.mark.parametrize(
    "message",
    [
        "503 Service Unavailable: at most 3 retries",
        "Request timed out, you must retry later",
        "connection reset by peer",
        "KeyError: 'x'",
        "TypeError: amount must be str, not float",
        "file not found",
        "not enough seats on flight HAT1",
        "payment amount does not add up, total price is 305, but paid 255",
        "incorrect password, 2 attempts required",
        "permission denied: must be root",
    ],
)
def test_a_passing_failure_or_a_plain_crash_states_no_rule(message: str) -> None:
    assert lessons(refused(message)) == []


def test_what_a_program_prints_is_no_rule_of_the_shell() -> None:
    form = trace(call("bash", command="make"), result("bash", "exit code: 2\nfoo.c: x must be const"), outcome="failed")
    assert lessons(form) == []


def test_a_rule_that_a_later_call_met_is_told_as_a_lesson_only() -> None:
    found = lessons(put_right("list", {"size": 500}, "size must be at most 100", {"size": 100}))
    assert [candidate.confidence for candidate in found] == [0.45]


def test_two_runs_with_their_own_amounts_give_one_warning() -> None:
    runs = [f"transfer of {amount} for order 44711 exceeds the limit of 1000" for amount in (2500, 7300)]
    assert len({warning(refused(message)).content for message in runs}) == 1
