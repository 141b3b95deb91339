"""The only writers of memories.

Every function takes `team=` and `by=` first, is one transaction, leaves its audit event in it, and
returns the object. Faces and the reflection pipeline call these; nothing here calls back.
"""

from memories.actions.drafts import Draft, EvidenceDraft, Remembered
from memories.actions.editing import revise, rollback
from memories.actions.erasing import clear_evidence_of_trace, drop_evidence, forget, forget_many
from memories.actions.feedback import FeedbackItem, give_feedback
from memories.actions.governing import (
    approve,
    archive,
    demote,
    pin,
    put_back,
    restore,
)
from memories.actions.lasting import make_lasting
from memories.actions.merging import confirm
from memories.actions.policy import change_policy, restore_policy
from memories.actions.promoting import promote
from memories.actions.quarantining import quarantine, reject, release, undo_quarantine_decision
from memories.actions.relating import relate
from memories.actions.remembering import check_draft, live_count, remember, remember_many
from memories.actions.settling import settle_conflict, undo_settlement
from memories.actions.splitting import split

__all__ = [
    "Draft",
    "EvidenceDraft",
    "FeedbackItem",
    "Remembered",
    "approve",
    "archive",
    "change_policy",
    "check_draft",
    "clear_evidence_of_trace",
    "confirm",
    "demote",
    "drop_evidence",
    "forget",
    "forget_many",
    "give_feedback",
    "live_count",
    "make_lasting",
    "pin",
    "promote",
    "put_back",
    "quarantine",
    "reject",
    "relate",
    "release",
    "remember",
    "remember_many",
    "restore",
    "restore_policy",
    "revise",
    "rollback",
    "settle_conflict",
    "split",
    "undo_quarantine_decision",
    "undo_settlement",
]
