"""What a value looks like, in words that hold for every run: `2026-03` is YYYY-MM, `March` a month name."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_YEAR, _MONTH, _DAY = r"(?:19|20)\d\d", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_ZH_MONTH = r"(?:[一二三四五六七八九十]{1,2}|\d{1,2})月(?:份)?"


@dataclass(frozen=True, slots=True)
class Shape:
    """A form of writing a value: `english` and `chinese` name it after "as", or after "not as".

    `measured`: whether it is a number with its unit.
    `demanded`: whether a tool may ask for this form; a name or a word is only what was given instead.
    `dated`: whether it is a way to write a moment.
    `hint`: what an error must say before this form may be taken for its point, or None.
    """

    english: str
    chinese: str
    demanded: bool = True
    dated: bool = False
    measured: bool = False
    hint: re.Pattern[str] | None = None


_A_CODE = re.compile(r"\bcode|\bISO\b|abbreviat|letters?\b|代码|缩写|字母|[两三]位", re.IGNORECASE)


def _moment(form: str) -> Shape:
    return Shape(form, form, dated=True)


_FORMS: tuple[tuple[str, Shape], ...] = (
    (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", Shape("a UUID", "UUID")),
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|<EMAIL_\d+>", Shape("an e-mail address", "邮箱地址")),
    (r"[a-z][a-z0-9+.-]*://\S+|<URL_\d+>", Shape("a full URL", "完整网址")),
    (
        rf"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)",
        Shape("YYYY-MM-DDTHH:MM:SS with a time zone", "带时区的 YYYY-MM-DDTHH:MM:SS", dated=True),
    ),
    (rf"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}(?::\d\d(?:\.\d+)?)?", _moment("YYYY-MM-DDTHH:MM:SS")),
    (rf"{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}(?::\d\d)?", _moment("YYYY-MM-DD HH:MM")),
    (rf"{_YEAR}-{_MONTH}-{_DAY}", _moment("YYYY-MM-DD")),
    (rf"{_YEAR}/{_MONTH}/{_DAY}", _moment("YYYY/MM/DD")),
    (rf"{_YEAR}{_MONTH}{_DAY}", _moment("YYYYMMDD")),
    (rf"{_YEAR}-{_MONTH}", _moment("YYYY-MM")),
    (rf"{_YEAR}/{_MONTH}", _moment("YYYY/MM")),
    (rf"{_YEAR}-?Q[1-4]", _moment("YYYY-Qn")),
    (rf"{_YEAR}-?W[0-5]\d", _moment("YYYY-Wnn")),
    (r"\d{1,2}\.\d{1,2}\.(?:19|20)\d\d", _moment("DD.MM.YYYY")),
    (
        r"\d{1,2}/\d{1,2}/(?:(?:19|20)\d\d|\d\d)",
        Shape("a date with slashes", "斜杠分隔的日期", demanded=False, dated=True),
    ),
    (rf"{_CLOCK}:[0-5]\d", _moment("HH:MM:SS")),
    (_CLOCK, _moment("HH:MM")),
    (
        r"\d{1,2}(?::\d\d)? ?[ap]\.?m\.?",
        Shape("a time with am or pm", "带 am/pm 的时间", demanded=False, dated=True),
    ),
    (rf"(?:{_MONTHS})\.?|{_ZH_MONTH}", Shape("a month name", "月份名", demanded=False, dated=True)),
    (
        rf"{_DAYS}|(?:星期|周|礼拜)[一二三四五六日天]",
        Shape("a weekday", "星期几", demanded=False, dated=True),
    ),
    (
        rf"(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?,?(?: {_YEAR})?"
        rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})\.?,?(?: {_YEAR})?|(?:{_MONTHS})\.?,? {_YEAR}"
        rf"|(?:{_YEAR}年)?{_ZH_MONTH}(?:\d{{1,2}}[日号])?|{_YEAR}年",
        Shape("a date in words", "“某月某日”", demanded=False, dated=True),
    ),
    (
        rf"today|tomorrow|yesterday|now|(?:this|last|next) (?:week|month|year|quarter|weekend|{_DAYS})"
        r"|今天|明天|昨天|现在|[上下本这](?:个)?(?:周|月|季度|星期)[一二三四五六日天]?|去年|今年|明年",
        Shape("a relative date", "相对日期", demanded=False, dated=True),
    ),
    (r"\+\d[\d ()-]{6,18}", Shape("a number with country code", "带国家代码的号码")),
    (r"-?\d+(?:\.\d+)? ?[%％]", Shape("a percentage", "百分数")),
    (
        r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?",
        Shape("a number with separators", "带千位分隔符的数字", demanded=False),
    ),
    (r"[$€£¥￥] ?-?\d[\d.,]*", Shape("an amount with a currency sign", "带货币符号的金额", demanded=False)),
    (r"-?\d+", Shape("a plain whole number", "纯整数")),
    (r"-?\d+\.\d+", Shape("a plain number", "纯数字")),
    (r"[A-Z]{2}", Shape("a two-letter code", "两位字母代码", hint=_A_CODE)),
    (r"[A-Z]{3}", Shape("a three-letter code", "三位字母代码", hint=_A_CODE)),
    (r"[a-z]{2}[-_][A-Z]{2}", Shape("a language tag with a region", "带地区的语言标签", hint=_A_CODE)),
    (r"(?:/[\w.@ -]+)+/?|[A-Za-z]:\\\S.*", Shape("an absolute path", "绝对路径")),
    (r"(?:\.{1,2}/)?[\w.@-]+(?:/[\w.@-]+)+/?", Shape("a relative path", "相对路径")),
)
_CASED = {"[A-Z]{2}", "[A-Z]{3}", "[a-z]{2}[-_][A-Z]{2}"}
_COMPILED = tuple((re.compile(form, 0 if form in _CASED else re.IGNORECASE), shape) for form, shape in _FORMS)
_UNITS = (
    r"kg|g|mg|t|lbs?|oz|km|m|cm|mm|mi|miles?|ft|in|l|ml|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?"
    r"|months?|years?|[kmgt]i?b|bytes?|px|pt|°?[cf]|usd|eur|gbp|cny|元|美元|欧元|天|小时|分钟|秒|公斤|千克|克|米|公里|厘米"
)
_WITH_UNIT = re.compile(rf"-?\d+(?:\.\d+)? ?(?P<unit>{_UNITS})", re.IGNORECASE)
_NAME = re.compile(r"[A-ZÀ-Þ][^\W\d_]*(?:[ '’.&-]+[^\W\d_]+){0,4}\.?|[\u3400-\u9fff]{2,8}")
_LONGEST = 200  # characters; a longer text has no shape worth naming


def shape_of(value: object) -> Shape | None:
    """Return the form in which a text value is written, or None when it has none that could be named."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        return None
    text = value.strip()
    found = next((shape for form, shape in _COMPILED if form.fullmatch(text)), None)
    if found is not None:
        return found
    unit = _WITH_UNIT.fullmatch(text)
    if unit is not None:
        name = unit["unit"]
        return Shape(f"a number with the unit {name}", f"带单位 {name} 的数字", measured=True)
    return Shape("a name", "名称", demanded=False) if _NAME.fullmatch(text) else None


