"""The table of tools, and how one is called.

Every caller is shown every tool, whatever its token may: the list can then be kept by clients and proxies, and a
call that needs more is answered with 403 that names the scope, which OAuth clients take as the cue to ask for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from django.conf import settings
from rest_framework.exceptions import ValidationError

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.api import idempotency
from hindsight_site.api.parsers import clean
from hindsight_site.mcp import bounds, forgiving, recalling, reflecting, remembering, waiting
from hindsight_site.mcp.authorise import check_scope
from hindsight_site.mcp.errors import invalid_params
from hindsight_site.mcp.offer import Steps
from hindsight_site.mcp.tool import Output, Run, Tool, Waiting, Waits
from hindsight_site.middleware import current_request_id
from hindsight_site.problems import flatten, summary
from hindsight_site.refusals import FieldError, NotFound, Refused

KEY = "hindsight/idempotency_key"  # in `_meta`, for any tool that writes
ERROR = "hindsight/error"  # in `_meta` of a failed result, for programs
TABLE: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        recalling.RECALL, remembering.REMEMBER, reflecting.RECORD_TRACE, reflecting.REFLECT, waiting.STATUS,
        recalling.FEEDBACK, remembering.FORGET, recalling.GET,
    )
}  # fmt: skip


LISTED = [
    types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeatable,
            open_world_hint=False,
        ),
    )
    for tool in TABLE.values()
]


def call(caller: Caller, params: Mapping[str, Any]) -> Steps[types.CallToolResult]:
    """Run the tool that `params` name. What it refuses is a result that says what to do.

    A tool that waits says how far it is, if the client gave a token for that.
    Raises `Fault` for a tool that there is not and for a scope that is lacking.
    """
    tool = TABLE.get(params["name"])
    if tool is None:
        raise invalid_params(f"Unknown tool: {params['name'][:100]}. There are: {', '.join(TABLE)}.")
    check_scope(caller, tool.scope)
    try:
        given = clean(params.get("arguments") or {})
        wanted, ignored = forgiving.read(given, tool.input_schema, tool.aliases)
        if tool.scope_of is not None:
            check_scope(caller, tool.scope_of(wanted))
        meta = params.get("_meta") or {}
        key = wanted.pop("idempotency_key", None) or meta.get(KEY) or ""
        if isinstance(tool.run, Waits):
            output = yield from _told(tool.run.begin(caller, wanted), meta.get("progressToken"))
        else:
            output = _run(tool, tool.run, caller, wanted, str(key))
        return _result(tool, output, ignored)
    except Refused as refusal:
        return _refused(tool, refusal.message, refusal.code, refusal.errors, refusal)
    except ValidationError as error:
        errors = tuple(flatten(error.get_full_details()))
        return _refused(tool, summary(errors), "invalid", errors)


def _told(work: Waiting, token: str | int | None) -> Steps[Output]:
    """Pass on how far work is, if anybody wants to know."""
    while True:
        try:
            progress = next(work)
        except StopIteration as end:
            return end.value
        if token is not None:
            yield types.ProgressNotification(
                params=types.ProgressNotificationParams(
                    progress_token=token, progress=progress.done, total=progress.total, message=progress.message
                )
            )


def _run(tool: Tool, run: Run, caller: Caller, wanted: dict[str, Any], key: str) -> Output:
    """Run a tool in one transaction, or have it answer again what it answered to the same key."""
    with team_transaction(caller.team):
        if not key or tool.reads_only:
            return run(caller, wanted)
        digest = idempotency.digest_of(f"mcp {tool.name}", wanted)
        if stored := idempotency.find(caller, key, digest):
            kept: Any = stored.body
            return Output(kept["values"], kept["text"])
        output = run(caller, wanted)
        body = {"values": output.values, "text": output.text}
        idempotency.keep(caller, key, digest, status_code=200, body=body)
        return output


def _result(tool: Tool, output: Output, ignored: list[str]) -> types.CallToolResult:
    values, text = output.values, output.text
    if ignored:
        values = {**values, "ignored_arguments": ignored}
        text += f"\nIgnored arguments that {tool.name} does not know: {', '.join(ignored)}."
    values, values_cut = bounds.fit(values, settings.MCP_MAX_RESULT_BYTES // 2)
    text, text_cut = bounds.cut(text, settings.MCP_MAX_RESULT_BYTES // 2)
    if values_cut or text_cut:
        values = {**values, "cut": True}
        text += "\n[Cut: this was too long for one result. The ids are whole; hindsight_get shows one memory.]"
    plain = json.loads(json.dumps(values, default=str))
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=plain)


def _refused(
    tool: Tool, message: str, code: str, errors: tuple[FieldError, ...], refusal: Refused | None = None
) -> types.CallToolResult:
    """A failed call. Nothing of it was kept; the text is for the model that made it."""
    lines = [message, *(f"- {e.field}: {e.message}" for e in errors[1:6])]
    if isinstance(refusal, NotFound):
        lines.append("Check the id; things of other teams and agents are not to be seen here.")
    elif errors:
        lines.append(f"Nothing was done. Mend that and call {tool.name} again.")
    told = {
        "code": code,
        "errors": [{"field": e.field, "code": e.code, "message": e.message} for e in errors],
        "request_id": current_request_id.get(),
        **({"retry_after": wait} if (wait := getattr(refusal, "wait", None)) else {}),
    }
    content: list[types.ContentBlock] = [types.TextContent(text="\n".join(lines))]
    return types.CallToolResult(content=content, is_error=True, _meta={ERROR: told})
