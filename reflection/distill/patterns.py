"""An error as a later agent would meet it: what only this run had in it is left out ("…")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from reflection.distill.placeholders import generalise, stem
from reflection.distill.wording import one_line, quoted, shorten

_PATTERN_LIMIT = 110  # characters of the error shown in a lesson
_LISTED = re.compile(r"\[[^\[\]]*,[^\[\]]*(?:\]|$)")
_MASKED = re.compile(r"<[A-Z]+(?:_[A-Z]+)*(?:_\d+)?>")
# "django.db.utils.ProgrammingError: relation …": the class says little where a sentence follows.
_CLASS = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*(?:Error|Exception|Warning))(?: ?\[[^\]]*\])?:\s+")
_IN_QUOTES = re.compile(r"(?<!\w)(?P<open>['\"‘`「])(?P<inner>[^'\"‘’`「」\n]{1,80})(?P<close>['\"’`」])(?!\w)")
_FORMAT = re.compile(r"[YMDHhmsTZ:/. -]{2,}|[#%^\\].*")
# Amounts and counts of this run; a number that names a status or a version stays.
_AMOUNT = re.compile(
    r"(?<![\w.#…-])(?<!code )(?<!status )(?<!HTTP )(?<!Errno )\d+(?:[.,]\d+)*(?![\w.-]*\w)",
    re.IGNORECASE | re.ASCII,
)
_LIMIT = re.compile(
    r"(?:at most|at least|no more than|no less than|no fewer than|max(?:imum)?|min(?:imum)?|limit(?: is| of)?"
    r"|must be|should be|between|(?:between|from) \S+ (?:and|to)|than|up to|exceeds?|above|over|below|under"
    r"|within|>=?|<=?|≥|≤"
    r"|不超过|不得超过|超过|高于|低于|大于|小于|不足|以内|最多|至多|至少|最大|最小|最高|最低|上限|下限|必须|不能|只能)"
    r"\W*(?:\w+\W+)?$",
    re.IGNORECASE | re.ASCII,
)
_STATUS_FIRST = re.compile(r"[45]\d\d [A-Z]")
_REPEATED = re.compile(r"…(?:\s*…)+")
_SAYS_NOTHING = re.compile(
    r"(?:traceback \(most recent call last\)|error|exception|failed|failure|unknown error|bad request"
    r"|(?:4|5)\d\d (?:bad request|internal server error)|invalid (?:request|input|argument|parameter)s?"
    r"|something went wrong|\w*(?:error|exception): ['\"]?…['\"]?"
    r"|失败|错误|参数错误|请求失败|操作失败|未知错误)?\W*",
    re.IGNORECASE,
)
_LEAST = 3  # characters of a value; a shorter one is left out only in quotation marks
_WORDS_ENOUGH = 3  # words after an exception's class with which it can do without


def error_pattern(message: str, given: Iterable[object], kept: str, ids: Mapping[str, str]) -> str:
    """Return an error without what only this run had in it.

    `given` are the values of the failing call that are the run's own; `kept` is the advice that the
    pattern will stand beside, whose names and values stay: they are the point of it.
    """
    text = _LISTED.sub("[…]", _without_class(quoted(message)))
    values = {one_line(value) for value in given if isinstance(value, str)}
    for value in sorted(values, key=lambda value: (-len(value), value)):
        text = _without_value(text, value, kept)
    text = _IN_QUOTES.sub(lambda match: _quoted_name(match, kept), text)
    text = _MASKED.sub("…", generalise(text, ids, blank=True))
    if not _STATUS_FIRST.match(text):
        text = _AMOUNT.sub(lambda number: _amount(number, kept), text)
    return shorten(_REPEATED.sub("…", text), _PATTERN_LIMIT)


def says_nothing(pattern: str) -> bool:
    """Return whether an error's words would be met anywhere ("Error", a bare traceback's head)."""
    return _SAYS_NOTHING.fullmatch(pattern) is not None


def _without_class(text: str) -> str:
    found = _CLASS.match(text)
    if found is None:
        return text
    rest = text[found.end() :]
    enough = len(rest.split()) >= _WORDS_ENOUGH or re.search(r"[\u3400-\u9fff]{4}", rest)
    return rest if enough else f"{found['name']}: {rest}"


def _without_value(text: str, value: str, kept: str) -> str:
    """Leave out a value of the call where it stands as a word, unless the advice names it."""
    if len(value) < _LEAST or value in kept or value not in text:
        return text
    word = rf"(?<![A-Za-z0-9_]){re.escape(value)}(?![A-Za-z0-9_])"
    return re.sub(word, f"{stem(value)}_…" if stem(value) else "…", text)


def _quoted_name(match: re.Match[str], kept: str) -> str:
    """Leave out what stands in quotation marks, unless the advice speaks of it or it is a format."""
    inner = match["inner"]
    names = re.findall(r"[A-Za-z0-9]+(?:[_.-][A-Za-z0-9]+)*|[\u3400-\u9fff]+", inner)
    told = bool(names) and any(len(name) > 1 and name in kept for name in names)
    return match.group() if told or _FORMAT.fullmatch(inner) else f"{match['open']}…{match['close']}"


def _amount(number: re.Match[str], kept: str) -> str:
    """Keep a number that states a limit or that the advice names; the others are amounts of this run."""
    if re.search(rf"(?<![\d.]){re.escape(number.group())}(?![\d.])", kept):
        return number.group()
    before = number.string[max(0, number.start() - 30) : number.start()]
    return number.group() if _LIMIT.search(before) else "…"
