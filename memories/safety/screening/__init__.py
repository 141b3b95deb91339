"""Screens text for injection and poisoning before anything is learnt from it.

Named signals are found all over the text: in English, in Chinese, in nineteen more languages by their
commonest phrases, and in encoded or hidden text. A small linear model with a readable table of weights judges
every window of 700 characters, and the worst one is the verdict: an attack is short and the document around
it long. The time is linear in the length of the text.
"""

from __future__ import annotations

from .glossary import MEANING
from .model import features, probability, worst_window
from .signals import find_signals
from .verdict import CHANNELS, Signal, Verdict
from .weights import BIAS, THRESHOLD, WEIGHTS

__all__ = ["CHANNELS", "Signal", "Verdict", "find_signals", "screen"]

_NAMED_IN_REASON = 3


def screen(text: str, *, channel: str = "document") -> Verdict:
    """The verdict on one text.

    `channel` says where it comes from: `user_input`, `tool_output`, `document` or `memory`. What a user may
    ask for is suspicious when a tool's output asks for it. Raises ValueError for another channel.
    """
    if channel not in CHANNELS:
        raise ValueError(f"unknown channel {channel!r}; one of {', '.join(CHANNELS)}")
    odds, signals = worst_window(find_signals(text), channel, WEIGHTS, BIAS)
    score = round(probability(odds), 4)
    return Verdict(score, score >= THRESHOLD, _reason(signals, channel), signals)


def _reason(signals: tuple[Signal, ...], channel: str) -> str:
    """The weightiest signals in words, or an empty string when nothing speaks for an attack."""
    weights: dict[str, float] = {}
    for feature in features((signal.name for signal in signals), channel):
        name = feature.removesuffix("_from_outside")
        weights[name] = weights.get(name, 0.0) + WEIGHTS.get(feature, 0.0)
    telling = sorted((name for name in weights if weights[name] > 0), key=lambda name: (-weights[name], name))
    return "; ".join(MEANING[name] for name in telling[:_NAMED_IN_REASON])
