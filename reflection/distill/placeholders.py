"""Telling this run's own values from what holds for every run, and leaving the former out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reflection.distill.calls import is_call
from reflection.distill.shapes import shape_of
from reflection.distill.wording import leaves
from reflection.forms import TraceForm

# Ids that never mean anything outside their own run.
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_TEMPORARY_PATH = re.compile(r"(?:[A-Za-z]:)?[\w./\\-]*[0-9a-f]{16,}[\w./\\-]*")
_TAILED_ID = re.compile(r"\b([A-Za-z][A-Za-z]*(?:_[A-Za-z]+)*)_\d{4,}\b")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b(?:T[\d:.]+Z?)?")
_LONG_NUMBER = re.compile(r"#?\b[A-Z]{0,2}\d{6,}\b")
_ID_VALUE = re.compile(r"(?=\S*\d)[#A-Za-z0-9_-]{4,40}|[\w.+-]+@[\w.-]+|<[A-Z_]+_\d+>")
_PLAIN_VALUE = re.compile(r"[\d.,]+|v?\d+(?:\.\d+)+")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.+-][A-Za-z0-9]+){0,3}")
_SETTING_WORDS = """
encoding charset codec format type mode lang language locale version model region zone timezone unit units
currency level algorithm platform runtime namespace environment env engine driver protocol dialect column
field sort order_by group_by 编码 格式 类型 模式 语言 版本 单位 币种 级别 算法 字段 列
"""
_SETTING_NAMES = frozenset(_SETTING_WORDS.split())
_DATA_WORDS = """
id ids user username name title customer owner query q input text keyword keywords search city person author
email subject body message content comment description product item order address phone country
用户 姓名 名称 客户 关键词 城市 商品 地址 订单
"""
_DATA_NAMES = frozenset(_DATA_WORDS.split())


def looks_like_id(value: object, name: str = "") -> bool:
    """Return whether a value of the argument `name` names one particular thing (an order, a user).

    A date and other written forms do not, nor does a setting such as `encoding` = gb18030.
    """
    if not isinstance(value, str) or not _ID_VALUE.fullmatch(value) or _PLAIN_VALUE.fullmatch(value):
        return False
    if names_setting(name):
        return False
    shape = shape_of(value)
    return shape is None or not (shape.dated or shape.measured)


def is_setting(value: object, name: str = "") -> bool:
    """Return whether a value is one of a tool's few settings (json, utf-8, fast) rather than data."""
    if isinstance(value, bool):
        return True
    if not isinstance(value, str) or not _SETTING.fullmatch(value) or len(value) > 30:
        return False
    if names_setting(name):
        return True
    return value.islower() and not re.search(r"\d", value) and not _name_words(name) & _DATA_NAMES


def names_setting(name: str) -> bool:
    """Return whether an argument, by its name or path, is one of a tool's settings (format, encoding, …)."""
    return bool(_name_words(_last_name(name)) & _SETTING_NAMES)


def stem(value: object) -> str:
    """Return the sort that an id names in its own words (`gift_card` of gift_card_5634230), or ""."""
    tailed = _TAILED_ID.fullmatch(value) if isinstance(value, str) else None
    return tailed.group(1) if tailed else ""


def run_ids(trace: TraceForm) -> dict[str, str]:
    """Return id-like values of this run's tool arguments with the placeholder that stands for each."""
    found: dict[str, str] = {}
    for step in trace.steps:
        if is_call(step):
            for path, value in leaves(step.arguments or {}):
                name = _last_name(path)
                if isinstance(value, str) and looks_like_id(value, name):
                    found.setdefault(value, f"<{name}>")
    return found


def generalise(text: str, ids: Mapping[str, str], *, dates: bool = True, blank: bool = False) -> str:
    """Put placeholders where a text names things that exist in this run only, `dates` among them.

    With `blank` every placeholder is "…", as a reader would leave it out; else it says what stood there.
    """
    for value in sorted(ids, key=len, reverse=True):
        if value in text:
            placeholder = _blank(value) if blank else _placeholder(value, ids[value])
            # A name may hold a backslash, which a replacement would read as its own.
            replacement = placeholder.replace("\\", r"\\")
            text = re.sub(rf"(?<![\w#-]){re.escape(value)}(?![\w-])", replacement, text)
    any_id = "…" if blank else "<id>"
    text = _TEMPORARY_PATH.sub("…" if blank else "<path>", _UUID.sub(any_id, text))
    text = _TAILED_ID.sub(rf"\1_{any_id}", text)
    if dates:
        text = _DATE.sub("…" if blank else "<date>", text)
    return _LONG_NUMBER.sub(any_id, text)


def _placeholder(value: str, name: str) -> str:
    """Keep the telling stem of an id: `gift_card_123456` is a gift card, whatever the argument's name."""
    return f"{stem(value)}_<id>" if stem(value) and not name.startswith("<user") else name


def _blank(value: str) -> str:
    return f"{stem(value)}_…" if stem(value) else "…"


def _name_words(name: str) -> set[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    return {spaced, *re.split(r"[_.\s-]+", spaced)}


def _last_name(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path).rsplit(".", 1)[-1] or "value"