# How one and the same value was written otherwise: (test on old and new, English, Chinese).
_QUOTES = "\"'“”‘’`「」"


def respelt(old: object, new: object) -> tuple[str, str] | None:
    """Return how `new` writes the same letters and digits as `old`, in English and Chinese, or None."""
    if not (isinstance(old, str) and isinstance(new, str)) or old == new or _core(old) != _core(new):
        return None
    if not _core(new) or len(new) > _LONGEST:
        return None
    if new == old.strip(_QUOTES) and new != old:
        return "without quotation marks", "去掉引号"
    if new.endswith(old) and _is_sign(new[: -len(old)]):
        return f"with a leading “{new[: -len(old)]}”", f"以“{new[: -len(old)]}”开头"
    if old.endswith(new) and _is_sign(old[: -len(new)]):
        return f"without the leading “{old[: -len(new)]}”", f"去掉开头的“{old[: -len(new)]}”"
    return _letters(old, new) or _separators(old, new)


def _letters(old: str, new: str) -> tuple[str, str] | None:
    if old.lower() != new.lower():
        return None
    if new.isupper():
        return "in upper case", "全部大写"
    if new.islower():
        return "in lower case", "全部小写"
    return "with the exact capitals", "按原样区分大小写"


def _separators(old: str, new: str) -> tuple[str, str] | None:
    for sign, english, chinese in (("_", "underscores", "下划线"), ("-", "hyphens", "连字符")):
        if sign in new and sign not in old:
            return f"with {english} between the words", f"用{chinese}连接各词"
    for sign, english, chinese in (
        (" ", "spaces", "空格"),
        ("-", "hyphens", "连字符"),
        ("_", "underscores", "下划线"),
    ):
        if sign in old and sign not in new:
            return f"without {english}", f"去掉{chinese}"
    return None


def _core(text: str) -> str:
    """Return the letters and digits of a text, case aside."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _is_sign(text: str) -> bool:
    return 0 < len(text) <= 3 and not any(char.isalnum() or char.isspace() for char in text)
