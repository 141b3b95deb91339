"""Walks a JSON value and masks what is in it, without recursion: any depth of nesting will do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from .spans import PLACEHOLDER, Span, SpanType
from .state import MaskState

JSON: TypeAlias = "str | int | float | bool | None | list[JSON] | dict[str, JSON]"

_SECRET_KEY = re.compile(
    r"(?:password|passwd|pwd|passphrase|passcode|secret|token|apikey|accesskey|accesskeyid|privatekey|secretkey"
    r"|signingkey|encryptionkey|authkey|authorization|cookie|credentials?|connectionstring)$"
    r"|^(?:pass|pin|pw|auth|jwt|bearer|dsn)$|密码$|密碼$|口令$|密钥$|令牌$"
)
_NUMBERS = range(10**6, 10**19)  # phones have seven digits and more, cards up to nineteen
_LONGEST_LABELLED = 64  # characters; a longer value brings its own context
_NOT_LETTERS = re.compile(r"[\W_]+")


def is_secret_key(name: str) -> bool:
    """Whether a key announces a secret: `DB_PASSWORD`, `x-api-key`, `accessToken`; not `max_tokens`."""
    return _SECRET_KEY.search(_NOT_LETTERS.sub("", name).casefold()) is not None


def texts_in(value: JSON) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    waiting: list[JSON] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            yield from item
            waiting += item.values()


def masked_value(value: JSON, state: MaskState, mask_text: Callable[[str, MaskState], str]) -> JSON:
    """A copy of `value`, its strings masked by `mask_text` in document order, secrets masked whole."""
    root: list[JSON] = [None]
    waiting: list[tuple[JSON, Any, Any, str]] = [(value, root, 0, "")]  # what, its new holder, where in it, key
    while waiting:
        item, holder, place, label = waiting.pop()
        if is_secret_key(label) and _hides_something(item):
            holder[place] = _masked_whole(item, state)
        elif isinstance(item, list):
            holder[place] = items = [None] * len(item)
            waiting += [(item[i], items, i, label) for i in reversed(range(len(item)))]
        elif isinstance(item, dict):
            copy: dict[str, JSON] = {}
            holder[place] = copy
            keys = [_new_key(name, copy, state, mask_text) for name in item]
            waiting += [(item[n], copy, k, k) for n, k in reversed(list(zip(item, keys, strict=True)))]
        else:
            holder[place] = _masked_leaf(item, label, state, mask_text)
    return root[0]


def _new_key(name: str, copy: dict[str, JSON], state: MaskState, mask_text: Callable[[str, MaskState], str]) -> str:
    """The masked key, given its place in the copy. Two spellings of one value stay two keys."""
    key = free = mask_text(name, state)
    count = 1
    while free in copy:
        count += 1
        free = f"{key} ({count})"
    copy[free] = None
    return free


def _hides_something(value: JSON) -> bool:
    """Whether a value can be a secret: not a flag, not empty, not the JSON schema of a parameter so named."""
    if isinstance(value, dict):
        return bool(value) and value.get("type") not in ("string", "integer", "number", "object", "array")
    return value is not None and not isinstance(value, bool) and value not in ("", [])


def _masked_whole(value: JSON, state: MaskState) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if PLACEHOLDER.fullmatch(text):
        return text
    return state.placeholder(Span(0, len(text), SpanType.SECRET, text))


def _masked_leaf(item: JSON, label: str, state: MaskState, mask_text: Callable[[str, MaskState], str]) -> JSON:
    """A string, or a number that is a phone or a card written without quotes; its key says what it is."""
    if isinstance(item, str):
        text = item
    elif isinstance(item, int) and item in _NUMBERS:
        text = str(item)
    else:
        return item
    lead = f"{label}: " if label and len(text) <= _LONGEST_LABELLED else ""
    masked = mask_text(lead + text, state)
    masked = masked.removeprefix(lead) if masked.startswith(lead) else mask_text(text, state)
    return item if masked == text else masked
