"""Two memories that cannot both hold, told from what merely looks like it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.advice import is_advice, is_warning
from memories.contradiction import Claim, contradiction
from memories.enums import ConflictReason as Reason
from memories.enums import Kind
from memories.evaluation import conflicts
from memories.statements import statement

PUBLIC = Path(__file__).resolve().parents[3] / "shared" / "data" / "dev"


def claim(content: str, kind: str = Kind.FACT, **more) -> Claim:
    return Claim(content, kind, **more)


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def fact(subject: str, predicate: str, value: str, content: str = "", **more) -> Claim:
    structure = {"subject": subject, "predicate": predicate, "object": value}
    return claim(content or f"{subject} {predicate} {value}", structure=structure, **more)


def test_precision_and_recall_on_our_own_pairs() -> None:
    figures = conflicts.evaluate()
    assert figures["slices"]["all"]["pairs"] >= 60
    assert figures["slices"]["zh"]["pairs"] >= 20
    assert figures["slices"]["all"]["precision"] >= 0.97
    assert figures["slices"]["all"]["recall"] >= 0.9


def test_precision_on_pairs_that_nothing_was_fitted_to() -> None:
    figures = conflicts.evaluate(conflicts.HELD)["slices"]["all"]
    assert figures["precision"] >= 0.95
    assert figures["recall"] >= 0.6
    assert "held" not in figures


def test_honest_lessons_of_agents_are_left_alone() -> None:
    texts = conflicts.lessons(PUBLIC)[:60] or [
        ("experience", f"I should have looked into cabinet {n}.") for n in range(60)
    ]
    assert conflicts.among(texts) == []


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (fact("billing", "default port", "8000"), fact("Billing", "default port", "9000"), Reason.OTHER_VALUE),
        (fact("billing", "supports", "refunds"), fact("billing", "does not support", "refunds"), Reason.NEGATED),
        (fact("Alice", "likes", "tea"), fact("Alice", "likes", "coffee"), ""),  # one may like both
        (fact("Alice", "lives in", "Paris"), fact("Alice", "lives in", "Paris, France"), ""),
        (fact("Alice", "lives in", "Paris"), fact("Bob", "lives in", "Rome"), ""),
        (fact("the API", "is", "fast"), fact("the API", "is", "old"), ""),
        (fact("the flag", "is", "enabled"), fact("the flag", "is", "disabled"), Reason.OTHER_VALUE),
    ],
)
def test_structures_decide_where_they_can(a: Claim, b: Claim, reason: str) -> None:
    assert contradiction(a, b) == contradiction(b, a) == reason


def test_what_holds_at_different_times_is_no_contradiction() -> None:
    old = fact("billing", "default port", "8000", valid_until=day(5))
    assert contradiction(old, fact("billing", "default port", "9000", valid_from=day(5))) == ""
    assert contradiction(old, fact("billing", "default port", "9000", valid_from=day(4))) == Reason.OTHER_VALUE
    assert contradiction(old, fact("billing", "default port", "9000")) == Reason.OTHER_VALUE


def test_another_environment_or_speaker_is_no_contradiction() -> None:
    a, b = "The default shell is bash.", "The default shell is zsh."
    assert contradiction(claim(a), claim(b)) == Reason.OTHER_VALUE
    assert contradiction(claim(a, environment={"os": "linux"}), claim(b, environment={"os": "macos"})) == ""
    assert contradiction(claim(a, actor="Ann"), claim(b, actor="Ben")) == ""


def test_lessons_for_different_situations_do_not_oppose_each_other() -> None:
    do, dont = "Retry the payment call after a timeout.", "Do not retry the payment call after a timeout."
    assert contradiction(claim(do, Kind.EXPERIENCE), claim(dont, Kind.EXPERIENCE)) == Reason.OPPOSITE_ADVICE
    for name in ("applies_when", "situation"):
        one = {"lesson": do, name: {"task_type": "refunds"} if name == "situation" else "the order is a preorder"}
        other = {"lesson": dont, name: {"task_type": "search"} if name == "situation" else "a card was stolen"}
        a, b = claim(do, Kind.EXPERIENCE, structure=one), claim(dont, Kind.EXPERIENCE, structure=other)
        assert contradiction(a, b) == ""


def test_episodes_tell_what_happened_and_contradict_nothing() -> None:
    assert contradiction(claim("The export works.", Kind.TASK), claim("The export does not work.", Kind.TASK)) == ""


TEXTS = st.sampled_from([text for row in conflicts.pairs() for text in row[1:3]])


@given(TEXTS, TEXTS, st.sampled_from(list(Kind)))
def test_it_is_symmetric_and_nothing_contradicts_itself(a: str, b: str, kind: str) -> None:
    assert contradiction(claim(a, kind), claim(b, kind)) == contradiction(claim(b, kind), claim(a, kind))
    assert contradiction(claim(a, kind), claim(a, kind)) == ""


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_taken(a: str, b: str) -> None:
    assert contradiction(claim(a), claim(b)) in ("", *Reason.values)
    assert isinstance(is_warning(a), bool)
    assert isinstance(is_advice(b), bool)


def test_a_long_text_is_compared_in_no_time() -> None:
    long = "The port is 8000 and the host is main if the flag is not set. " * 120
    assert contradiction(claim(long), claim(long.replace("8000", "9000"))) == Reason.OTHER_VALUE


def test_amounts_are_compared_by_what_they_are_worth() -> None:
    assert statement("It takes 90 seconds.").words == statement("It takes 1.5 minutes.").words
    assert statement("等待两分钟").words == statement("等待120秒").words


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("Do not retry a payment.", True),
        ("Never use sudo for pip.", True),
        ("Avoid empty queries.", True),
        ("不要重试付款请求。", True),
        ("请勿删除备份。", True),
        ("refund_order refuses refunds above 500.00: they need approval. Do not retry unchanged.", True),
        ("pay enforces a rule: “the order must be confirmed first”. Do not retry what breaks it.", True),
        ("refund 有一条规则：“金额不得超过 500”。不满足时会被拒绝，不要原样重试。", True),
        ("When `pay` answers with a time-out, do not retry it.", True),
        ("When update_order answers “items must be a list”, wrap it. Do not pass a string.", False),
        ("pay wants the amount in cents. Give it so. Do not round.", False),
        ("Retry a payment only once; do not repeat it.", False),
        ("The API does not support CSV.", False),
        ("别的团队也用这个接口。", False),
        ("Note the seat before you change it.", False),
    ],
)
def test_warnings_are_told_apart(text: str, warns: bool) -> None:
    assert is_warning(text) is warns
