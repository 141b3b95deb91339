"""From signals to a score: the worst window of a text under a small linear model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from .verdict import Signal

WINDOW = 700  # characters; an instruction and what belongs to it stand close together

# Signals that mean something only in text from outside: a user may ask for anything.
_ONLY_FROM_OUTSIDE = frozenset(("acts_on_my_things", "please_act", "tool_steering"))
# Signals that mean more there.
_MORE_FROM_OUTSIDE = frozenset(("send_out", "steers_the_answer", "skips_checks"))
_ONES_THINGS = frozenset(("please_act", "acts_on_my_things"))
# What every lesson about tools says.
_USUAL_IN_MEMORY = frozenset(("tool_steering", "before_anything"))
_SECRETS = frozenset(("asks_for_secret", "asks_for_personal_data"))


def features(names: Iterable[str], channel: str) -> frozenset[str]:
    """The features of a window: the names of its signals, and the few combinations that mean more."""
    found = frozenset(names) - (_USUAL_IN_MEMORY if channel == "memory" else frozenset())
    more = {"secret_in_a_story"} if "hypothetical" in found and found & _SECRETS else set()
    if "quoted" in found and "talks_about_attacks" in found:
        more.add("quoted_in_discussion")
    if channel != "user_input":
        if found >= _ONES_THINGS:
            more.add("please_act_on_my_things")
        more |= {f"{name}_from_outside" for name in found & (_ONLY_FROM_OUTSIDE | _MORE_FROM_OUTSIDE)}
    return (found - _ONLY_FROM_OUTSIDE - {"quoted"}) | more


def windows(signals: Sequence[Signal]) -> list[tuple[Signal, ...]]:
    """The groups of signals that begin within one window; `signals` are in order of position.

    Every group is as large as can be; a text without signals has one empty group.
    """
    groups = []
    last_end = 0
    for first, signal in enumerate(signals):
        end = first
        while end < len(signals) and signals[end].span[0] < signal.span[0] + WINDOW:
            end += 1
        if end > last_end:
            groups.append(tuple(signals[first:end]))
            last_end = end
    return groups or [()]


def log_odds(found: Iterable[str], weights: Mapping[str, float], bias: float) -> float:
    """Bias plus the weights of the features that are there; unknown features weigh nothing."""
    return bias + sum(weights.get(name, 0.0) for name in found)


def probability(odds: float) -> float:
    """The logistic function, without overflow."""
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def worst_window(
    signals: Sequence[Signal], channel: str, weights: Mapping[str, float], bias: float
) -> tuple[float, tuple[Signal, ...]]:
    """The highest log-odds of any window, and the signals of that window."""
    scored = [
        (log_odds(features((signal.name for signal in group), channel), weights, bias), group)
        for group in windows(signals)
    ]
    return max(scored, key=lambda pair: pair[0])
