"""Explicit times in a question, English and Chinese: "last week", "上周", "2026-03-02", "in March". Pure.

Only what plainly names a time counts: "port 9077", "version 3.5", "may I" and "march on" name none. A
bare month needs a preposition, a bare year too. Without a year the latest such time that has begun is
meant. Times are days of the caller's time zone, the one of `at`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: value for value, word in enumerate(_COUNTED.split(), start=1)} | {"a": 1, "an": 1, "a couple of": 2}
_ZH_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_ZH_NUMBER = r"(?:[0-9]{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"

_MONTH = "|".join(f"{name}|{name[:3]}\\.?" for name in _MONTHS) + r"|sept\.?"
_DAY = "|".join(f"{name}|{name[:3]}\\.?" for name in _DAYS)
_NUMBER = "|".join(["[0-9]{1,3}", *sorted(_NUMBERS, key=len, reverse=True)])
_EDGE, _END = r"(?<![\w./:+-])", r"(?![\w/:+-]|\.\w)"  # not inside an identifier, a path or a version
_YEAR = r"(?:19|20)[0-9]{2}"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, `start` included, `end` not."""

    start: datetime
    end: datetime

    def closeness(self, moment: datetime) -> float:
        """1.0 inside; outside halved with every length of the span (one day at least) away from it."""
        distance = max(self.start - moment, moment - self.end, timedelta(0))
        return 0.5 ** (distance / max(self.end - self.start, timedelta(days=1)))


def spans(text: str, at: datetime) -> list[Span]:
    """Return the times that `text` names, seen from `at` (aware); what no calendar has is left out."""
    found: list[Span] = []
    taken: list[tuple[int, int]] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            try:
                span = read(match, at)
            except (ValueError, OverflowError):  # 2026-02-31, or a thousand years ago
                continue
            taken.append(match.span())
            found.append(span)
    return found


def closeness(moment: datetime | None, named: list[Span]) -> float:
    """How near a moment lies to the nearest of the named times, 0..1; 0 without either."""
    if moment is None or not named:
        return 0.0
    return max(span.closeness(moment) for span in named)


# --- Spans -----------------------------------------------------------------------------------------


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(at: datetime, days_ago: int = 0) -> Span:
    start = _midnight(at) - timedelta(days=days_ago)
    return Span(start, start + timedelta(days=1))


def _week(at: datetime, weeks_ago: int = 0) -> Span:
    start = _midnight(at) - timedelta(days=at.weekday() + 7 * weeks_ago)
    return Span(start, start + timedelta(days=7))


def _month(at: datetime, months_ago: int = 0) -> Span:
    months = at.year * 12 + at.month - 1 - months_ago
    return _month_of(at, months // 12, months % 12 + 1)


def _month_of(at: datetime, year: int, month: int) -> Span:
    start = _midnight(at).replace(year=year, month=month, day=1)
    return Span(start, (start + timedelta(days=32)).replace(day=1))


def _year(at: datetime, years_ago: int = 0) -> Span:
    start = _midnight(at).replace(year=at.year - years_ago, month=1, day=1)
    return Span(start, start.replace(year=start.year + 1))


def _date(at: datetime, year: int, month: int, day: int) -> Span:
    return _day(at.replace(year=year, month=month, day=day))


def _latest(at: datetime, span_in: Callable[[int], Span]) -> Span:
    """The span in the year of `at`, or in the year before when it has not begun yet."""
    span = span_in(at.year)
    return span if span.start <= at else span_in(at.year - 1)


_UNITS: dict[str, Callable[[datetime, int], Span]] = {
    "day": _day, "week": _week, "month": _month, "year": _year,
    "天": _day, "日": _day, "周": _week, "星期": _week, "礼拜": _week, "月": _month, "年": _year,
}  # fmt: skip


def _ago(unit: str, count: int, at: datetime) -> Span:
    """Around so many units before `at`: people round, so half a unit either way, for days the day itself."""
    if unit in ("day", "天", "日"):
        return _day(at, count)
    if unit in ("week", "周", "星期", "礼拜"):
        middle, half = _midnight(at) - timedelta(weeks=count), timedelta(days=3)
        return Span(middle - half, middle + half + timedelta(days=1))
    return _UNITS[unit](at, count)


# --- Words -----------------------------------------------------------------------------------------


def _month_number(word: str) -> int:
    return next(i for i, name in enumerate(_MONTHS, start=1) if name.startswith(word.lower()[:3]))


def _weekday_number(word: str) -> int:
    return next(i for i, name in enumerate(_DAYS) if name.startswith(word.lower()[:3]))


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]


def _zh_number(word: str) -> int:
    if word.isdigit():
        return int(word)
    tens, ten, ones = word.rpartition("十")
    if not ten:
        return _ZH_DIGITS[word]
    return (_ZH_DIGITS[tens] if tens else 1) * 10 + (_ZH_DIGITS[ones] if ones else 0)


def _weekday(at: datetime, weekday: int, relative: str) -> Span:
    """ "last Friday" is the latest one before today, "this Friday" the one of this week."""
    if relative in ("this", "本", "这", "这个"):
        return _day(at, at.weekday() - weekday)
    if relative in ("上", "上个"):  # the one of last week, not the latest
        return _day(at, at.weekday() - weekday + 7)
    return _day(at, (at.weekday() - weekday - 1) % 7 + 1)


