"""Finds values that a text assigns to a secret: `password=hunter2`, `"api_key": "…"`, `密码是abc123`.

The signs are found first and the words before them read backwards, which keeps the scan linear and quick.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from .spans import PLACEHOLDER

_NAME_WINDOW = 48  # characters before the sign in which the name must end

_SIGN = re.compile(r"""(?P<sign>=>|:=|[:=])(?![:=])[ \t]{0,3}(?P<quote>\\?["']?)""")
_VALUE = re.compile(r"""[^\s"'`,;&<>\\，。；、！]{4,4096}""")
_VERB = re.compile(
    r"""(?:(?<=\s)(?:is|was|are|ist|est|es)\s{1,3}|[是为為]\s?[:：]?\s?)["'“”‘]?(?P<value>[!-~]{4,128})""",
    re.VERBOSE,
)
_SCHEME = re.compile(
    r"\b(?P<scheme>[Bb]earer|BEARER|[Bb]asic|BASIC|[Tt]oken)[ \t]+(?P<value>[A-Za-z0-9._~+/=-]{8,512})",
    re.ASCII,
)
_OPTION = re.compile(  # on a command line: `--password hunter2`, `-u name:password`
    r"""(?:--[a-z-]{0,20}(?:password|passwd|token|secret|api-?key)[ ]+ | (?:\s-u|--user)[ ]+[^\s:'"]{1,64}:)
        (?P<value>[^\s'"-][^\s'"]{3,255})""",
    re.VERBOSE,
)
_NAME = re.compile(
    r"""(?: pass(?:word|wd|phrase|code) | (?<![a-z])p(?:ass|wd|sw) | pwd
          | secret(?:[_-]?(?:access[_-]?)?key)? | credentials?
          | (?:api|app|access|private|encryption|signing|account|master|auth)[_\ -]?key
          | (?:(?<![a-z])|access|auth|refresh|id|api|session|bot|bearer|csrf)token
          | 密码 | 密碼 | 口令 | 密钥 | 密鑰 | 令牌 | 秘钥 )
        (?:\ for\ [\w\ ]{1,24}|\ \(\w{1,12}\))?
        \\?["'\])]{0,2}[ \t]{0,3}$""",
    re.VERBOSE,
)
_WORDS_FOR_NO_VALUE = (
    r"none|null|nil|true|false|undefined|required|optional|string|str|bytes|int|any|text|hidden|masked|redacted"
    r"|example|changeme|placeholder|empty|missing|invalid|expired|password|passwd|token|secret|key|value|default"
    r"|your[_-]?\w*|my[_-]?\w*|x{3,}|\*+|\.{3,}|-+|env|self|this|config|settings|os|process|input|get\w*"
)
_NO_VALUE = re.compile(_WORDS_FOR_NO_VALUE, re.IGNORECASE)
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[A-Za-z_][\w.]*[(\[]|[$%{(\[@#]|[A-Za-z]+(?:_[A-Za-z]+)+$|_\w+$|https?://",
    re.ASCII,
)
_NOT_ONLY_LETTERS = re.compile(r"[\d!@#$%^&*+=~]")
_DIGIT = re.compile(r"\d")


def assigned_values(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of every value that is assigned to a secret in a folded text."""
    yield from _after_signs(text)
    yield from _after_verbs(text)
    for found in _SCHEME.finditer(text):
        if _is_credential(found["scheme"].lower(), found["value"]):
            yield found.span("value")
    for found in _OPTION.finditer(text):
        if not _is_no_value(found["value"]):
            yield found.span("value")


def _after_signs(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for sign in _SIGN.finditer(text):
        # A sign inside a value that was just found is part of the value.
        if sign.start() >= done and _names_secret(text, sign.start()):
            value = _VALUE.match(text, sign.end())
            if value and _is_assigned(value[0], sign["sign"], quoted=bool(sign["quote"])):
                yield value.span()
                done = value.end()


def _after_verbs(text: str) -> Iterator[tuple[int, int]]:
    for found in _VERB.finditer(text):
        # "the password is required" is a sentence; a value has digits or signs in it.
        value = found["value"].rstrip(".,;:!?)\"'")
        looks_right = len(value) >= 4 and _NOT_ONLY_LETTERS.search(value) and not _is_no_value(value)
        if looks_right and _names_secret(text, found.start()):
            yield found.start("value"), found.start("value") + len(value)


def _is_credential(scheme: str, value: str) -> bool:
    """Whether the word after `Basic` or `Bearer` is a credential rather than the next word of a sentence."""
    if scheme != "basic":
        return len(value) >= 16 and _DIGIT.search(value) is not None
    try:
        return b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False


def _names_secret(text: str, end: int) -> bool:
    before = text[max(0, end - _NAME_WINDOW) : end].lower()
    return _NAME.search(before) is not None


def _is_assigned(value: str, sign: str, *, quoted: bool) -> bool:
    if _is_no_value(value):
        return False
    if quoted or _DIGIT.search(value):
        return True
    # Unquoted letters: a value in `password=hunter`, a word in `password: please choose one`.
    return sign == "=" and value.isascii()


def _is_no_value(value: str) -> bool:
    return bool(_NO_VALUE.fullmatch(value) or _CODE.match(value) or PLACEHOLDER.search(value))
