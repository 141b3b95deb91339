"""Tools around traces: record what was done, have it looked back at, see what came of it."""

from __future__ import annotations

from typing import Any

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import read_input
from hindsight_site.mcp import schemas as s
from hindsight_site.mcp.forgiving import mend
from hindsight_site.mcp.tool import Output, Schema, Tool
from reflection import actions
from reflection.api import reflections, traces
from reflection.api.serializers import OUTCOMES, ReflectionIn
from reflection.drafts import bad
from reflection.enums import REFLECTION_OPEN, ReflectionStatus, Role, StepKind, TraceStatus
from reflection.formats import FORMATS, OWN
from reflection.models import Reflection

STEP: Schema = {
    "type": "object",
    "properties": {
        "role": s.text("Who it is from.", enum=[str(role) for role in Role]),
        "kind": s.text("What it is; left out, it follows from the rest.", enum=[str(kind) for kind in StepKind]),
        "content": s.text("The text: what was said, or what the tool answered."),
        "tool": s.text("The name of the tool that was called or that answers."),
        "arguments": s.thing("What the tool was called with."),
        "is_error": s.truth("The step failed."),
        "at": s.text("When, in ISO 8601 with a time zone."),
    },
    "required": ["role"],
}


def record_trace(caller: Caller, wanted: dict[str, Any]) -> Output:
    """A whole trace; or, with `trace_id`, steps to append, its end, or both, in that order."""
    if wanted.get("format", OWN) == OWN and isinstance(wanted.get("steps"), list):
        wanted["steps"] = [mend(step, STEP) for step in wanted["steps"]]
    if not wanted.get("trace_id"):
        trace, reflection = traces.record(caller, wanted)
        return _recorded({**traces.written(trace, reflection), "sequence": 0, "step_count": trace.step_count})
    trace = traces.find_trace(caller, s.ident(wanted["trace_id"], "trace_id"))
    if not wanted.get("steps") and not wanted.get("outcome"):
        raise bad("steps", "or an outcome is needed with a trace_id: what happened next, or how it ended.")
    appended = traces.append(caller, trace, wanted) if wanted.get("steps") else {}
    ended = traces.finish(caller, trace, wanted) if wanted.get("outcome") else None
    return _recorded({**traces.written(trace, ended), "step_count": trace.step_count, **appended})


def _recorded(body: dict[str, Any]) -> Output:
    values = {"trace_id": body.pop("id"), **body}
    values.setdefault("sequence", None)
    text = f"Trace {values['trace_id']} is {values['status']}, with {values['step_count']} steps."
    reflection = values["reflection"]
    if reflection is None:
        return Output(values, f"{text} Send more steps, or its outcome, with this trace_id.")
    if reflection["status"] in REFLECTION_OPEN:
        return Output(
            values, f"{text} It is looked back at in the background: hindsight_status with {reflection['id']}."
        )
    return Output(values, f"{text} Reflection {reflection['id']}: {reflection['status']} ({reflection['reason']}).")


def reflect(caller: Caller, wanted: dict[str, Any]) -> Output:
    reflection = _across(caller, wanted) if wanted.get("episode_ids") else _back(caller, wanted)
    values = {"reflection_id": str(reflection.pk), "status": reflection.status, "reason": reflection.reason}
    return Output(
        values,
        f"Reflection {reflection.pk} is {reflection.status}. Ask hindsight_status for its result; it goes on "
        "whether you wait or not.",
    )


def _back(caller: Caller, wanted: dict[str, Any]) -> Reflection:
    trace = traces.find_trace(caller, s.ident(wanted.get("trace_id"), "trace_id"))
    return actions.request_reflection(team=caller.team, by=caller.actor, trace=trace, token=caller.token)


def _across(caller: Caller, wanted: dict[str, Any]) -> Reflection:
    """Episodes go before a trace when both are named: they were chosen one by one."""
    ids = wanted["episode_ids"]
    if not isinstance(ids, list):
        raise bad("episode_ids", "must be a list of ids of memories.")
    body = {
        "episodes": [str(s.ident(one, f"episode_ids.{place}")) for place, one in enumerate(ids)],
        "instruction": wanted.get("instruction", ""),
    }
    checked = read_input(ReflectionIn, body)
    return reflections.look_across(caller, checked["episodes"], checked["instruction"])


SHORT: Schema = {
    "type": ["object", "null"],
    "properties": {
        "id": s.ID,
        "status": {"type": "string", "enum": [str(status) for status in ReflectionStatus]},
        "reason": {"type": "string"},
    },
}

RECORD_TRACE = Tool(
    name="hindsight_record_trace",
    title="Record what was done on a task",
    description=(
        "Send what happened on a task, step by step, when it has ended: the request, your tool calls, what the "
        "tools answered, and how it ended. Lessons are drawn from it in the background; this returns at once. A "
        "long task can be sent in parts: first the task, then, with the trace_id you get, more steps, and at last "
        "the outcome."
    ),
    scope=TokenScope.TRACE_WRITE,
    run=record_trace,
    input_schema=s.arguments({
        "task": s.text("What you were asked to do. Needed for a new trace."),
        "steps": {"type": "array", "description": "What happened, in order.", "items": STEP},
        "outcome": s.text("How it ended. Left out: it goes on, and more steps may follow.", enum=OUTCOMES),
        "result": s.text("What came out of it, in a sentence or two."),
        "trace_id": s.text("To go on with a trace: the id from the first call."),
        "sequence": s.whole(
            "With trace_id: the number of the first of these steps, counted from 0, so that a repeat adds nothing. "
            "Left out: they go to the end.", 0, 100_000,
        ),
        "remember": s.truth("Look back at it even if it was short."),
        "session_id": s.SESSION,
        "task_type": s.text("A word for this kind of task."),
        "environment": s.thing('Where you work, such as {"os": "linux"}.'),
        "metadata": s.thing("Anything of your own to keep with it."),
        "format": s.text("What steps holds, when it is not the form described here.", enum=list(FORMATS), default=OWN),
        "agent": s.AGENT,
        "idempotency_key": s.KEY,
    }),
    output_schema=s.result(
        {
            "trace_id": s.ID,
            "status": {"type": "string", "enum": [str(status) for status in TraceStatus]},
            "step_count": {"type": "integer"},
            "sequence": {"type": ["integer", "null"], "description": "The number of the first step of this call."},
            "reflection": SHORT,
        },
        ("trace_id", "status", "step_count", "reflection"),
    ),
    aliases={"id": "trace_id", "messages": "steps", "goal": "task"},
)  # fmt: skip

REFLECT = Tool(
    name="hindsight_reflect",
    title="Look back at a task",
    description=(
        "Have a recorded task looked back at, again if need be; that happens by itself when a trace with enough "
        "in it ends. Or have several episodes looked across for what they have in common. Returns at once with a "
        "reflection_id for hindsight_status."
    ),
    scope=TokenScope.REFLECT,
    run=reflect,
    input_schema=s.arguments({
        "trace_id": s.text("The trace to look back at."),
        "episode_ids": s.words("Instead: the ids of two or more memories to look across for what repeats."),
        "instruction": s.text("With episode_ids: what to look for."),
    }),
    output_schema=s.result(
        {"reflection_id": s.ID, "status": SHORT["properties"]["status"], "reason": {"type": "string"}},
        ("reflection_id", "status"),
    ),
    aliases={"id": "trace_id", "trace": "trace_id", "episodes": "episode_ids"},
)  # fmt: skip
