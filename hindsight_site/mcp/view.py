"""The view behind `/mcp`."""

from __future__ import annotations

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt  # a bearer token opens it, never a cookie
@non_atomic_requests  # each tool call is a transaction of its own, and one that waits holds none
def mcp(request: HttpRequest) -> HttpResponseBase:
    """Answer one message of the Model Context Protocol."""
    # The protocol's types take a third of a second to load: only who serves them pays, not every command.
    from hindsight_site.mcp.endpoint import endpoint
    from hindsight_site.mcp.hindsight import HINDSIGHT

    return endpoint(request, HINDSIGHT)
