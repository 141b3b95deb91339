"""The tool that tells what has become of work in the background, and can wait for its end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from hindsight_site.accounts.api import jobs
from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import JOB_OPEN, TokenScope
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.api.waiting import MAX_WAIT_SECONDS, PLACES
from hindsight_site.mcp import schemas as s
from hindsight_site.mcp.tool import Output, Progress, Tool, Waiting, Waits
from hindsight_site.refusals import NotFound
from reflection.api import reflections
from reflection.drafts import bad
from reflection.enums import REFLECTION_OPEN

LONGEST = MAX_WAIT_SECONDS
TELL_EVERY_SECONDS = 2.0
OPEN = {*REFLECTION_OPEN, *JOB_OPEN}
Look = Callable[[Caller, uuid.UUID, float], Output]


def status(caller: Caller, wanted: dict[str, Any]) -> Waiting:
    """The state of a reflection; of the newest one of a trace, whose id will do; or of a job.

    While it waits it says every other second what it waits for: a client sees that the line stands, and one that
    has hung up is noticed.
    """
    ident, most = s.ident(wanted.get("id"), "id"), _seconds(wanted.get("wait_seconds", 0))
    with PLACES.granted(most) as seconds:
        until = time.monotonic() + seconds
        look, output = _found(caller, ident, min(seconds, TELL_EVERY_SECONDS))
        while output.values["status"] in OPEN and (left := until - time.monotonic()) > 0:
            yield Progress(round(seconds - left, 1), seconds, output.text.partition("\n")[0])
            output = look(caller, ident, min(left, TELL_EVERY_SECONDS))
        return output


def _found(caller: Caller, ident: uuid.UUID, seconds: float) -> tuple[Look, Output]:
    """What can tell of the thing with this id, and what it tells at first. Raises `NotFound`."""
    for look in (_reflection, _of_trace, _job):
        try:
            return look, look(caller, ident, seconds)
        except NotFound:
            continue
    raise NotFound("There is no such reflection or job, and no trace with this id that was looked back at.")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad("wait_seconds", f"must be a number of seconds, 0 to {LONGEST}.")
    return min(max(float(value), 0.0), LONGEST)


def _reflection(caller: Caller, ident: uuid.UUID, seconds: float) -> Output:
    values = {**reflections.awaited(caller, ident, seconds)}
    return Output(values, _told_of_reflection(values))


def _of_trace(caller: Caller, trace_id: uuid.UUID, seconds: float) -> Output:
    with team_transaction(caller.team):
        rows = reflections.own_reflections(caller).filter(trace=trace_id).order_by("-created_at", "-id")
        newest = rows.values_list("pk", flat=True).first()
    if newest is None:
        raise NotFound("This is no trace that was looked back at.")
    return _reflection(caller, newest, seconds)


def _job(caller: Caller, ident: uuid.UUID, seconds: float) -> Output:
    values = {**jobs.awaited(caller, ident, seconds)}
    lines = [f"Job {values['id']} ({values['kind']}): {values['status']}."]
    if values["progress"]["total"]:
        lines.append("{done} of {total}: {what}".format(**values["progress"]))
    if values["error"]:
        lines.append(f"Error: {values['error']}")
    return Output(values, "\n".join(lines))


def _told_of_reflection(values: dict[str, Any]) -> str:
    of = f"of trace {values['trace']}" if values["trace"] else f"across {len(values['episodes'])} memories"
    lines = [f"Reflection {values['id']} {of}: {values['status']}."]
    if values["reason"]:
        lines.append(f"Why: {values['reason']}.")
    if values["error"]:
        lines.append(f"Error: {values['error']}")
    lines += [f"- {row['effect']} {row['memory']} ({row['kind']}): {row['content']}" for row in values["memories"]]
    lines += [f"- refused ({row['reason']}): {row['content']}" for row in values["rejected"]]
    if values["status"] in REFLECTION_OPEN:
        lines.append("It is not done yet; ask again, with wait_seconds up to 20.")
    return "\n".join(lines)


STATUS = Tool(
    name="hindsight_status",
    title="See what came of a reflection or job",
    description=(
        "The state of a reflection, and once it has ended the memories that it wrote and what it left out and why; "
        "or how far a job of the team is. It can wait up to 20 seconds for the end. Nothing depends on your asking: "
        "it goes on by itself."
    ),
    scope=TokenScope.MEMORY_READ,
    run=Waits(status),
    input_schema=s.arguments(
        {
            "id": s.text("The id of a reflection; of a trace, for its newest reflection; or of a job."),
            "wait_seconds": {
                "type": "number",
                "description": "Wait for the end, at most so long.",
                "minimum": 0,
                "maximum": LONGEST,
                "default": 0,
            },
        },
        ("id",),
    ),
    output_schema=s.result(
        {
            "id": s.ID,
            "status": s.text("queued, running, or how it ended."),
            "error": {"type": "string"},
            "attempts": {"type": "integer"},
            "trace": s.maybe(s.text("Of a reflection: the trace that was looked back at.")),
            "reason": s.text("Of a reflection: why it ran, or was skipped."),
            "memories": {"type": "array", "items": {"type": "object"}},
            "rejected": {"type": "array", "items": {"type": "object"}},
            "kind": s.text("Of a job: what it does."),
            "progress": s.thing("Of a job: how far it is."),
        },
        ("id", "status", "error"),
    ),
    reads_only=True,
    repeatable=True,
    aliases={"reflection_id": "id", "trace_id": "id", "job_id": "id", "wait": "wait_seconds"},
)
