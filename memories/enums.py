"""The glossary: every state, tier, kind and label a memory can carry, one line each.

Django's `TextChoices` so that models, serializers, pages and docs share the same words.
"""

from django.db.models import TextChoices


class Tier(TextChoices):
    """How long a memory is meant to live."""

    WORKING = "working", "Working"  # inside one session, gone after its TTL
    EPISODIC = "episodic", "Episodic"  # what happened once; decays
    SEMANTIC = "semantic", "Semantic"  # held more than once, or a person approved it


class Kind(TextChoices):
    """What sort of conclusion it is; each kind has its own structure."""

    FACT = "fact", "Fact"  # subject, predicate, object
    PREFERENCE = "preference", "Preference"  # holder, preference, strength
    EXPERIENCE = "experience", "Lesson"  # situation, decision, outcome, lesson
    TASK = "task", "Episode"  # goal, tools, steps that worked and failed, result
    RELATION = "relation", "Relation"  # subject, relation, object


class Status(TextChoices):
    """Where a memory stands. `memories.policies.TRANSITIONS` says which moves are valid."""

    CANDIDATE = "candidate", "Candidate"  # distilled, not yet let in
    ACTIVE = "active", "Active"  # recalled by default
    DEMOTED = "demoted", "Demoted"  # a person said no; kept in history
    SUPERSEDED = "superseded", "Superseded"  # replaced by another memory
    ARCHIVED = "archived", "Archived"  # faded; recalled on request, restored in one call
    QUARANTINED = "quarantined", "Quarantined"  # suspicious; a person decides
    REJECTED = "rejected", "Rejected"  # refused for good
    FORGOTTEN = "forgotten", "Forgotten"  # a tombstone: no text, vector or evidence


class Trust(TextChoices):
    """Where a memory comes from. Set by the server, never by a payload."""

    HUMAN = "human", "Human"  # written or approved by a person
    VERIFIED = "verified", "Verified"  # its own outcome was confirmed
    AGENT = "agent", "Agent"  # an agent concluded it
    EXTERNAL = "external", "External"  # third-party text or tool output


class FailureClass(TextChoices):
    """Why something failed. Only `permanent` may become semantic."""

    NONE = "none", "None"
    TRANSIENT = "transient", "Transient"  # timeout, rate limit, network
    PERMANENT = "permanent", "Permanent"  # wrong argument, removed API
    ENVIRONMENT = "environment", "Environment"  # only true on that machine or network
    USER_ERROR = "user_error", "User error"
    IMPOSSIBLE = "impossible", "Impossible"  # the task itself


class ScopeKind(TextChoices):
    """Who shares a memory space."""

    PRIVATE = "private", "Private"  # exactly one agent's own
    SHARED = "shared", "Shared"  # named; read and written by grant


class ReviewMode(TextChoices):
    """Whether new memories of a scope wait for a person."""

    SAMPLED = "sampled", "Sampled weekly"  # active at once; the weekly sample checks
    GATE_LOW_CONFIDENCE = "gate_low_confidence", "Hold back low confidence"
    GATE_ALL = "gate_all", "Hold back everything"


class RelationKind(TextChoices):
    """A directed edge between two memories."""

    SUPPORTS = "supports", "supports"
    CONTRADICTS = "contradicts", "contradicts"
    SUPERSEDES = "supersedes", "supersedes"
    DISTILLED_FROM = "distilled_from", "distilled from"
    PREREQUISITE_OF = "prerequisite_of", "prerequisite of"
    RELATES_TO = "relates_to", "relates to"


class RecallStatus(TextChoices):
    """How a recall ended."""

    MATCHED = "matched", "Matched"
    NO_MATCH = "no_match", "No match"


class DemoteReason(TextChoices):
    """Why a memory was demoted; keys 1 to 6 on the review page."""

    UNSUPPORTED = "unsupported", "Unsupported by its evidence"
    WRONG = "wrong", "Wrong or outdated"
    DUPLICATE = "duplicate", "Duplicate"
    TRIVIAL = "trivial", "Too trivial"
    TOO_SPECIFIC = "too_specific", "Too specific or overgeneralised"
    SENSITIVE = "sensitive", "Sensitive"


class ConflictReason(TextChoices):
    """Why two memories cannot both hold as they stand; kept as the note of their `contradicts` edge."""

    OTHER_VALUE = "other_value", "Same subject and attribute, another value"
    NEGATED = "negated", "One denies what the other says"
    OPPOSITE = "opposite", "The same sentence with an opposite word"
    OPPOSITE_ADVICE = "opposite_advice", "Opposite advice for the same situation"


class Resolution(TextChoices):
    """How a conflict was settled. Left is the memory that stood there first, right the later one."""

    KEEP_LEFT = "keep_left", "Kept the left one"
    KEEP_RIGHT = "keep_right", "Kept the right one"
    BOTH = "both", "Both are true"
    NEITHER = "neither", "Neither is true"


class QuarantineRule(TextChoices):
    """Which rule held a memory back."""

    SCREENING = "screening", "Reads like a planted instruction"
    SUSPICIOUS_STEP = "suspicious_step", "Rests on a step that reads like a planted instruction"
    OPPOSES_TRUSTED = "opposes_trusted", "Advises against what a trusted memory says"
    BY_PERSON = "by_person", "A person held it back"


class QuarantineDecision(TextChoices):
    """What became of a quarantined memory."""

    RELEASED = "released", "Released"
    REJECTED = "rejected", "Rejected"
    WITHDRAWN = "withdrawn", "Withdrawn"  # what held it back was undone


class Rule(TextChoices):
    """Why a sweep changes a memory; `memories.lifecycle.rules` says when."""

    WORKING_OVER = "working_over", "Working memory past its time"  # removed
    EXPIRED = "expired", "No longer valid"  # archived
    LOW_CONFIDENCE = "low_confidence", "Confidence too low"  # archived
    EPISODE_IDLE = "episode_idle", "Episode without a hit"  # archived
    LESSON_IDLE = "lesson_idle", "Lesson unused"  # archived
    FACT_IDLE = "fact_idle", "Fact, preference or relation without hits"  # archived
    FULL = "full", "Scope is full"  # archived: evicted
    LONG_ARCHIVED = "long_archived", "Archived long ago"  # deleted for good
    FAILING = "failing", "Adopted and failing"  # flagged, counts less until judged
    TRANSIENT = "transient", "Passing failure"  # counts less
    IDLE = "idle", "Fading without a hit"  # counts less
    UNUSED = "unused", "Recalled and never adopted"  # counts less
    LIFTED = "lifted", "Used again"  # what had faded counts again
