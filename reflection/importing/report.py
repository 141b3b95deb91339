"""What an import took, what was there already, what it left out and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 20


@dataclass(slots=True)
class Report:
    """Counts by kind of row or item. Examples say where in the file and why, never what stood there."""

    format: str = ""
    taken: Counter[str] = field(default_factory=Counter)
    already_there: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    held_back: Counter[str] = field(default_factory=Counter)  # taken, but in quarantine
    examples: list[str] = field(default_factory=list)

    def leave_out(self, kind: str, reason: str, where: str) -> None:
        """Count one thing that is not taken, and keep where it stood among the first few."""
        self.left_out[f"{kind}: {reason}"] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{where}: {kind}, {reason}")

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "format": self.format,
            "taken": dict(+self.taken),
            "already_there": dict(+self.already_there),
            "held_back": dict(+self.held_back),
            "left_out": dict(+self.left_out),
            "examples": self.examples,
        }
        return {name: value for name, value in told.items() if value}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Report:
        """The report of an earlier turn, to be carried on."""
        counts = {name: Counter(told.get(name, {})) for name in ("taken", "already_there", "left_out", "held_back")}
        return cls(format=told.get("format", ""), examples=list(told.get("examples", [])), **counts)
