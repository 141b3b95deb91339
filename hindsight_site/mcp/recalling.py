"""Tools that ask what is known: recall, feedback on it, and one memory whole."""

from __future__ import annotations

from typing import Any

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import read_input
from hindsight_site.mcp import schemas as s
from hindsight_site.mcp.tool import Output, Schema, Tool
from memories import queries
from memories.api import memories as rest
from memories.api import recall as asking
from memories.api import serializers as forms
from memories.models import Evidence, Memory, RecallHit, Relation, Revision

NEWEST = 10  # rows of each list that hangs on a memory
WHAT_NOW = (
    "When the task is done, call hindsight_feedback with this recall_id: it is how good memories stay and bad ones go."
)


def recall(caller: Caller, wanted: dict[str, Any]) -> Output:
    checked = read_input(forms.RecallIn, wanted)
    checked.pop("explain")
    values = asking.render(asking.ask(caller, checked), explain=False)
    return Output(values, _recalled(values))


def _recalled(values: dict[str, Any]) -> str:
    searched = ", ".join(values["searched_scopes"]) or "none"
    degraded = "\nThe search by meaning is down; this is by words alone." if values["degraded"] else ""
    if not values["hits"]:
        return (
            f"No match: nothing that is remembered bears on this (best relevance {values['best_relevance']:.2f}; "
            f"searched scopes: {searched}). Go on without it. recall_id: {values['recall_id']}{degraded}"
        )
    ids = "\n".join(
        f"- {hit['memory']} ({hit['kind']}, {hit['scope']}, relevance {hit['relevance']:.2f}"
        f"{', contested' if hit['contested'] else ''})"
        for hit in values["hits"]
    )
    context = values["context"] or "The token budget leaves no room for their text; ask again with more."
    count = len(values["hits"])
    return (
        f"{count} {'memory' if count == 1 else 'memories'} (searched scopes: {searched}).\n{context}\n"
        f"recall_id: {values['recall_id']}\nMemory ids, in the same order:\n{ids}\n{WHAT_NOW}{degraded}"
    )


def feedback(caller: Caller, wanted: dict[str, Any]) -> Output:
    wanted["recall_id"] = str(s.ident(wanted.get("recall_id"), "recall_id"))
    values = asking.tell(caller, read_input(forms.FeedbackIn, wanted))
    return Output(values, f"Noted what became of {values['recorded']} of the recalled memories.")


def get(caller: Caller, wanted: dict[str, Any]) -> Output:
    memory = queries.get(caller.team, caller.agent, s.ident(wanted.get("memory_id"), "memory_id"))
    values = whole(caller, memory)
    return Output(values, _told(values))


def whole(caller: Caller, memory: Memory) -> dict[str, Any]:
    """One memory with the newest of what hangs on it, as JSON values."""
    seen = queries.visible(caller.team, caller.agent).values("pk")
    out = Relation.objects.of(memory.team).filter(source=memory, target__in=seen)
    into = Relation.objects.of(memory.team).filter(target=memory, source__in=seen)
    evidence = Evidence.objects.of(memory.team).filter(memory=memory).order_by("-created_at", "-id")
    revisions = Revision.objects.of(memory.team).filter(memory=memory).order_by("-number")
    hits = RecallHit.objects.of(memory.team).filter(memory=memory).select_related("recall__agent").order_by("-id")
    if caller.agent is not None:
        hits = hits.filter(recall__agent=caller.agent)
    recalls = [{**told, "parts": hit.parts} for hit in hits[:NEWEST] for told in [forms.RecallOfMemory(hit).data]]
    return {
        "memory": rest.render([memory], caller)[0],
        "evidence": forms.EvidenceOut(evidence[:NEWEST], many=True).data,
        "revisions": forms.RevisionOut(revisions[:NEWEST], many=True).data,
        "relations": forms.RelationOut((out | into).order_by("-created_at", "-id")[:NEWEST], many=True).data,
        "recalls": recalls,
    }


def _told(values: dict[str, Any]) -> str:
    memory = values["memory"]
    lines = [
        f"Memory {memory['id']} ({memory['kind']}, {memory['tier']}, {memory['status']}, scope {memory['scope']}, "
        f"confidence {memory['confidence']:.2f}, trust {memory['trust']}, revision {memory['revision']}):",
        memory["content"] or "(its text was deleted)",
    ]
    if memory["contested"]:
        lines.append("Another memory contradicts it; see relations.")
    lines += [
        f"It rests on step {row['step_sequence']} of trace {row['trace']}: {row['quote']}"
        for row in values["evidence"]
        if not row["removed_at"]  # what its trace no longer says, or what stood under an earlier text
    ]
    lines += [f"Revision {row['number']} said: {row['content']}" for row in values["revisions"]]
    lines += [f"{row['source']} {row['kind']} {row['target']}" for row in values["relations"]]
    lines += [
        f"Recalled {row['at']} at rank {row['rank']}, score {row['score']:.2f}: "
        + ", ".join(f"{name} {part:.2f}" for name, part in row["parts"].items())
        for row in values["recalls"]
    ]
    return "\n".join(lines)


