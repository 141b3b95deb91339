"""Small words for lessons and episodes: which language, shortening, quoting, showing calls and values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from reflection.distill.calls import Attempt
from reflection.enums import Role
from reflection.forms import TraceForm

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z]")
_SENTENCE_END = re.compile(r"(?<![\s:：]\d)[.!?](?=\s|$)|[。！？；]|\n")  # not after the number of a list's entry
_PARTS = ("situation", "decision", "outcome")  # of a lesson's structure
_CLOSERS = {"(": ")", "[": "]", "{": "}", "“": "”", "‘": "’", "「": "」", "《": "》", "（": "）", "【": "】"}
_SAYS_ERROR = re.compile(r"^(?:error|错误|报错|出错)\s*[:：]\s*", re.IGNORECASE)
_INNER = str.maketrans({"“": "‘", "”": "’"})


def is_chinese(trace: TraceForm) -> bool:
    """Return whether the people in this trace speak Chinese: its task, or else its user's words."""
    said = trace.task or " ".join(step.content for step in trace.steps if step.role == Role.USER)
    cjk = len(_CJK.findall(said))
    # One Chinese character carries about as much as three letters.
    return cjk >= 2 and cjk * 3 >= len(_LATIN.findall(said))


def either(zh: bool, chinese: str, english: str) -> str:
    """Return the wording in the language of the trace."""
    return chinese if zh else english


def one_line(text: str) -> str:
    """Collapse white space."""
    return " ".join(text.split())


def shorten(text: str, limit: int) -> str:
    """Cut to at most `limit` characters, at a sentence's end if one is near, else at a word's.

    Brackets and quotation marks that the cut left open are closed again.
    """
    text = one_line(text)
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, limit // 3, limit)]
    if ends and not _left_open(text[: ends[-1]]):
        return text[: ends[-1]].strip()
    for room in range(limit - 1, 0, -1):
        space = text.rfind(" ", limit // 2, room)
        head = text[: space if space > 0 else room].rstrip(" ,;:，、([{“‘（")
        closers = _left_open(head)
        if len(head) + 1 + len(closers) <= limit:
            return f"{head}…{closers}"
    return text[:limit]


def _left_open(text: str) -> str:
    """Return the signs that close what `text` opened, innermost first."""
    waiting: list[str] = []
    for char in text:
        if char in _CLOSERS:
            waiting.append(_CLOSERS[char])
        elif waiting and char == waiting[-1]:
            waiting.pop()
    closers = "".join(reversed(waiting))
    for sign in ('"', "`"):
        closers = sign + closers if text.count(sign) % 2 else closers
    return closers


def quoted(text: str) -> str:
    """Return words of others as they stand between “ and ”: without "Error:", a full stop or marks inside."""
    return _SAYS_ERROR.sub("", one_line(text)).rstrip(".。!！ ").translate(_INNER)


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence of a text, shortened to `limit` characters."""
    text = text.strip()
    end = next((match.end() for match in _SENTENCE_END.finditer(text) if match.end() > 15), len(text))
    return shorten(text[:end], limit)


def ended(text: str) -> str:
    """Close a sentence with a full stop unless it ends in a mark already."""
    mark = "。" if _CJK.search(text[-8:]) else "."
    return text if not text or text[-1] in ".!?。！？…" else text + mark


def settings(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of an environment, shortened: what a lesson's situation needs of it."""
    plain = {name: value for name, value in environment.items() if isinstance(value, (str, int, float, bool))}
    return {
        name: show(value, 100) if isinstance(value, str) else value
        for name, value in list(plain.items())[:10]
        if 0 < len(name) <= 60
    }


def weight(text: str) -> int:
    """Return how much a text says, in letters: a Chinese character counts as three."""
    return sum(3 if _CJK.match(char) else 1 for char in text.strip())


def filled(structure: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what says nothing: empty texts, lists and objects, at the top and one level down."""
    tidy = {k: filled(v) if isinstance(v, Mapping) and k in _PARTS else v for k, v in structure.items()}
    return {key: value for key, value in tidy.items() if value not in ("", None) and value != [] and value != {}}


def show(value: object, limit: int = 60) -> str:
    """Return an argument's value as a reader would write it."""
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return shorten(text, limit)


def call_told(attempt: Attempt, limit: int = 90) -> str:
    """Return a call as `tool(argument=value, …)`, as many arguments as fit."""
    told: list[str] = []
    room = limit - len(attempt.tool) - 5
    for name, value in attempt.arguments.items():
        part = f"{name}={_brief(value)}"
        if len(part) > room:
            told.append("…")
            break
        told.append(part)
        room -= len(part) + 2
    return f"{attempt.tool}({', '.join(told)})"


def _brief(value: object) -> str:
    """Return a value in at most about thirty characters; what is nested or long only by its kind."""
    if isinstance(value, (list, tuple)) and len(show(value)) > 30:
        return "[…]"
    if isinstance(value, Mapping) and len(show(value)) > 30:
        return "{…}"
    return show(value, 30)


def leaves(value: object, path: str = "") -> list[tuple[str, object]]:
    """Flatten arguments into (path, value) pairs: `flights[0].date`, in order."""
    if isinstance(value, Mapping) and value:
        return [leaf for key in value for leaf in leaves(value[key], f"{path}.{key}" if path else str(key))]
    if isinstance(value, (list, tuple)) and value:
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, f"{path}[{i}]")]
    return [(path, value)]
