"""What is to be remembered, and what became of it: the forms that the writers take and return."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memories.enums import FailureClass, Tier, Trust
from memories.models import Evidence, Memory
from memories.sources import source_of


@dataclass(frozen=True, slots=True)
class EvidenceDraft:
    """A quote to keep beside a memory: `quote` is the step's text from `start` to `end`."""

    trace_id: uuid.UUID
    step_id: uuid.UUID
    step_sequence: int
    role: str
    start: int
    end: int
    quote: str
    trace_digest: str = ""
    witness_id: uuid.UUID | None = None  # the agent whose own token sent the trace

    @classmethod
    def of(cls, row: Evidence) -> EvidenceDraft:
        """The draft of a quote that stands beside another memory already."""
        return cls(
            trace_id=row.trace_id,
            step_id=row.step_id,
            step_sequence=row.step_sequence,
            role=row.role,
            start=row.start,
            end=row.end,
            quote=row.quote,
            trace_digest=row.trace_digest,
            witness_id=row.witness_id,
        )

    @property
    def source(self) -> str:
        """What it counts as, beside other quotes."""
        return source_of(self.trace_id, self.trace_digest)


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be remembered. `trust` is set by the calling code, never from a payload."""

    content: str
    kind: str
    tier: str = Tier.EPISODIC
    structure: dict[str, Any] = field(default_factory=dict)
    confidence: float = 0.5
    trust: str = Trust.AGENT
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    failure_class: str = FailureClass.NONE
    importance: float = 0.5
    ttl_seconds: int | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    occurred_at: datetime | None = None
    actor: str = ""
    session_id: str = ""
    sequence: int | None = None
    source: str = "api"
    distiller: str = ""
    model: str = ""
    prompt_version: str = ""
    evidence: tuple[EvidenceDraft, ...] = ()
    quarantine_reason: str = ""  # set by screening: the memory waits for a person
    proposed: bool = False  # a conclusion from other memories: a candidate until a person agrees


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory that now holds it, and whether it was there before."""

    memory: Memory
    merged: bool