_Read = Callable[[re.Match[str], datetime], Span]
_SPOKEN_DAYS = {
    "today": 0, "yesterday": 1, "the day before yesterday": 2, "tomorrow": -1,
    "今天": 0, "昨天": 1, "昨日": 1, "前天": 2, "大前天": 3, "明天": -1,
}  # fmt: skip


def _readers() -> Iterator[tuple[re.Pattern[str], _Read]]:
    """Patterns, the more exact first, and what each says."""

    def en(pattern: str) -> re.Pattern[str]:
        return re.compile(_EDGE + pattern + _END, re.IGNORECASE)

    yield (
        re.compile(
            rf"{_EDGE}({_YEAR})[-/]([0-9]{{1,2}})[-/]([0-9]{{1,2}})(?:T[0-9:.]+(?:Z|[+-][0-9:]+)?)?(?![\w/+-]|\.\w)"
        ),
        lambda m, at: _date(at, int(m[1]), int(m[2]), int(m[3])),
    )
    yield (
        re.compile(rf"({_YEAR})年\s*([0-9]{{1,2}})月\s*([0-9]{{1,2}})[日号]"),
        lambda m, at: _date(at, int(m[1]), int(m[2]), int(m[3])),
    )
    yield (
        en(rf"([0-9]{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH}),?\s+({_YEAR})"),
        lambda m, at: _date(at, int(m[3]), _month_number(m[2]), int(m[1])),
    )
    yield (
        en(rf"({_MONTH})\s+([0-9]{{1,2}})(?:st|nd|rd|th)?,?\s+({_YEAR})"),
        lambda m, at: _date(at, int(m[3]), _month_number(m[1]), int(m[2])),
    )
    yield en(rf"({_MONTH}),?\s+({_YEAR})"), lambda m, at: _month_of(at, int(m[2]), _month_number(m[1]))
    yield (
        re.compile(rf"({_YEAR})年\s*([0-9]{{1,2}})月(?:份|(?!\s*[0-9]))"),
        lambda m, at: _month_of(at, int(m[1]), int(m[2])),
    )
    yield (
        en(rf"([0-9]{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({'|'.join(_MONTHS)})"),
        lambda m, at: _latest(at, lambda year: _date(at, year, _month_number(m[2]), int(m[1]))),
    )
    yield (
        en(rf"({'|'.join(_MONTHS)})\s+([0-9]{{1,2}})(?:st|nd|rd|th)?"),
        lambda m, at: _latest(at, lambda year: _date(at, year, _month_number(m[1]), int(m[2]))),
    )
    yield (
        re.compile(r"(?<![0-9])([0-9]{1,2})月([0-9]{1,2})[日号]"),
        lambda m, at: _latest(at, lambda year: _date(at, year, int(m[1]), int(m[2]))),
    )
    yield en(r"(the day before yesterday|yesterday|today|tomorrow)"), lambda m, at: _day(at, _SPOKEN_DAYS[m[1].lower()])
    yield re.compile("(大前天|前天|昨天|昨日|今天|明天)"), lambda m, at: _day(at, _SPOKEN_DAYS[m[1]])
    yield (
        en(rf"(last|this|on)\s+({_DAY})"),
        lambda m, at: _weekday(at, _weekday_number(m[2]), m[1].lower()),
    )
    yield (
        re.compile("(上个?|本|这个?)(?:周|星期|礼拜)([一二三四五六日天])"),
        lambda m, at: _weekday(at, "一二三四五六日".index(m[2].replace("天", "日")), m[1]),
    )
    yield en(rf"({_NUMBER})\s+(day|week|month|year)s?\s+ago"), lambda m, at: _ago(m[2].lower(), _number(m[1]), at)
    yield (
        re.compile(rf"({_ZH_NUMBER})\s*(?:(天|日|周|年)|个(月|星期|礼拜))(?:以|之)?前"),
        lambda m, at: _ago(m[2] or m[3], _zh_number(m[1]), at),
    )
    yield (
        en(r"(last|this|past|previous)\s+(week|month|year)"),
        lambda m, at: _UNITS[m[2].lower()](at, int(m[1].lower() != "this")),
    )
    yield (
        re.compile("(上|本|这)个?(周|星期|礼拜|月)(?![一二三四五六日天期亮])"),
        lambda m, at: _UNITS[m[2]](at, int(m[1] == "上")),
    )
    yield re.compile("(前年|去年|今年)"), lambda m, at: _year(at, "今去前".index(m[1][0]))
    yield (
        en(rf"(?:in|during|since|of|last|this|by)\s+(?:early\s+|mid[- ]|late\s+)?({'|'.join(_MONTHS)})"),
        lambda m, at: _latest(at, lambda year: _month_of(at, year, _month_number(m[1]))),
    )
    yield (
        re.compile(rf"(?<![0-9个])({_ZH_NUMBER})月(?:份|里|初|底|中旬|上旬|下旬|的时候)"),
        lambda m, at: _latest(at, lambda year: _month_of(at, year, _zh_number(m[1]))),
    )
    yield en(rf"(?:in|during|since)\s+({_YEAR})"), lambda m, at: _year(at.replace(year=int(m[1]), day=1))
    yield re.compile(rf"(?<![0-9])({_YEAR})年(?!前)"), lambda m, at: _year(at.replace(year=int(m[1]), day=1))


_READERS = tuple(_readers())
