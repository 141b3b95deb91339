"""All signals of a text, each with its place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from . import chinese, english_acts, english_orders, world
from .encodings import hidden_texts
from .folding import INVISIBLE, fold
from .rules import find_phrases, vocabulary
from .sending import find_sending
from .structure import structure_signals
from .verdict import Signal

_LONGEST_EXCERPT = 100
_QUOTES = frozenset("\"'`“‘「『《")
_HAN = re.compile("[\u4e00-\u9fff]")

# What makes an encoded text an attack when it is read.
_ORDERS = frozenset(
    ("ignore_instructions", "ignore_content", "new_instructions", "asks_for_secret", "asks_for_personal_data")
    + ("prompt_leak", "send_out", "do_anything_now", "no_limits", "persona", "tool_steering", "bulk_data")
    + ("dictates_answer", "secrecy")
)


def find_signals(text: str) -> list[Signal]:
    """Every signal of `text` in order of position; one per name and place."""
    found = dict.fromkeys((name, (start, end)) for name, start, end in _raw_signals(text))
    signals = [Signal(name, span, text[span[0] : span[1]][:_LONGEST_EXCERPT]) for name, span in found]
    if any(signal.name == "talks_about_attacks" for signal in signals):
        signals += [replace(signal, name="quoted") for signal in signals if _is_quoted(text, signal.span[0])]
    return sorted(signals, key=lambda signal: (signal.span, signal.name))


def _is_quoted(text: str, start: int) -> bool:
    return start > 0 and text[start - 1] in _QUOTES


def _raw_signals(text: str) -> Iterator[tuple[str, int, int]]:
    folded = fold(text)
    for name, start, end in _phrases(folded.text):
        yield name, *folded.span(start, end)
    yield from structure_signals(text, folded)
    visible = text if text.isascii() else INVISIBLE.sub(" ", text)
    for hidden in hidden_texts(visible):
        names = {name for name, _, _ in _phrases(fold(hidden.text).text)}
        if names & _ORDERS:
            yield "encoded_order", hidden.start, hidden.end


def _phrases(text: str) -> Iterator[tuple[str, int, int]]:
    words = vocabulary(text)
    yield from find_phrases(text, english_orders.RULES, words)
    yield from find_phrases(text, english_acts.RULES, words)
    yield from find_sending(text)
    if _HAN.search(text):
        yield from find_phrases(text, chinese.RULES, words)
    yield from find_phrases(text, world.rules_for(text), words)
