"""What each method of the protocol answers, whatever is on offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import mcp_types as types
from mcp_types import jsonrpc, methods
from pydantic import BaseModel, ValidationError

from hindsight_site.accounts.authentication import Caller
from hindsight_site.mcp.errors import RESOURCE_NOT_FOUND, Fault, invalid_params, no_such_method
from hindsight_site.mcp.offer import Offer, Steps
from hindsight_site.mcp.protocol import LEGACY, SERVED, Request
from hindsight_site.refusals import NotFound, Refused

CAPABILITIES = types.ServerCapabilities(
    tools=types.ToolsCapability(),
    resources=types.ResourcesCapability(),
    prompts=types.PromptsCapability(),
    completions=types.CompletionsCapability(),
)
# What is the same for every token may be kept by anybody for a while; what is read belongs to one.
TTL_MS = 300_000
SHARED: Literal["public"] = "public"


def answer(offer: Offer, caller: Caller, request: Request) -> Steps[dict[str, Any]]:
    """Yield what there is to say on the way, then return the result in the form of the request's revision.

    Raises `Fault`, before the first notification or after it.
    """
    try:
        methods.validate_client_request(request.method, request.version, request.params)
        handler = HANDLERS[request.method]
    except KeyError:
        raise no_such_method(request.method) from None
    except ValidationError as error:
        raise invalid_params(f"The parameters of {request.method} are wrong. {_faults(error)}") from None
    try:
        made = yield from handler(offer, caller, request)
    except Refused as refusal:
        raise invalid_params(refusal.message) from None
    result = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    result = methods.serialize_server_result(request.method, request.version, result)
    if request.is_modern:
        info = offer.info.model_dump(mode="json", by_alias=True, exclude_none=True)
        result["_meta"] = {**result.get("_meta", {}), types.SERVER_INFO_META_KEY: info}
    return result


def _faults(error: ValidationError) -> str:
    """What is off, by field; never what was sent."""
    found = [(".".join(str(part) for part in fault["loc"]), fault["msg"]) for fault in error.errors()[:3]]
    return "; ".join(f"{place}: {message}" for place, message in found)


def _at_once(handler: Callable[[Offer, Caller, Request], BaseModel]) -> Handler:
    """A method that has nothing to say on the way."""

    def steps(offer: Offer, caller: Caller, request: Request) -> Steps[BaseModel]:
        yield from ()
        return handler(offer, caller, request)

    return steps


def _initialize(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    wanted = request.params["protocolVersion"]
    return types.InitializeResult(
        protocol_version=wanted if wanted in LEGACY else LEGACY[0],
        capabilities=CAPABILITIES,
        server_info=offer.info,
        instructions=offer.instructions,
    )


def _discover(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    return types.DiscoverResult(
        supported_versions=list(SERVED),
        capabilities=CAPABILITIES,
        instructions=offer.instructions,
        ttl_ms=TTL_MS,
        cache_scope=SHARED,
    )


def _ping(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    return types.EmptyResult()


def _list_tools(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    _first_page(request)
    return types.ListToolsResult(tools=list(offer.tools), ttl_ms=TTL_MS, cache_scope=SHARED)


def _call_tool(offer: Offer, caller: Caller, request: Request) -> Steps[BaseModel]:
    return (yield from offer.call(caller, request.params))


def _list_resources(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    _first_page(request)
    return types.ListResourcesResult(resources=list(offer.resources), ttl_ms=TTL_MS, cache_scope=SHARED)


def _list_templates(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    _first_page(request)
    templates = list(offer.templates)
    return types.ListResourceTemplatesResult(resource_templates=templates, ttl_ms=TTL_MS, cache_scope=SHARED)


def _read_resource(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    try:
        return offer.read(caller, request.params)
    except NotFound as refusal:
        code = jsonrpc.INVALID_PARAMS if request.is_modern else RESOURCE_NOT_FOUND
        raise Fault(code, refusal.message, data={"uri": request.params["uri"]}) from None


def _list_prompts(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    _first_page(request)
    return types.ListPromptsResult(prompts=list(offer.prompts), ttl_ms=TTL_MS, cache_scope=SHARED)


def _get_prompt(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    return offer.prompt(caller, request.params)


def _complete(offer: Offer, caller: Caller, request: Request) -> BaseModel:
    return types.CompleteResult(completion=offer.complete(caller, request.params))


def _first_page(request: Request) -> None:
    """Every list fits on one page, so a cursor is none of ours."""
    if request.params.get("cursor") is not None:
        raise invalid_params("This cursor is unknown: everything is on the first page.")


Handler = Callable[[Offer, Caller, Request], Steps[BaseModel]]
HANDLERS: dict[str, Handler] = {
    "initialize": _at_once(_initialize),
    "server/discover": _at_once(_discover),
    "ping": _at_once(_ping),
    "tools/list": _at_once(_list_tools),
    "tools/call": _call_tool,
    "resources/list": _at_once(_list_resources),
    "resources/templates/list": _at_once(_list_templates),
    "resources/read": _at_once(_read_resource),
    "prompts/list": _at_once(_list_prompts),
    "prompts/get": _at_once(_get_prompt),
    "completion/complete": _at_once(_complete),
}
