"""Times that a question names: explicit ones only, and never a number that is something else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.search.times import Span, closeness, spans

AT = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)  # a Wednesday

MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2199, 12, 31), timezones=st.just(UTC))


def days(text: str, at: datetime = AT) -> list[tuple[str, str]]:
    return [(f"{span.start:%Y-%m-%d}", f"{span.end:%Y-%m-%d}") for span in spans(text, at)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("what broke last week?", "2026-03-09", "2026-03-16"),
        ("上周出了什么问题？", "2026-03-09", "2026-03-16"),
        ("the deploy of 2026-03-02", "2026-03-02", "2026-03-03"),
        ("on 2026-03-02T10:00:00Z it failed", "2026-03-02", "2026-03-03"),
        ("2026年3月2日的部署", "2026-03-02", "2026-03-03"),
        ("what happened in March?", "2026-03-01", "2026-04-01"),
        ("in May", "2025-05-01", "2025-06-01"),  # the latest one that has begun
        ("三天前的会议", "2026-03-15", "2026-03-16"),
        ("十二天前", "2026-03-06", "2026-03-07"),
        ("10 days ago", "2026-03-08", "2026-03-09"),
        ("a week ago", "2026-03-08", "2026-03-15"),
        ("yesterday", "2026-03-17", "2026-03-18"),
        ("前天说的", "2026-03-16", "2026-03-17"),
        ("last Friday", "2026-03-13", "2026-03-14"),
        ("上周三", "2026-03-11", "2026-03-12"),
        ("上个月", "2026-02-01", "2026-03-01"),
        ("去年", "2025-01-01", "2026-01-01"),
        ("8 May 2023", "2023-05-08", "2023-05-09"),
        ("on May 8th, 2023", "2023-05-08", "2023-05-09"),
        ("in January 2024", "2024-01-01", "2024-02-01"),
        ("5月8日", "2025-05-08", "2025-05-09"),
        ("三月份的账单", "2026-03-01", "2026-04-01"),
        ("during 2023", "2023-01-01", "2024-01-01"),
    ],
)
def test_an_explicit_time_is_understood(text: str, start: str, end: str) -> None:
    assert days(text) == [(start, end)]


@pytest.mark.parametrize(
    "text",
    [
        "port 9077", "version 3.5", "error 2023", "PR-2026", "backup-2026-03-02.tar", "v2026-03-02", "may I go?",
        "march on", "RFC 2119", "utf-8", "10.0.0.1", "the last step of the week", "second try", "in 2024/foo",
        "2026-02-31", "第三周期", "上周期", "一个月亮", "ERR_CONN_4031", "3月前端", "top 10", "24/7",
    ],
)  # fmt: skip
def test_what_is_no_time_names_none(text: str) -> None:
    assert spans(text, AT) == []


def test_days_are_those_of_the_caller() -> None:
    late = datetime(2026, 3, 18, 1, 0, tzinfo=timezone(timedelta(hours=8)))
    (today,) = spans("today", late)
    assert today.start == datetime(2026, 3, 17, 16, 0, tzinfo=UTC)


@given(st.text(max_size=60), MOMENTS)
def test_no_text_breaks_it(text: str, at: datetime) -> None:
    assert all(span.start < span.end for span in spans(text, at))


@given(st.integers(0, 99_999), st.sampled_from(["port {}", "error {}", "v{}.2", "id-{}", "{} items", "PR-{}"]))
def test_a_number_alone_is_no_time(number: int, form: str) -> None:
    assert spans(form.format(number), AT) == []


@given(MOMENTS, st.timedeltas(timedelta(minutes=1), timedelta(days=400)), MOMENTS)
def test_closeness_is_a_share_and_full_inside(start: datetime, length: timedelta, moment: datetime) -> None:
    span = Span(start, start + length)
    assert 0.0 <= span.closeness(moment) <= 1.0
    assert span.closeness(start + length / 2) == 1.0
    assert closeness(moment, []) == closeness(None, [span]) == 0.0
