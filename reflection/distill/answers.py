"""Getting the JSON object out of what a model wrote, however it was wrapped."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_ANSWER_CHARS = 400_000
_MAX_STARTS = 40  # places in a text where an object is looked for

# What a reasoning model thought aloud first; some servers leave out the opening tag.
_THINKING = re.compile(r"\A(?!\s*[{\[`]).*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_BRACKETS = re.compile(r"[{\[]")
_OBJECT = re.compile(r"\{")


class AnswerError(ValueError):
    """The text holds no usable JSON object; the message says what to tell the model."""


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a model's answer.

    Takes an object alone, inside a code fence, or after and before prose or thinking; with trailing
    commas; a bare list becomes `{"candidates": [...]}`. NUL characters and broken surrogates are removed
    from every text. Raises `AnswerError`.
    """
    if len(text) > MAX_ANSWER_CHARS:
        raise AnswerError(f"The answer is longer than {MAX_ANSWER_CHARS} characters.")
    text = _THINKING.sub("", text.replace("\x00", "").lstrip("\ufeff")).strip()
    if not text:
        raise AnswerError("The answer is empty.")
    try:
        found = _clean(_found(text))
    except RecursionError as error:
        raise AnswerError("The answer is nested too deeply.") from error
    if found is not None:
        return found
    if _BRACKETS.search(text):
        raise AnswerError("The answer is not valid JSON, or it is cut off.")
    raise AnswerError("The answer holds no JSON object.")


def _found(text: str) -> dict[str, Any] | None:
    """The whole answer, or what is fenced, or the first object with candidates anywhere in the text."""
    for piece in (text, *(match[1] for match in _FENCED.finditer(text))):
        value = _decoded(piece, whole=True)
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            value = {"candidates": value}
        if isinstance(value, dict):
            return value
    for match, _ in zip(_OBJECT.finditer(text), range(_MAX_STARTS), strict=False):
        value = _decoded(text[match.start() :], whole=False)
        if isinstance(value, dict) and "candidates" in value:
            return value
    return None


def _decoded(text: str, *, whole: bool) -> Any:
    """The JSON value at the start of `text`, or None; with `whole`, nothing may follow it."""
    decoder = json.JSONDecoder(strict=False)  # control characters inside texts are let pass
    for read in (str.strip, _without_trailing_commas):
        piece = read(text).strip()
        try:
            value, end = decoder.raw_decode(piece)
        except (ValueError, RecursionError):
            continue
        if not whole or end == len(piece):
            return value
    return None


def _without_trailing_commas(text: str) -> str:
    """Drop every comma that stands before a closing bracket, outside of strings."""
    kept: list[str] = []
    in_string = escaped = False
    for char in text:
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "}]":
            while kept and kept[-1].isspace():
                kept.pop()
            if kept and kept[-1] == ",":
                kept.pop()
        kept.append(char)
    return "".join(kept)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return value
