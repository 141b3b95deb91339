"""An error as a later agent would meet it: this run's own values give way to placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reflection.distill.pairs import Pair
from reflection.distill.wording import generalise, shorten

_PATTERN_LIMIT = 110  # characters of the error shown in a lesson
_LISTED = re.compile(r"\[[^\[\]]*,[^\[\]]*(?:\]|$)")
_SAYS_ERROR = re.compile(r"^(?:error|错误|报错)\s*[:：]\s*", re.IGNORECASE)
# Amounts and counts of this run; a number that names a status or a version stays.
_AMOUNT = re.compile(
    r"(?<![\w.#-])(?<!code )(?<!status )(?<!HTTP )(?<!Errno )\d+(?:[.,]\d+)*(?![\w.-]*\w)", re.IGNORECASE
)
_LIMIT = re.compile(
    r"(?:at most|at least|max(?:imum)?|min(?:imum)?|limit(?: is| of)?|must be|between"
    r"|less than|greater than|up to|exceeds?|>=?|<=?"
    r"|不超过|不得超过|最多|至多|至少|最大|最小|上限|必须|不能)\W*(?:\w+\W+)?$",
    re.IGNORECASE,
)
_STATUS_FIRST = re.compile(r"[45]\d\d [A-Z]")
_SAYS_NOTHING = re.compile(
    r"(?:traceback \(most recent call last\)|error|exception|failed|unknown error|失败"
    r"|错误)?\W*",
    re.IGNORECASE,
)


def error_pattern(pair: Pair, ids: Mapping[str, str]) -> str:
    """Return the error as a later agent would meet it: this run's own values as placeholders."""
    text = pair.message
    for change in pair.changes:
        if isinstance(change.old, str) and 3 <= len(change.old) <= 200 and change.old in text:
            text = text.replace(change.old, f"<{change.name.rsplit('.', 1)[-1]}>", 1)
    text = generalise(_LISTED.sub("[…]", _SAYS_ERROR.sub("", text)), ids)
    return shorten(text if _STATUS_FIRST.match(text) else _AMOUNT.sub(_amount, text), _PATTERN_LIMIT)


def _amount(number: re.Match[str]) -> str:
    """Keep a number that states a limit; the others are amounts of this run."""
    before = number.string[max(0, number.start() - 30) : number.start()]
    return number.group() if _LIMIT.search(before) else "<n>"


def says_nothing(pattern: str) -> bool:
    """Return whether an error's words would be met anywhere ("Error", a bare traceback's head)."""
    return _SAYS_NOTHING.fullmatch(pattern) is not None
