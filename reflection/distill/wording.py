"""Small words for lessons and episodes: which language, shortening, and placeholders for run ids."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from reflection.distill.calls import Attempt, is_call
from reflection.enums import Role
from reflection.forms import TraceForm

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z]")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？；]|\n")
# Ids that never mean anything outside their own run.
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_TEMPORARY_PATH = re.compile(r"(?:[A-Za-z]:)?[\w./\\-]*[0-9a-f]{16,}[\w./\\-]*")
_TAILED_ID = re.compile(r"\b([A-Za-z][A-Za-z]*(?:_[A-Za-z]+)*)_\d{4,}\b")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b(?:T[\d:.]+Z?)?")
_LONG_NUMBER = re.compile(r"#?\b[A-Z]{0,2}\d{6,}\b")
_ID_VALUE = re.compile(r"(?=\S*\d)[#A-Za-z0-9_-]{4,40}|[\w.+-]+@[\w.-]+|<[A-Z_]+_\d+>")
_PARTS = ("situation", "decision", "outcome")  # of a lesson's structure
_PLAIN_VALUE = re.compile(r"[\d.,]+|\d{4}-\d{2}-\d{2}.*|v?\d+(?:\.\d+)+")


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
    """Cut to at most `limit` characters, at a sentence's end if one is near, else at a word's."""
    text = one_line(text)
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, limit // 3, limit)]
    if ends:
        return text[: ends[-1]].strip()
    space = text.rfind(" ", limit // 2, limit - 1)
    return text[: space if space > 0 else limit - 1].rstrip(" ,;:，、") + "…"


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
    return {
        key: value for key, value in tidy.items() if value not in ("", None) and value != [] and value != {}
    }


def show(value: object, limit: int = 60) -> str:
    """Return an argument's value as a reader would write it."""
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return shorten(text, limit)


def call_told(attempt: Attempt, limit: int = 90) -> str:
    """Return a call as `tool(argument=value, …)`, shortened."""
    values = ", ".join(f"{name}={show(value, 30)}" for name, value in attempt.arguments.items())
    return shorten(f"{attempt.tool}({values})", limit)


def run_ids(trace: TraceForm) -> dict[str, str]:
    """Return id-like values of this run's tool arguments with the placeholder that stands for each."""
    found: dict[str, str] = {}
    for step in trace.steps:
        if is_call(step):
            for name, value in leaves(step.arguments or {}):
                if isinstance(value, str) and looks_like_id(value):
                    found.setdefault(value, f"<{_last_name(name)}>")
    return found


def looks_like_id(value: object) -> bool:
    """Return whether a value names one particular thing (an order, a user) rather than saying something."""
    return isinstance(value, str) and bool(_ID_VALUE.fullmatch(value)) and not _PLAIN_VALUE.fullmatch(value)


def generalise(text: str, ids: Mapping[str, str], *, dates: bool = True) -> str:
    """Put placeholders where a text names things that exist in this run only, `dates` among them."""
    for value in sorted(ids, key=len, reverse=True):
        if value in text:
            text = re.sub(rf"(?<![\w#-]){re.escape(value)}(?![\w-])", _placeholder(value, ids[value]), text)
    text = _TEMPORARY_PATH.sub("<path>", _UUID.sub("<id>", text))
    text = _TAILED_ID.sub(r"\1_<id>", text)
    return _LONG_NUMBER.sub("<id>", _DATE.sub("<date>", text) if dates else text)


def _placeholder(value: str, name: str) -> str:
    """Keep the telling stem of an id: `gift_card_123456` is a gift card, whatever the argument's name."""
    tailed = _TAILED_ID.fullmatch(value)
    return f"{tailed.group(1)}_<id>" if tailed and not name.startswith("<user") else name


def leaves(value: object, path: str = "") -> list[tuple[str, object]]:
    """Flatten arguments into (path, value) pairs: `flights[0].date`, in order."""
    if isinstance(value, Mapping) and value:
        return [leaf for key in value for leaf in leaves(value[key], f"{path}.{key}" if path else str(key))]
    if isinstance(value, (list, tuple)) and value:
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, f"{path}[{i}]")]
    return [(path, value)]


def _last_name(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path).rsplit(".", 1)[-1] or "value"