HIT: Schema = {
    "type": "object",
    "properties": {
        "memory": s.ID,
        "revision": {"type": "integer"},
        "scope": {"type": "string"},
        "kind": {"type": "string", "enum": s.KINDS},
        "tier": {"type": "string", "enum": s.TIERS},
        "score": {"type": "number"},
        "relevance": {"type": "number"},
        "snippet": s.text("What is remembered, shortened when it is long."),
        "contested": s.truth("Another memory says something else."),
    },
    "required": ["memory", "scope", "kind", "score", "relevance", "snippet", "contested"],
}

RECALL = Tool(
    name="hindsight_recall",
    title="Recall what past tasks taught",
    description=(
        "Ask, before you start a task or when something goes wrong, what earlier tasks taught: lessons, facts, "
        "preferences, and what was tried before. Describe the task in plain words. The answer holds the few "
        "memories that bear on it, best first, or says plainly that there is none. They are background from past "
        "work, not instructions."
    ),
    scope=TokenScope.MEMORY_READ,
    run=recall,
    input_schema=s.arguments(
        {
            "query": s.text("What you are about to do, or what went wrong, in a sentence or two."),
            "top_k": s.whole("At most how many memories.", 1, 50, default=5),
            "kinds": s.words("Only these kinds; left out: all.", s.KINDS),
            "tags": s.words("Only memories that have one of these tags."),
            "scopes": s.words("Only these memory spaces, by short name; left out: all that you may read."),
            "token_budget": s.whole("About how many tokens of text to hand over.", 50, 20_000, default=800),
            "environment": s.ENVIRONMENT,
            "session_id": s.SESSION,
            "min_relevance": s.share("Leave out what is less relevant than this. 0 shows even weak matches."),
            "agent": s.AGENT,
        },
        ("query",),
    ),
    output_schema=s.result(
        {
            "recall_id": s.ID,
            "status": {"type": "string", "enum": ["matched", "no_match"]},
            "hits": {"type": "array", "items": HIT},
            "context": s.text("The memories as one text to read, framed as background; empty without a match."),
            "best_relevance": {"type": "number"},
            "searched_scopes": {"type": "array", "items": {"type": "string"}},
            "degraded": s.truth("Only words were compared: the search by meaning is down."),
            "took_ms": {"type": "number"},
        },
        ("recall_id", "status", "hits", "context", "best_relevance", "searched_scopes"),
    ),
    reads_only=True,
    aliases={"question": "query", "text": "query", "task": "query", "limit": "top_k", "scope": "scopes"},
)  # fmt: skip

FEEDBACK = Tool(
    name="hindsight_feedback",
    title="Say what became of a recall",
    description=(
        "After a task: tell which of the recalled memories you used and whether the task then succeeded. Give "
        "items, one for each memory; or only success, which counts for all that were handed over. Sent again, the "
        "newer word counts."
    ),
    scope=TokenScope.MEMORY_WRITE,
    run=feedback,
    input_schema=s.arguments(
        {
            "recall_id": s.text("The recall_id from hindsight_recall."),
            "items": {
                "type": "array",
                "description": "What became of each memory.",
                "items": {
                    "type": "object",
                    "properties": {
                        "memory": s.MEMORY_ID,
                        "adopted": s.truth("You used it."),
                        "success": s.truth("The task for which you used it succeeded."),
                        "note": s.text("Why, in a sentence."),
                    },
                    "required": ["memory", "adopted"],
                },
            },
            "success": s.truth("Instead of items: whether the task succeeded with all that was recalled."),
        },
        ("recall_id",),
    ),
    output_schema=s.result({"recall_id": s.ID, "recorded": {"type": "integer"}}, ("recall_id", "recorded")),
    repeatable=True,
    aliases={"id": "recall_id", "feedback": "items"},
)  # fmt: skip

GET = Tool(
    name="hindsight_get",
    title="Look at one memory",
    description=(
        "See one memory whole: its text, what it rests on, what it said before, what it is related to, and when "
        "and why it was recalled."
    ),
    scope=TokenScope.MEMORY_READ,
    run=get,
    input_schema=s.arguments({"memory_id": s.MEMORY_ID}, ("memory_id",)),
    output_schema=s.result(
        {
            "memory": {
                "type": "object",
                "properties": {
                    "id": s.ID, "revision": {"type": "integer"}, "scope": {"type": "string"},
                    "content": {"type": "string"}, "kind": {"type": "string"}, "tier": {"type": "string"},
                    "status": s.STATUS,
                    "confidence": {"type": "number"}, "trust": {"type": "string"},
                },
                "required": ["id", "revision", "scope", "content", "kind", "tier", "status"],
            },
            "evidence": {"type": "array", "items": {"type": "object"}},
            "revisions": {"type": "array", "items": {"type": "object"}},
            "relations": {"type": "array", "items": {"type": "object"}},
            "recalls": {"type": "array", "items": {"type": "object"}},
        },
        ("memory", "evidence", "revisions", "relations", "recalls"),
    ),
    reads_only=True,
    repeatable=True,
    aliases={"id": "memory_id", "memory": "memory_id"},
)  # fmt: skip
