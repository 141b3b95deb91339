"""What the official conformance tool expects of a server by name (test_…), served by our protocol code."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from mcp_types import jsonrpc

from hindsight_site.accounts.authentication import Caller
from hindsight_site.mcp.errors import Fault, invalid_params
from hindsight_site.mcp.offer import Offer, Steps
from hindsight_site.refusals import NotFound
from tests.mcp.conformance import asking

Params = Mapping[str, Any]
ToolResult = types.CallToolResult | types.InputRequiredResult
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
IMAGE = types.ImageContent(data=PNG, mime_type="image/png")


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


def embedded(uri: str, mime_type: str, words: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=words))


def with_progress(params: Params) -> Steps[ToolResult]:
    token = (params.get("_meta") or {}).get("progressToken")
    for progress in (0, 50, 100):
        if token is not None:
            told = types.ProgressNotificationParams(progress_token=token, progress=progress, total=100)
            yield types.ProgressNotification(params=told)
        time.sleep(0.05)
    return types.CallToolResult(content=[text("Done, with progress.")])


def with_log(params: Params) -> Steps[ToolResult]:
    """Logs to those who want it."""
    if (params.get("_meta") or {}).get(types.LOG_LEVEL_META_KEY):
        yield types.LoggingMessageNotification(params=types.LoggingMessageNotificationParams(level="info", data="Hm."))
    return types.CallToolResult(content=[text("Done, with a log.")])


def with_sampling(params: Params) -> ToolResult:
    """Refuses clients that cannot sample."""
    if "sampling" not in asking.capabilities(params):
        raise Fault(
            jsonrpc.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs a client that samples.",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return types.CallToolResult(content=[text("The client samples.")])


PLAIN: dict[str, types.CallToolResult] = {
    "test_simple_text": types.CallToolResult(content=[text("This is a simple text response for testing.")]),
    "test_image_content": types.CallToolResult(content=[IMAGE]),
    "test_audio_content": types.CallToolResult(content=[types.AudioContent(data=WAV, mime_type="audio/wav")]),
    "test_embedded_resource": types.CallToolResult(
        content=[embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
    ),
    "test_multiple_content_types": types.CallToolResult(
        content=[
            text("Multiple content types test:"),
            IMAGE,
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]
    ),
    "test_error_handling": types.CallToolResult(
        content=[text("This tool intentionally returns an error for testing")], is_error=True
    ),
}
TELLING: dict[str, Callable[[Params], Steps[ToolResult]]] = {
    "test_tool_with_progress": with_progress,
    "test_logging_tool": with_log,
}
ANSWERING: dict[str, Callable[[Params], ToolResult]] = {"test_missing_capability": with_sampling, **asking.TOOLS}
SCHEMA_TOOL = "json_schema_2020_12_tool"
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
TOOLS = [
    *(
        types.Tool(name=name, description=f"Conformance: {name}.", input_schema={"type": "object"})
        for name in (*PLAIN, *TELLING, *ANSWERING)
    ),
    types.Tool(name=SCHEMA_TOOL, description="Tool with JSON Schema 2020-12 features", input_schema=SCHEMA),
]


def call(caller: Caller, params: Params) -> Steps[ToolResult]:
    name = params["name"]
    if name in TELLING:
        return (yield from TELLING[name](params))
    if name in ANSWERING:
        return ANSWERING[name](params)
    if name == SCHEMA_TOOL:
        return types.CallToolResult(content=[text(json.dumps(params.get("arguments")))])
    if name not in PLAIN:
        raise invalid_params(f"Unknown tool: {name}.")
    return PLAIN[name]


TEMPLATE = "test://template/{id}/data"
STATIC: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
}
RESOURCES = [
    types.Resource(uri=uri, name=uri.rpartition("/")[2], description=f"Conformance: {uri}.", mime_type=one.mime_type)
    for uri, one in STATIC.items()
]


def read(caller: Caller, params: Params) -> types.ReadResourceResult:
    uri = params["uri"]
    if uri in STATIC:
        return types.ReadResourceResult(contents=[STATIC[uri]])
    match = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if match is None:
        raise NotFound(f"There is nothing at {uri}.")
    words = json.dumps({"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"})
    contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
    return types.ReadResourceResult(contents=[contents])


def _argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=f"Conformance: {name}.", required=True)


ARGUMENTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    asking.PROMPT: (),
}
PROMPTS = [
    types.Prompt(name=name, description=f"Conformance: {name}.", arguments=[_argument(one) for one in arguments])
    for name, arguments in ARGUMENTS.items()
]


def prompt(caller: Caller, params: Params) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.get("arguments") or {}
    match params["name"]:
        case "test_simple_prompt":
            said: list[types.ContentBlock] = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            said = [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            said = [IMAGE, text("Please analyze the image above.")]
        case asking.PROMPT:
            return asking.prompt(params)
        case unknown:
            raise invalid_params(f"Unknown prompt: {unknown}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in said])


def complete(caller: Caller, params: Params) -> types.Completion:
    values = [city for city in ("paris", "park", "party") if city.startswith(params["argument"]["value"])]
    return types.Completion(values=values, total=len(values), has_more=False)


FIXTURE = Offer(
    info=types.Implementation(name="conformance-fixture", version="1"),
    instructions="A server for the conformance tool.",
    tools=TOOLS,
    call=call,
    resources=RESOURCES,
    templates=[
        types.ResourceTemplate(
            uri_template=TEMPLATE, name="data", description="Conformance: a template.", mime_type="application/json"
        )
    ],
    read=read,
    prompts=PROMPTS,
    prompt=prompt,
    complete=complete,
)
