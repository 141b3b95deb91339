"""OpenTelemetry traces: a span for each request and each task of the queue, and in it one for each statement.

Spans hold the route's pattern, the method, the status, the ids of request and team, and of statements the verb and
the table. The instrumentation packages for Django and psycopg are not used: they record addresses with what people
searched for, and statements as text.

Where spans go is OTEL_EXPORTER_OTLP_ENDPOINT, over HTTP; the exporter and the SDK read their other OTEL_ variables
(headers, certificate, sampler) themselves.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.util import Finalize
from typing import Any

from django.conf import settings
from django.db import connections
from django.http import HttpRequest, HttpResponse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hindsight_site.middleware import current_request_id, current_team_id

_PROPAGATOR = TraceContextTextMapPropagator()
_STATEMENT = re.compile(r"\s*(?:WITH\b.*?\b)?(SELECT|INSERT|UPDATE|DELETE)\b", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+"?([a-z_]+)"?', re.IGNORECASE)
LAST_SENDING = 2.0  # seconds
_making = threading.Lock()
_providers: dict[int, TracerProvider] = {}  # by process id: each fork sends for itself


def trace_requests(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, inside the one that gives the request its id."""

    def middleware(request: HttpRequest) -> HttpResponse:
        caller = _PROPAGATOR.extract({"traceparent": request.headers.get("traceparent", "")})
        method = request.method or ""
        with (
            _tracer().start_as_current_span(
                method, context=caller, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
            ) as span,
            _statements(),
        ):
            response = get_response(request)
            route = request.resolver_match.route if request.resolver_match else "(none)"
            span.update_name(f"{method} {route}")
            span.set_attributes(
                {"http.request.method": method, "http.route": route, "http.response.status_code": response.status_code}
            )
            _name_ids(span)
            if response.status_code >= 500:
                span.set_status(Status(StatusCode.ERROR))
            return response

    return middleware


def trace_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Django's wrapper of a statement: a span named by its verb and its table."""
    name = summary_of(str(sql))
    with _tracer().start_as_current_span(
        name, kind=SpanKind.CLIENT, record_exception=False, set_status_on_exception=False
    ) as span:
        span.set_attributes({"db.system.name": "postgresql", "db.query.summary": name})
        try:
            return execute(sql, params, many, context)
        except Exception as error:
            span.set_attribute("error.type", type(error).__qualname__)  # its text may hold a row's values
            span.set_status(Status(StatusCode.ERROR))
            raise


def summary_of(sql: str) -> str:
    """Verb and first table of a statement, which is all that is told of it."""
    verb = _STATEMENT.match(sql)
    table = _TABLE.search(sql, verb.end(1) - len(verb[1])) if verb else None
    words = [verb[1].upper() if verb else "SQL", table[1] if table else ""]
    return " ".join(filter(None, words))


def trace_tasks() -> None:
    """Have every task of the queue be a span. Called once, in the process that the pool is forked from."""
    from django_q import signals

    open_spans: list[tuple[Any, Any]] = []  # a pool process works on one task at a time

    def begin(sender: Any, func: Any, task: dict[str, Any], **_: Any) -> None:
        span = _tracer().start_as_current_span(_title(func), kind=SpanKind.CONSUMER, record_exception=False)
        statements = _statements()
        current_team_id.set("")
        open_spans.append((span, statements))
        span.__enter__()
        statements.__enter__()

    def end(sender: Any, func: Any, task: dict[str, Any], **_: Any) -> None:
        if not open_spans:
            return
        span, statements = open_spans.pop()
        current = trace.get_current_span()
        _name_ids(current)
        if not task.get("success", True):
            current.set_status(Status(StatusCode.ERROR))
        statements.__exit__(None, None, None)
        span.__exit__(None, None, None)

    signals.pre_execute.connect(begin, weak=False, dispatch_uid="telemetry")
    signals.post_execute_in_worker.connect(end, weak=False, dispatch_uid="telemetry")


def stop() -> None:
    """Send what this process still has, and end what it sends by. The next span would begin anew.

    A collector that is away does not keep a process from ending: what it has not taken after `LAST_SENDING` is lost.
    """
    if provider := _providers.pop(os.getpid(), None):
        # The SDK waits for up to 30 s, and offers no way to say less; what it sends by dies with the process.
        last = threading.Thread(target=provider.shutdown, name="last-spans", daemon=True)
        last.start()
        last.join(LAST_SENDING)


@contextmanager
def _statements() -> Iterator[None]:
    """Trace the statements of this thread, on whichever database."""
    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(trace_statement))
        yield


def _tracer() -> trace.Tracer:
    """This process's own, made at its first span: threads that send do not live through a fork."""
    with _making:
        provider = _providers.get(os.getpid()) or _provider()
    return provider.get_tracer("hindsight")


def _provider() -> TracerProvider:
    address = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip('/')}/v1/traces"
    service = Resource.create({"service.name": settings.OTEL_SERVICE_NAME})
    provider = TracerProvider(resource=service, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    _providers.clear()
    _providers[os.getpid()] = provider
    Finalize(None, stop, exitpriority=0)  # at the end of a pool process too, which runs no `atexit`
    return provider


def _name_ids(span: Span) -> None:
    for name, value in (("hindsight.request_id", current_request_id), ("hindsight.team_id", current_team_id)):
        if value.get():
            span.set_attribute(name, value.get())


def _title(func: Any) -> str:
    return f"{func.__module__}.{func.__qualname__}" if callable(func) else str(func)[:100]
