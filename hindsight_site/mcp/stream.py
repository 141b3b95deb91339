"""An answer that comes bit by bit, as server-sent events: what a tool says on the way, then its result.

Only a request that asks for progress, of a tool that has some to tell, is answered so; there is nothing to resume.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context, copy_context

import mcp_types as types
from django.http import HttpRequest, StreamingHttpResponse
from mcp_types import RequestId

from hindsight_site.mcp import replies
from hindsight_site.mcp.errors import Fault
from hindsight_site.mcp.offer import Result, Steps

EVENTS = "text/event-stream"


def is_taken(request: HttpRequest) -> bool:
    """Whether the client says that it reads streams. `*/*` does not say so, and `q=0` says the opposite."""
    return any(f"{media.main_type}/{media.sub_type}".lower() == EVENTS for media in request.accepted_types)


def finished(steps: Steps[Result]) -> Result:
    """Do the work and return its result, for a client that reads nothing before it."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def respond(
    first: types.ServerNotification, steps: Steps[dict], ident: RequestId, headers: dict[str, str]
) -> StreamingHttpResponse:
    """Answer with the first notification and all that `steps` bring after it."""
    # The middleware has left when the rest runs: log lines and errors find the request's id in its context.
    events = _events(first, steps, ident, copy_context())
    answer = StreamingHttpResponse(events, content_type=EVENTS, headers=headers)
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"  # proxies: pass each event on at once
    return answer


def _events(first: types.ServerNotification, steps: Steps[dict], ident: RequestId, context: Context) -> Iterator[bytes]:
    """The events. Closed early, as when the client has hung up, the work is closed too."""
    try:
        yield _event(_notified(first))
        while True:
            yield _event(_notified(context.run(next, steps)))
    except StopIteration as end:
        yield _event(replies.result(ident, end.value))
    except Fault as fault:
        yield _event(context.run(replies.error, ident, fault))
    except Exception:
        yield _event(context.run(replies.error, ident, context.run(replies.unexpected)))
    finally:
        steps.close()


def _notified(notification: types.ServerNotification) -> bytes:
    return replies.encoded({"jsonrpc": "2.0", **notification.model_dump(mode="json", by_alias=True, exclude_none=True)})


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"
