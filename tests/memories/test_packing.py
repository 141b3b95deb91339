"""What an agent reads: whole sentences, the advice first, nothing left open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.contents import closed, cut, sentences
from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END
from memories.enums import Kind
from memories.packing import LESSON_CHARS, LONGEST_SENTENCE, Line, gist, pack, token_estimate

PIECES = st.lists(
    st.sampled_from(["Do it. ", "“quoted. ", "”", "(aside) ", "(", "词句。", "code `x", "` ", "\n", "why? "])
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "The deploy failed with “permission denied. Ask an admin” because the role was missing there. "
            "Check the role before deploying. It took an hour.",
            "The deploy failed with “permission denied. Ask an admin” because the role was missing there. "
            "Check the role before deploying.",
        ),
        (
            "导出发票时按月份名称会被拒绝，因为接口只认数字格式，而且错误信息里没有说明原因，排查了很久才弄清楚，"
            "前后大约花了两个小时，还打扰了三位同事，其中一位正在休假，非常不好意思，以后要注意避免。"
            "月份必须写成 YYYY-MM。",
            "导出发票时按月份名称会被拒绝，因为接口只认数字格式，而且错误信息里没有说明原因，排查了很久才弄清楚，"
            "前后大约花了两个小时，还打扰了三位同事，其中一位正在休假，非常不好意思，以后要注意避免。 "
            "月份必须写成 YYYY-MM。",
        ),
        ("Short and sweet.", "Short and sweet."),
    ],
)
def test_the_advice_is_kept_whole(text: str, kept: str) -> None:
    assert gist(text, LESSON_CHARS) == kept


def test_a_long_first_sentence_is_kept_whole() -> None:
    advice = "Always " + "very carefully " * 9 + "check the role."
    assert LESSON_CHARS < len(advice) < LONGEST_SENTENCE
    assert gist(f"{advice} Then go on with whatever there is to do next.", LESSON_CHARS) == advice


def test_no_quote_is_left_open() -> None:
    text = "The answer was “" + "word " * 60 + "” and so on."
    assert cut(text, 80).endswith("…”")
    assert closed("a (b `c") == "a (b `c`)"
    assert closed('5" of rain') == '5" of rain'


def test_a_sentence_that_is_quoted_does_not_end_the_one_around_it() -> None:
    assert sentences("He said “Stop. Now.” and left. Fine!") == ["He said “Stop. Now.” and left.", "Fine!"]


@given(PIECES, st.integers(20, 120))
def test_the_gist_is_bounded_and_made_of_the_text(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    short = gist(text, limit)
    assert len(short) <= max(limit, 2 * LONGEST_SENTENCE + 1) + len(pieces)
    assert "".join(sentences(text)).replace(" ", "") == "".join(text.split())
    assert set(short) <= set(text) | set("…”)`)")


def test_a_lesson_is_told_in_full_where_there_is_room_and_keeps_its_point_where_there_is_not() -> None:
    lesson = (
        "export_invoices takes the month as YYYY-MM, not as a month name, and answers with an error otherwise. "
        "It was seen three times in a row. Do not retry unchanged."
    )
    lines = [Line(lesson, Kind.EXPERIENCE, "team", contested=False) for _ in range(3)]
    assert pack(lines, 800).count("three times") == 3
    tight = pack(lines, 140)
    assert tight.count("YYYY-MM") == 3, "every lesson keeps what it is about"
    assert tight.count("three times") < 3


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(50, 900))
def test_a_budget_is_kept(texts: list[str], budget: int) -> None:
    packed = pack([Line(text, Kind.EXPERIENCE, "team", contested=False) for text in texts], budget)
    assert token_estimate(packed) <= budget
    assert not packed or (packed.startswith(CONTEXT_BEGIN) and packed.endswith(CONTEXT_END))
