"""The normal form of a trace and of what is distilled from it.

Plain frozen dataclasses without the ORM: everything pure in this app (triggers, prepare, masking,
screening, the distillers, the gates) takes and returns these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class StepForm:
    """One step of a trace. `sequence` is its 0-based place; quotes index into `text`."""

    sequence: int
    role: str  # enums.Role
    kind: str  # enums.StepKind
    content: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    is_error: bool = False
    at: datetime | None = None

    @property
    def text(self) -> str:
        """What a reader sees of this step, and what evidence spans are counted in (characters)."""
        return step_text(self.content, self.tool, self.arguments)


def step_text(content: str, tool: str, arguments: Mapping[str, Any] | None) -> str:
    """Return the step's content, or for a bare tool call `tool({"argument": …})`."""
    if content or not (tool or arguments):
        return content
    return f"{tool}({json.dumps(arguments or {}, ensure_ascii=False, sort_keys=True)})"


@dataclass(frozen=True, slots=True)
class TraceForm:
    """One task as an agent lived it. `outcome` is one of `enums.END_STATES`."""

    task: str
    outcome: str
    steps: tuple[StepForm, ...]
    task_type: str = ""
    result: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    remember: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """Verbatim evidence: `steps[step].text[start:end] == text`, in characters."""

    step: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A conclusion that a distiller proposes; the gates decide.

    `confidence` is the distiller's own estimate in 0..1 (the server caps it by trust);
    `structure` holds the fields of its kind as in `memories.structures`.
    """

    kind: str  # memories.enums.Kind
    tier: str  # memories.enums.Tier
    content: str
    structure: Mapping[str, Any]
    confidence: float
    quotes: tuple[Quote, ...]
    failure_class: str = "none"  # memories.enums.FailureClass
    tags: tuple[str, ...] = ()
    operation: str = "add"  # enums.Operation: what it does to the known memory `about`
    about: int | None = None  # its place in what the distiller was told is known


@dataclass(frozen=True, slots=True)
class Distilled:
    """What one run of a distiller produced and what it cost."""

    candidates: tuple[Candidate, ...]
    distiller: str  # "rules" or "model"
    rejected: tuple[tuple[str, str], ...] = ()  # (content, enums.RejectReason)
    model: str = ""
    prompt_version: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None  # None: the price is not known
