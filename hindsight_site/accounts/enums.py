"""The glossary of people and credentials, one line each."""

from django.db.models import TextChoices


class TeamRole(TextChoices):
    """What a person may do in a team. `permissions.ROLES` lists each role's permissions."""

    OWNER = "owner", "Owner"
    ADMIN = "admin", "Admin"
    REVIEWER = "reviewer", "Reviewer"
    VIEWER = "viewer", "Viewer"


class MailKind(TextChoices):
    """What people are mailed unasked; each can be switched off by each person."""

    REVIEW_OPENED = "review_opened", "The weekly review has opened"
    REVIEW_REMINDER = "review_reminder", "On Friday, when less than half of it is done"
    REVIEW_DRIFT = "review_drift", "A week’s acceptance fell out of its usual range (owners and admins)"
    FLAGGED_SENSITIVE = "flagged_sensitive", "A memory was flagged as sensitive (owners and admins)"


class TokenScope(TextChoices):
    """What a token may do."""

    MEMORY_READ = "memory:read", "read memories and recall"
    MEMORY_WRITE = "memory:write", "write memories and feedback"
    TRACE_WRITE = "trace:write", "send traces"
    REFLECT = "reflect", "ask for a reflection"
    REVIEW = "review", "approve and demote"
    ADMIN = "admin", "manage agents, scopes and tokens"


class Audience(TextChoices):
    """Which of our faces an access token opens: one of them, never both."""

    REST = "rest", "the REST API"
    MCP = "mcp", "the MCP endpoint"


class KeyState(TextChoices):
    """The life of a signing key. At most one is `next` and one `active`."""

    NEXT = "next", "Published, does not sign yet"
    ACTIVE = "active", "Signs"
    RETIRING = "retiring", "Signs no more; what it signed is accepted until it expires"
    RETIRED = "retired", "Not accepted"


class ActorKind(TextChoices):
    """Who did something, in the audit."""

    PERSON = "person", "Person"
    TOKEN = "token", "Token"  # noqa: S105 - a kind, not a secret
    SYSTEM = "system", "Hindsight"  # the schedule, a rule, a command


class DeletionState(TextChoices):
    """How far the deletion of a team is."""

    QUEUED = "queued", "Waiting for a worker"
    RUNNING = "running", "Deleting"
    DONE = "done", "Deleted"
    FAILED = "failed", "Failed"


class Theme(TextChoices):
    """A person's choice of colours; empty follows the system."""

    SYSTEM = "", "Same as the system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class Spent(TextChoices):
    """What a team uses up and never gets back, counted by `quotas`."""

    TRACES = "traces", "Traces"  # by the day
    MODEL_TOKENS = "model_tokens", "Model tokens"  # by the month, in and out
    MODEL_COST = "model_cost", "Model cost"  # by the month, in millionths of a US dollar


class JobKind(TextChoices):
    """What a job does."""

    ERASURE = "erasure", "Erasure"
    EXPORT = "export", "Export"
    IMPORT = "import", "Import"
    INVARIANTS = "invariants", "Integrity check"
    CONSOLIDATION = "consolidation", "Look across episodes"
    REEMBEDDING = "reembedding", "Re-embedding"


class JobStatus(TextChoices):
    """Every job ends in a state that whoever asked can see."""

    QUEUED = "queued", "Waiting for a worker"
    RUNNING = "running", "At work"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


JOB_OPEN = (JobStatus.QUEUED, JobStatus.RUNNING)


class ChunkRole(TextChoices):
    """Which of a job's files a chunk belongs to."""

    UPLOAD = "upload", "What was sent"
    OUTPUT = "output", "What was made"


class WebhookEvent(TextChoices):
    """What a team's own systems can be told of."""

    REFLECTION_FINISHED = "reflection.finished", "A reflection has ended"
    MEMORY_NEEDS_REVIEW = "memory.needs_review", "A memory waits for a person"
    MEMORY_QUARANTINED = "memory.quarantined", "A memory was quarantined"
    BATCH_OPENED = "batch.opened", "The week's review has opened"
    BATCH_CLOSED = "batch.closed", "The week's review has closed"
    JOB_FINISHED = "job.finished", "A job has ended"
    PING = "ping", "A test, sent by hand"


class DeliveryStatus(TextChoices):
    """What became of one message to a webhook."""

    QUEUED = "queued", "Waiting"
    RUNNING = "running", "Being sent"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Given up"


DELIVERY_OPEN = (DeliveryStatus.QUEUED, DeliveryStatus.RUNNING)
