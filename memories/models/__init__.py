"""What is known: scopes, memories and what they rest on, recalls, and the tables that search."""

from memories.models.judging import Merge, QuarantineCase, Settlement
from memories.models.knowledge import Evidence, Memory, Relation, Revision
from memories.models.policies import PolicyVersion, SweepRun
from memories.models.recalls import Feedback, Recall, RecallHit
from memories.models.scopes import Scope, ScopeGrant
from memories.models.searching import MemoryTerms, MemoryVector
from memories.models.vector_changes import VectorChange

__all__ = [
    "Evidence",
    "Feedback",
    "Memory",
    "MemoryTerms",
    "MemoryVector",
    "Merge",
    "PolicyVersion",
    "QuarantineCase",
    "Recall",
    "RecallHit",
    "Relation",
    "Revision",
    "Scope",
    "ScopeGrant",
    "Settlement",
    "SweepRun",
    "VectorChange",
]
