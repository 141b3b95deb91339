"""The glossary of traces, reflections and reviews, one line each."""

from django.db.models import TextChoices

from memories.enums import DemoteReason as DemoteReason  # a word of both apps


class Role(TextChoices):
    """Who speaks in a step."""

    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"
    SYSTEM = "system", "System"
    TOOL = "tool", "Tool"


class StepKind(TextChoices):
    """What a step is."""

    MESSAGE = "message", "Message"
    THOUGHT = "thought", "Thought"
    TOOL_CALL = "tool_call", "Tool call"
    TOOL_RESULT = "tool_result", "Tool result"
    OBSERVATION = "observation", "Observation"


class TraceStatus(TextChoices):
    """A trace is open until it reaches an outcome."""

    OPEN = "open", "Open"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    INTERRUPTED = "interrupted", "Interrupted"


END_STATES = (TraceStatus.SUCCEEDED, TraceStatus.FAILED, TraceStatus.INTERRUPTED)


class ReflectionStatus(TextChoices):
    """Every run of looking back ends in a state the caller can see."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    STORED = "stored", "Stored"  # memories were written or confirmed
    NOTHING_NEW = "nothing_new", "Nothing new"  # it looked and found nothing worth keeping
    REJECTED = "rejected", "Rejected"  # everything it found was refused, with reasons
    SKIPPED = "skipped", "Skipped"  # the trigger said no, with the reason
    FAILED = "failed", "Failed"  # visible and retryable; the trace is kept


REFLECTION_OPEN = (ReflectionStatus.QUEUED, ReflectionStatus.RUNNING)


class BatchStatus(TextChoices):
    """A week's sample."""

    OPEN = "open", "Open"
    CLOSED = "closed", "Closed"


class MailStatus(TextChoices):
    """Where a mail about the review stands."""

    QUEUED = "queued", "Queued"
    SENDING = "sending", "Being sent"  # what dies here is not tried again: it may have arrived
    SENT = "sent", "Sent"
    DROPPED = "dropped", "Not needed any more"
    FAILED = "failed", "Failed"


class Stratum(TextChoices):
    """Why an item is in the batch. Only `random` drives the acceptance rate."""

    RANDOM = "random", "Random sample"
    MOST_RECALLED = "most_recalled", "Most recalled, never reviewed"
    LOW_CONFIDENCE = "low_confidence", "Low confidence"
    FLAGGED = "flagged", "Flagged for review"
    CANARY = "canary", "Known answer"  # judged before; the verdict changes nothing


class ItemState(TextChoices):
    """Where a sampled memory stands in its review."""

    PENDING = "pending", "Pending"
    DECIDED = "decided", "Decided"  # as many opinions as it takes, and they agree
    CONFLICTED = "conflicted", "Two opinions"  # they differ: somebody has to settle it
    RESOLVED = "resolved", "Settled"
    VOID = "void", "Void"  # the memory was forgotten meanwhile; left out of the rates


ITEM_DONE = (ItemState.DECIDED, ItemState.RESOLVED)  # has an outcome


class Decision(TextChoices):
    """What a person decided."""

    APPROVE = "approve", "Approved"
    DEMOTE = "demote", "Demoted"
    EDIT = "edit", "Edited"
    CANNOT_TELL = "cannot_tell", "Could not tell"
    SENSITIVE = "sensitive", "Flagged as sensitive"


class Operation(TextChoices):
    """What a candidate does to a memory that is known already."""

    ADD = "add", "Add"  # nothing: it stands for itself
    CONFIRM = "confirm", "Confirm"  # the same again
    REFINE = "refine", "Refine"  # the same, said better or more exactly
    CONTRADICT = "contradict", "Contradict"  # the known one does not hold as it stands


class RejectReason(TextChoices):
    """Why the admission gates refused a candidate."""

    NOT_GROUNDED = "not_grounded", "No verbatim evidence in the trace"
    NOT_DURABLE = "not_durable", "Would not hold beyond this task"
    KNOWN = "known", "Already known; its support was raised"
    TRANSIENT = "transient", "A passing failure is not a lesson"
    UNSAFE = "unsafe", "Looks like an instruction planted in the trace"
    CONTAINS_PII = "contains_pii", "Contains personal data or a secret"
    TOO_VAGUE = "too_vague", "Too vague to act on"
    MALFORMED = "malformed", "Not of the form that was asked for"
    OVER_LIMIT = "over_limit", "More than three lessons from one trace"
