"""The icon and the tone of every state that a page shows.

A state is never told by colour alone: each has an icon from `static/icons` and its word from the
glossary. A tone is one of approve, demote, warn, info, or empty for neutral.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import TextChoices

from hindsight_site.accounts.enums import DeliveryStatus, JobStatus, TeamRole
from memories.enums import Kind, RecallStatus, RelationKind, ScopeKind, Status, Tier, Trust
from reflection.enums import (
    BatchStatus,
    Decision,
    ItemState,
    ReflectionStatus,
    Role,
    StepKind,
    Stratum,
    TraceStatus,
)


@dataclass(frozen=True)
class Mark:
    """How one state looks: `icon` names a file in `static/icons`, `word` is what a reader sees."""

    icon: str
    word: str
    tone: str = ""


LOOKS: dict[str, tuple[type[TextChoices], dict[str, tuple[str, str]]]] = {
    "tier": (
        Tier,
        {
            Tier.WORKING: ("tier-working", ""),
            Tier.EPISODIC: ("tier-episodic", ""),
            Tier.SEMANTIC: ("tier-semantic", ""),
        },
    ),
    "kind": (
        Kind,
        {
            Kind.FACT: ("kind-fact", ""),
            Kind.PREFERENCE: ("kind-preference", ""),
            Kind.EXPERIENCE: ("kind-experience", ""),
            Kind.TASK: ("kind-task", ""),
            Kind.RELATION: ("kind-relation", ""),
        },
    ),
    "status": (
        Status,
        {
            Status.CANDIDATE: ("candidate", "info"),
            Status.ACTIVE: ("active", "approve"),
            Status.DEMOTED: ("demoted", "demote"),
            Status.SUPERSEDED: ("superseded", ""),
            Status.ARCHIVED: ("archived", ""),
            Status.QUARANTINED: ("quarantined", "warn"),
            Status.REJECTED: ("rejected", "demote"),
            Status.FORGOTTEN: ("forgotten", ""),
        },
    ),
    "trust": (
        Trust,
        {
            Trust.HUMAN: ("person", ""),
            Trust.VERIFIED: ("check", ""),
            Trust.AGENT: ("agent", ""),
            Trust.EXTERNAL: ("external", ""),
        },
    ),
    "scope": (ScopeKind, {ScopeKind.PRIVATE: ("lock", ""), ScopeKind.SHARED: ("people", "")}),
    "recall": (
        RecallStatus,
        {RecallStatus.MATCHED: ("recall", "approve"), RecallStatus.NO_MATCH: ("nothing", "")},
    ),
    "relation": (
        RelationKind,
        {
            RelationKind.SUPPORTS: ("check", "approve"),
            RelationKind.CONTRADICTS: ("warning", "warn"),
            RelationKind.SUPERSEDES: ("superseded", ""),
            RelationKind.DISTILLED_FROM: ("reflect", ""),
            RelationKind.PREREQUISITE_OF: ("arrow-right", ""),
            RelationKind.RELATES_TO: ("kind-relation", ""),
        },
    ),
    "role": (
        Role,
        {
            Role.USER: ("person", ""),
            Role.ASSISTANT: ("agent", ""),
            Role.SYSTEM: ("system", ""),
            Role.TOOL: ("tool", ""),
        },
    ),
    "step": (
        StepKind,
        {
            StepKind.MESSAGE: ("message", ""),
            StepKind.THOUGHT: ("thought", ""),
            StepKind.TOOL_CALL: ("terminal", ""),
            StepKind.TOOL_RESULT: ("result", ""),
            StepKind.OBSERVATION: ("eye", ""),
        },
    ),
    "trace": (
        TraceStatus,
        {
            TraceStatus.OPEN: ("open", "info"),
            TraceStatus.SUCCEEDED: ("active", "approve"),
            TraceStatus.FAILED: ("failed", "demote"),
            TraceStatus.INTERRUPTED: ("interrupted", "warn"),
        },
    ),
    "reflection": (
        ReflectionStatus,
        {
            ReflectionStatus.QUEUED: ("queued", "info"),
            ReflectionStatus.RUNNING: ("running", "info"),
            ReflectionStatus.STORED: ("active", "approve"),
            ReflectionStatus.NOTHING_NEW: ("nothing", ""),
            ReflectionStatus.REJECTED: ("rejected", "warn"),
            ReflectionStatus.SKIPPED: ("skipped", ""),
            ReflectionStatus.FAILED: ("failed", "demote"),
        },
    ),
    "batch": (BatchStatus, {BatchStatus.OPEN: ("open", "info"), BatchStatus.CLOSED: ("check", "")}),
    "stratum": (
        Stratum,
        {
            Stratum.RANDOM: ("dot", ""),
            Stratum.MOST_RECALLED: ("recall", ""),
            Stratum.LOW_CONFIDENCE: ("question", ""),
            Stratum.FLAGGED: ("flag", "warn"),
            Stratum.CANARY: ("key", ""),
        },
    ),
    "item": (
        ItemState,
        {
            ItemState.PENDING: ("candidate", ""),
            ItemState.DECIDED: ("check", "approve"),
            ItemState.CONFLICTED: ("warning", "warn"),
            ItemState.RESOLVED: ("check", "approve"),
            ItemState.VOID: ("forgotten", ""),
        },
    ),
    "decision": (
        Decision,
        {
            Decision.APPROVE: ("check", "approve"),
            Decision.DEMOTE: ("demoted", "demote"),
            Decision.EDIT: ("edit", "info"),
            Decision.CANNOT_TELL: ("question", ""),
            Decision.SENSITIVE: ("quarantined", "warn"),
        },
    ),
    "job": (
        JobStatus,
        {
            JobStatus.QUEUED: ("queued", ""),
            JobStatus.RUNNING: ("running", "info"),
            JobStatus.DONE: ("check", "approve"),
            JobStatus.FAILED: ("failed", "demote"),
            JobStatus.CANCELLED: ("cross", ""),
        },
    ),
    "delivery": (
        DeliveryStatus,
        {
            DeliveryStatus.QUEUED: ("queued", ""),
            DeliveryStatus.RUNNING: ("running", "info"),
            DeliveryStatus.DELIVERED: ("check", "approve"),
            DeliveryStatus.FAILED: ("failed", "demote"),
        },
    ),
    "membership": (
        TeamRole,
        {
            TeamRole.OWNER: ("key", ""),
            TeamRole.ADMIN: ("admin", ""),
            TeamRole.REVIEWER: ("review", ""),
            TeamRole.VIEWER: ("eye", ""),
        },
    ),
}


def mark_of(family: str, value: str) -> Mark:
    """Return the look of `value` in a family of `LOOKS`. KeyError or ValueError when there is none."""
    glossary, looks = LOOKS[family]
    icon, tone = looks[value]
    return Mark(icon=icon, word=str(glossary(value).label), tone=tone)
