"""The only writers of memories.

Every function takes `team=` and `by=` first, is one transaction, leaves its audit event in it, and
returns the object. Faces and the reflection pipeline call these; nothing here calls back.
"""

from memories.actions.editing import revise, rollback
from memories.actions.erasing import clear_evidence_of_trace, forget
from memories.actions.feedback import FeedbackItem, give_feedback
from memories.actions.governing import (
    approve,
    archive,
    demote,
    pin,
    put_back,
    quarantine,
    reject,
    release,
    restore,
)
from memories.actions.relating import relate
from memories.actions.remembering import (
    Draft,
    EvidenceDraft,
    Remembered,
    check_draft,
    confirm,
    live_count,
    remember,
    remember_many,
)

__all__ = [
    "Draft",
    "EvidenceDraft",
    "FeedbackItem",
    "Remembered",
    "approve",
    "archive",
    "check_draft",
    "clear_evidence_of_trace",
    "confirm",
    "demote",
    "forget",
    "give_feedback",
    "live_count",
    "pin",
    "put_back",
    "quarantine",
    "reject",
    "relate",
    "release",
    "remember",
    "remember_many",
    "restore",
    "revise",
    "rollback",
]
