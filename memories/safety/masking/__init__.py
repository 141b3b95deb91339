"""Masks personal data and secrets before anything is stored, queued or logged.

`<EMAIL_1>`, `<PHONE_2>`, `<SECRET_1>`: a placeholder keeps the type and, inside one trace, the identity of
what it hides, so that a lesson drawn from the trace stays readable. Detection is by rule: a shape, a check
digit, or a word that announces the value; look-alikes (orders, hashes, versions, ISBN, timestamps) stay. The
time is linear in the length of the text.
"""

from __future__ import annotations

from typing import TypeVar, cast

from .addresses import find_emails, find_ibans, find_ips
from .context import fold
from .credentials import find_secrets
from .numbers import find_numbers
from .spans import PLACEHOLDER, Span, SpanType, keep_strongest
from .state import MaskState
from .values import JSON, masked_value, texts_in

__all__ = ["JSON", "MaskState", "Span", "SpanType", "find", "mask_text", "mask_value"]

Value = TypeVar("Value")  # any JSON value: what comes out has the shape of what went in

# Masking moves words nearer to numbers, which may make another one convincing; in practice two rounds settle.
_ROUNDS = 8


def find(text: str) -> list[Span]:
    """Every find in order of position, without overlaps. Placeholders in the text are left alone."""
    folded = fold(text)
    spans = [
        *find_secrets(folded),
        *find_emails(folded),
        *find_ibans(folded),
        *find_numbers(folded),
        *find_ips(folded),
    ]
    if not spans:
        return []
    taken = [found.span() for found in PLACEHOLDER.finditer(text)]
    kept = keep_strongest(spans, taken)
    if folded is text:
        return kept
    return [Span(span.start, span.end, span.type, text[span.start : span.end]) for span in kept]


def mask_text(text: str, state: MaskState | None = None) -> str:
    """The text with every find replaced by its placeholder. Masking masked text changes nothing."""
    state = MaskState() if state is None else state
    state.reserve(text)
    for _ in range(_ROUNDS):
        spans = find(text)
        if not spans:
            break
        text = _replace(text, spans, state)
    return text


def _replace(text: str, spans: list[Span], state: MaskState) -> str:
    parts: list[str] = []
    done = 0
    for span in spans:
        parts += (text[done : span.start], state.placeholder(span))
        done = span.end
    return "".join((*parts, text[done:]))


def mask_value(value: Value, state: MaskState | None = None) -> Value:
    """A JSON value with every string in it masked, dict keys included; the value given is left as it is.

    What stands under a key such as `password`, `api_key` or `authorization` is replaced whole.
    """
    state = MaskState() if state is None else state
    for text in texts_in(cast(JSON, value)):
        state.reserve(text)
    return cast(Value, masked_value(cast(JSON, value), state, mask_text))  # masking keeps every shape
