"""Tools that write memories on purpose: remember, and forget."""

from __future__ import annotations

from typing import Any

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import read_input
from hindsight_site.mcp import schemas as s
from hindsight_site.mcp.tool import Output, Schema, Tool
from hindsight_site.refusals import FieldError, Invalid
from memories import actions
from memories.api import memories as rest
from memories.api import serializers as forms
from memories.api.drafts import masked_in
from memories.enums import Kind, Status
from memories.models import Memory

DELETE = "delete"
ACTIONS = {"archive": actions.archive, "demote": actions.demote, DELETE: actions.forget}
WENT = {
    "archive": "It is put aside: not recalled any more, and restored in one step when that was wrong.",
    "demote": "It is marked as wrong: never recalled again, but kept in the history.",
    DELETE: "It is deleted for good: text, vectors, evidence and history are gone.",
}


def remember(caller: Caller, wanted: dict[str, Any]) -> Output:
    checked = read_input(forms.MemoryIn, {"kind": Kind.FACT, **wanted})
    done = rest.write(caller, checked)
    memory = done.memory
    masked = masked_in(checked["content"])
    values = {**_standing(memory), "merged_into": str(memory.pk) if done.merged else None, "masked": masked}
    note = f" Personal data or secrets in it were replaced by placeholders: {', '.join(masked)}." if masked else ""
    return Output(values, _written(memory, done.merged) + note)


def _standing(memory: Memory) -> dict[str, Any]:
    return {
        "memory": str(memory.pk),
        "status": memory.status,
        "scope": memory.scope.slug,
        "kind": memory.kind,
        "tier": memory.tier,
    }


def _written(memory: Memory, merged: bool) -> str:
    if merged:
        return f"Known already: memory {memory.pk} in {memory.scope.slug} says the same and is confirmed by this."
    if memory.status == Status.QUARANTINED:
        return f"Held back as {memory.pk}: it reads like an instruction, so a person looks at it before it is recalled."
    if memory.status == Status.CANDIDATE:
        return f"Kept as {memory.pk} in {memory.scope.slug}, as a candidate that waits to be confirmed or judged."
    return f"Remembered as {memory.pk} in {memory.scope.slug} ({memory.kind}, {memory.tier})."


def forget(caller: Caller, wanted: dict[str, Any]) -> Output:
    """Take a memory out of use. Why demoting takes no `review` here: docs/adr/0013."""
    action = _action(wanted)
    find = rest.deletable_memory if action == DELETE else rest.writable_memory
    memory = find(caller, s.ident(wanted.get("memory_id"), "memory_id"))
    form = forms.ForgetIn if action == DELETE else forms.Verb
    why = rest.masked_change(read_input(form, {name: wanted[name] for name in ("reason", "note") if name in wanted}))
    memory = ACTIONS[action](team=caller.team, by=caller.actor, memory=memory, **why)
    return Output({**_standing(memory), "action": action}, f"Memory {memory.pk}: {WENT[action]}")


def _action(wanted: dict[str, Any]) -> str:
    action = wanted.get("action", "archive")
    if action not in ACTIONS:
        message = f"must be one of: {', '.join(ACTIONS)}."
        raise Invalid(f"action {message}", errors=(FieldError("action", message),))
    return action


def _scope_of(wanted: dict[str, Any]) -> TokenScope | None:
    return TokenScope.ADMIN if wanted.get("action") == DELETE else None


STANDING: dict[str, Schema] = {
    "memory": s.ID,
    "status": s.STATUS,
    "scope": {"type": "string"},
    "kind": {"type": "string", "enum": s.KINDS},
    "tier": {"type": "string", "enum": s.TIERS},
}

REMEMBER = Tool(
    name="hindsight_remember",
    title="Remember one thing",
    description=(
        "Write down one thing that will matter again: a fact, a preference of a person, a lesson. One thing for "
        "each call, in a sentence or two that makes sense without this conversation. What is known already is "
        "confirmed instead of stored twice. For what you did on a whole task use hindsight_record_trace: lessons "
        "are drawn from it."
    ),
    scope=TokenScope.MEMORY_WRITE,
    run=remember,
    input_schema=s.arguments(
        {
            "content": s.text("What to remember, up to 8,000 characters."),
            "kind": s.text(
                "fact, preference, experience (a lesson), task (an episode) or relation.", enum=s.KINDS, default="fact"
            ),
            "tier": s.text(
                "working: for this session only. episodic: happened once, fades unless it proves useful. semantic: "
                "holds in general.",
                enum=s.TIERS, default="episodic",
            ),
            "scope": s.text("The memory space, by short name. Left out: your own, which only you read."),
            "tags": s.words("Words to find it by."),
            "confidence": s.share("How sure you are."),
            "ttl_seconds": s.whole("Drop it after so many seconds. Left out: it stays.", 1, 315_360_000),
            "structure": s.thing("For programs: the parts of it, in the form of its kind."),
            "environment": s.thing("Where it holds, when it holds there only."),
            "session_id": s.SESSION,
            "agent": s.AGENT,
            "idempotency_key": s.KEY,
        },
        ("content",),
    ),
    output_schema=s.result(
        {**STANDING, "merged_into": s.maybe(s.ID), "masked": {"type": "array", "items": {"type": "string"}}},
        ("memory", "status", "scope", "merged_into", "masked"),
    ),
    aliases={"text": "content", "memory": "content", "ttl": "ttl_seconds"},
)  # fmt: skip

FORGET = Tool(
    name="hindsight_forget",
    title="Put aside, mark as wrong, or delete a memory",
    description=(
        "Take one memory out of use. archive puts it aside and can be undone; demote marks it as wrong; delete "
        "removes it for good and needs a token with the scope admin. Say why."
    ),
    scope=TokenScope.MEMORY_WRITE,
    scope_of=_scope_of,
    run=forget,
    input_schema=s.arguments(
        {
            "memory_id": s.MEMORY_ID,
            "action": s.text("What to do with it.", enum=list(ACTIONS), default="archive"),
            "reason": s.text("Why, in a few words."),
            "note": s.text("More about it, for whoever reviews this."),
        },
        ("memory_id",),
    ),
    output_schema=s.result(
        {**STANDING, "action": {"type": "string", "enum": list(ACTIONS)}}, ("memory", "status", "action")
    ),
    destroys=True,
    repeatable=True,
    aliases={"id": "memory_id", "memory": "memory_id"},
)  # fmt: skip
