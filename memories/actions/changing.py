"""How a memory changes: compare-and-set on what the caller saw, search rows and audit beside it."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, Stale
from memories import indexing, policies
from memories.announcing import announce
from memories.enums import Status
from memories.models import Memory
from memories.safety.masking import mask_text

# What a verdict may change and an undo puts back.
GOVERNED = (
    "status",
    "tier",
    "trust",
    "alpha",
    "beta",
    "confidence",
    "weight",
    "needs_review",
    "approved_at",
    "pinned",
    "fades",
    "judged_reuse_count",
    "judged_reuse_success_count",
)

# What feedback moves beside everything else.
COUNTED = ("alpha", "beta", "confidence", "reuse_count", "reuse_success_count")


def governed(memory: Memory) -> dict[str, Any]:
    """Return the governed fields as JSON values: what an undo needs to know."""
    state = {name: getattr(memory, name) for name in GOVERNED}
    return {**state, "approved_at": memory.approved_at.isoformat() if memory.approved_at else None}


def fingerprint(memory: Memory) -> str:
    """The audit's fingerprint of a memory as it stands."""
    return audit.fingerprint({**governed(memory), "content": memory.fingerprint, "revision": memory.revision})


def check_revision(memory: Memory, expected: int | None) -> None:
    """Raise `Stale` when the caller edits another revision than the current one."""
    if expected is not None and expected != memory.revision:
        raise Stale(
            f"You edited revision {expected}; the memory is at revision {memory.revision} now. "
            "Read it again and repeat the change.",
            extra={"revision": memory.revision},
        )


def lock(team: Team, memory: Memory) -> None:
    """Hold the memory's row until the transaction ends, and take its newest counts over.

    Feedback moves the counts beside everything else; whoever computes from them locks first. Raises
    `Conflict` when the memory is not what the caller read.
    """
    rows = Memory.objects.of(team).select_for_update(no_key=True).filter(pk=memory.pk)
    now = rows.values("status", "revision", "updated_at", *COUNTED).first()
    if now is None or any(now[name] != getattr(memory, name) for name in ("status", "revision", "updated_at")):
        raise changed_meanwhile()
    for name in COUNTED:
        setattr(memory, name, now[name])


def changed_meanwhile() -> Conflict:
    """The refusal of a change to what somebody else changed first."""
    return Conflict("Someone changed this memory at the same moment. Read it again and repeat.")


def change(
    *,
    team: Team,
    by: Actor,
    memory: Memory,
    verb: str,
    values: dict[str, Any],
    detail: dict[str, Any] | None = None,
    reason: str = "",
) -> Memory:
    """Write `values` when nobody else changed the memory since it was read. `reason` is what somebody wrote.

    Raises `Conflict` when someone did, or when a new `status` is not a valid move.
    """
    to = values.get("status", memory.status)
    if to != memory.status:
        policies.check_move(memory, to)
    before, came_from, needed_review = fingerprint(memory), memory.status, memory.needs_review
    values = {**values, "updated_at": timezone.now()}
    if to == Status.ARCHIVED != came_from:
        values |= {"archived_at": values["updated_at"], "archived_by": ""}  # by no rule: no rule deletes it
    unchanged = Memory.objects.of(team).filter(
        pk=memory.pk, status=memory.status, revision=memory.revision, updated_at=memory.updated_at
    )
    if not unchanged.update(**values):
        raise changed_meanwhile()
    for name, value in values.items():
        setattr(memory, name, value)
    if to != came_from:
        indexing.set_status(memory)
    announce(team, memory, came_from=came_from, needed_review=needed_review)
    audit.record(
        team=team,
        by=by,
        verb=verb,
        on=memory,
        before=before,
        after=fingerprint(memory),
        detail={"status": to, **({"from": came_from} if to != came_from else {}), **(detail or {})},
        reason=mask_text(reason),
    )
    return memory


def is_settled(memory: Memory) -> bool:
    """Whether the memory is a tombstone: nothing can be done with it any more."""
    return memory.status == Status.FORGOTTEN
