"""What screening says about a text."""

from __future__ import annotations

from dataclasses import dataclass

CHANNELS = ("user_input", "tool_output", "document", "memory")


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that speaks for or against an attack: `span` are character offsets into the screened text."""

    name: str
    span: tuple[int, int]
    excerpt: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one text.

    `score` is the model's probability of an attack, 0..1, of the worst window; `suspicious` says whether it
    reaches the threshold; `signals` are those of that window; `reason` names the weightiest for a person.
    """

    score: float
    suspicious: bool
    reason: str
    signals: tuple[Signal, ...]
