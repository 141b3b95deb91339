"""What counts as an error, which words of it say so, and why it failed."""

from __future__ import annotations

import pytest

from memories.enums import FailureClass
from reflection.distill.failures import classify
from reflection.distill.signs import find_error
from reflection.evaluation import rules as evaluation
from reflection.evaluation.failure_labels import HELD_OUT, LABELLED
from reflection.forms import StepForm


def error_of(content: str, *, is_error: bool = False) -> str | None:
    step = StepForm(0, "tool", "tool_result", content, "t", is_error=is_error)
    sign = find_error(step)
    return None if sign is None else step.text[sign.start : sign.end]


# What is an error, and in which words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Error: user not found", "Error: user not found"),
        ('{"error": {"code": 7, "message": "no such table"}}', "no such table"),
        ('{"success": false, "msg": "余额不足"}', "余额不足"),
        ('{"code": 503, "message": "busy"}', "busy"),
        ("exit code: 1\nmake: *** [all] Error 2", "make: *** [all] Error 2"),
        ("Process exited with code 127\nbash: rg: command not found", "bash: rg: command not found"),
        ('Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 7', "KeyError: 7"),
        ("exitcode: 1 (execution failed)\nCode output: \nunknown language", "unknown language"),
        ("HTTP 404: Not Found", "HTTP 404: Not Found"),
        ("503 Service Unavailable", "503 Service Unavailable"),
        ("Could not find [Ann]. Similar: ['Anna']", "Could not find [Ann]. Similar: ['Anna']"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("错误：服务暂时不可用", "错误：服务暂时不可用"),
        ("查询失败，请检查参数", "查询失败，请检查参数"),
        ("订单不存在", "订单不存在"),
        ("Request timed out.", "Request timed out."),
        ("path is required", "path is required"),
    ],
)
def test_errors_are_recognised_by_content(content: str, words: str) -> None:
    assert error_of(content) == words


@pytest.mark.parametrize(
    "content",
    [
        "All tests passed, 0 errors",
        '{"errors": [], "rows": 3}',
        '{"error": null, "id": 4}',
        "Error handling in Python is done with try and except.",
        "500 Days of Summer is a film from 2009",
        "The article explains how a timeout error arises in a network.",
        "exit code: 0\n12 passed",
        "def f():\n    raise ValueError('Error: bad')",
        "2024-05-01 ERROR old entry\n2024-05-02 all is well again",
        "没有错误，已全部完成",
        "错误率为 3%，低于上月",
        "Unknown Mortal Orchestra is a band",
        "Signature required upon delivery",
        "code: 12\nstatus: 404 pieces in stock",
        "服务已启动",
        "测试异常处理流程已通过",
        "",
    ],
)
def test_texts_that_only_speak_of_errors_are_none(content: str) -> None:
    assert error_of(content) is None


def test_the_clients_flag_makes_an_error_of_any_words() -> None:
    assert error_of("nope", is_error=True) == "nope"


def test_only_results_report_errors_by_content() -> None:
    assert find_error(StepForm(0, "assistant", "message", "Error: I was wrong")) is None


@pytest.mark.parametrize(("message", "label"), LABELLED)
def test_no_labelled_message_is_wrongly_called_passing(message: str, label: FailureClass) -> None:
    assert (classify(message) == FailureClass.TRANSIENT) is (label == FailureClass.TRANSIENT)


def test_messages_that_were_held_out_are_told_mostly_right() -> None:
    figures = evaluation.measure_classes()["held_out"]
    assert len(HELD_OUT) == figures["messages"]
    assert figures["transient_false_alarms"] == 0
    assert figures["transient_recall"] >= 0.75
