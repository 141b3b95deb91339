"""What can be read by address: a memory, a trace, the scopes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import mcp_types as types
from django.conf import settings

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.api.parsers import clean
from hindsight_site.mcp import bounds, recalling
from hindsight_site.mcp.authorise import check_scope
from hindsight_site.refusals import NotFound
from memories import queries, scopes
from memories.api.serializers import ScopeOut
from memories.models import Scope
from reflection.api import traces

JSON = "application/json"
SCOPES = "hindsight://scopes"
LISTED = [
    types.Resource(
        uri=SCOPES,
        name="scopes",
        title="Memory spaces",
        description="The memory spaces that this token may read, its own first.",
        mime_type=JSON,
    )
]
TEMPLATES = [
    types.ResourceTemplate(
        uri_template="hindsight://memory/{id}",
        name="memory",
        title="A memory",
        description="One memory whole: text, evidence, history, relations, recalls.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        uri_template="hindsight://trace/{id}",
        name="trace",
        title="A trace",
        description="One task as it was lived, step by step.",
        mime_type=JSON,
    ),
]


def read(caller: Caller, params: Mapping[str, Any]) -> types.ReadResourceResult:
    """Return what is at an address, as JSON. Raises `Fault`; and `NotFound`, for other teams' things too."""
    check_scope(caller, TokenScope.MEMORY_READ)
    uri = clean(params["uri"], "uri")
    with team_transaction(caller.team):
        values = _found(caller, uri)
    values, cut = bounds.fit(values, settings.MCP_MAX_RESOURCE_BYTES)
    if cut:
        values = {"cut": "Long texts and lists were shortened; the REST API gives them whole.", **values}
    text = json.dumps(values, ensure_ascii=False, default=str, indent=1)
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def _found(caller: Caller, uri: str) -> dict[str, Any]:
    if uri == SCOPES:
        return {"scopes": ScopeOut(_scopes(caller), many=True).data}
    kind, ident = _parts(uri)
    if kind == "memory":
        return recalling.whole(caller, queries.get(caller.team, caller.agent, ident))
    if kind == "trace":
        return traces.whole(traces.find_trace(caller, ident))
    raise _nothing_there(uri)


def _scopes(caller: Caller) -> list[Scope]:
    """Those the caller may read: an agent its own first, a token of the whole team every one."""
    if caller.agent is None:
        return list(Scope.objects.of(caller.team).select_related("agent").order_by("slug"))
    return scopes.readable(caller.team, caller.agent)


def _parts(uri: str) -> tuple[str, uuid.UUID]:
    try:
        parts = urlsplit(uri)
        if parts.scheme == "hindsight" and parts.path.startswith("/") and not parts.query + parts.fragment:
            return parts.netloc, uuid.UUID(parts.path[1:])
    except ValueError:
        pass
    raise _nothing_there(uri)


def _nothing_there(uri: str) -> NotFound:
    places = ", ".join([SCOPES, *(template.uri_template for template in TEMPLATES)])
    return NotFound(f"There is nothing at {uri[:200]}. Addresses are: {places}.", code="resource_not_found")
