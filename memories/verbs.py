"""What a person may do with a memory on its page: each verb with its words and the state it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memories import actions, policies
from memories.enums import DemoteReason, Status
from memories.models import Memory

# Why a memory is taken out of recall; short, because the audit keeps it and must hold no memory text.
REASONS = tuple(DemoteReason.choices)


@dataclass(frozen=True)
class Verb:
    """One thing to do: `act` is called with team, by, memory and reason; `done` is said afterwards."""

    name: str
    label: str
    icon: str
    tone: str
    effect: str
    done: str
    act: Callable[..., Any]
    asks_reason: bool = False


def _pin(**arguments: Any) -> Memory:
    return actions.pin(**_without_reason(arguments), pinned=True)


def _unpin(**arguments: Any) -> Memory:
    return actions.pin(**_without_reason(arguments), pinned=False)


def _without_reason(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "reason"}


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "approve",
            "Approve",
            "check",
            "approve",
            "True to its evidence and worth recalling. Semantic from now on, when it can hold beyond one task.",
            "Approved. It is recalled, and exempt from fading for 90 days.",
            actions.approve,
        ),
        Verb(
            "demote",
            "Demote",
            "demoted",
            "demote",
            "It will no longer be recalled; it stays in the history.",
            "Demoted. It will no longer be recalled; it stays in the history.",
            actions.demote,
            asks_reason=True,
        ),
        Verb(
            "archive",
            "Archive",
            "archived",
            "",
            "Put aside: recalled only when asked for.",
            "Archived. It is recalled only when asked for.",
            actions.archive,
        ),
        Verb(
            "restore",
            "Restore",
            "undo",
            "",
            "Bring it back into recall.",
            "Restored. It is recalled again.",
            actions.restore,
        ),
        Verb(
            "release",
            "Release",
            "check",
            "approve",
            "It is harmless. Agents may be told it, as a candidate that the review asks about.",
            "Released. Agents may be told it, as a candidate that the review asks about.",
            actions.release,
        ),
        Verb(
            "reject",
            "Reject",
            "rejected",
            "demote",
            "Refuse it for good.",
            "Rejected. It never reaches an agent.",
            actions.reject,
        ),
        Verb(
            "pin",
            "Pin",
            "pin",
            "",
            "Keep it: it neither fades with time nor makes room for others.",
            "Pinned. It neither fades with time nor makes room for others.",
            _pin,
        ),
        Verb(
            "unpin",
            "Unpin",
            "pin",
            "",
            "Let the rules of life apply to it again.",
            "Unpinned. The rules of life apply to it again.",
            _unpin,
        ),
    )
}


def offers(memory: Memory) -> list[Verb]:
    """Return the verbs that make sense for `memory` as it stands, the likeliest first."""
    status = memory.status
    if status == Status.FORGOTTEN:
        return []
    if status == Status.QUARANTINED:
        return [VERBS["release"], VERBS["reject"]]
    names = []
    if status in policies.LIVE and (memory.needs_review or memory.approved_at is None):
        names.append("approve")
    if status in (Status.ARCHIVED, Status.DEMOTED, Status.SUPERSEDED):
        names.append("restore")
    if status != Status.DEMOTED and policies.can_move(memory, Status.DEMOTED):
        names.append("demote")
    if status in policies.LIVE:
        names += ["archive", "unpin" if memory.pinned else "pin"]
    return [VERBS[name] for name in names]
