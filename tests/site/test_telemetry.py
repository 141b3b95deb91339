"""OpenTelemetry and Sentry against endpoints of our own: what is sent is enough to find a fault, and tells nothing."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from hindsight_site.telemetry import errors, packages
from tests import factories
from tests.factories import ApiClient

ROOT = Path(__file__).resolve().parents[2]
SECRET = "the vault opens at 06:41"


@dataclass
class Endpoint:
    """Takes whatever is posted to it."""

    url: str
    bodies: list[tuple[str, bytes]] = field(default_factory=list)  # path, body


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            found.bodies.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Endpoint(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def collector(endpoint: Endpoint, settings) -> Iterator[Endpoint]:
    """The site sends its spans to `endpoint`."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `otel` is not installed")
    from hindsight_site.telemetry import tracing

    settings.OTEL_EXPORTER_OTLP_ENDPOINT = endpoint.url
    traced = "hindsight_site.telemetry.tracing.trace_requests"
    settings.MIDDLEWARE = [settings.MIDDLEWARE[0], traced, *settings.MIDDLEWARE[1:]]
    tracing.stop()
    yield endpoint
    tracing.stop()


def spans(collector: Endpoint) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from hindsight_site.telemetry import tracing

    tracing.stop()
    requests = [ExportTraceServiceRequest.FromString(body) for path, body in collector.bodies if path == "/v1/traces"]
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_a_recall_is_a_span_with_its_ids_and_nothing_of_what_was_said(api: ApiClient, collector: Endpoint) -> None:
    factories.memory(api.agent, content=f"Remember that {SECRET}.")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    asked = {"query": f"is it true that {SECRET}?", "min_relevance": 0}
    answer = api.post("/api/v1/recall?note=vault", asked, headers={"traceparent": parent})
    assert answer.json()["hits"]
    found = spans(collector)
    request = next(span for span in found if span.name == "POST api/v1/recall")
    assert request.trace_id.hex() == parent.split("-")[1]
    told = attributes(request)
    assert told["hindsight.request_id"] == answer["X-Request-ID"]
    assert told["hindsight.team_id"] == str(api.team.pk)
    assert told["http.response.status_code"] == 200
    statements = [span for span in found if span.parent_span_id == request.span_id]
    assert "SELECT memories_memory" in {span.name for span in statements}
    everything = b"".join(body for _, body in collector.bodies)
    for word in ("vault", "06:41", api.secret, api.secret[:11], "WHERE"):
        assert word.encode() not in everything


def test_an_error_is_a_span_that_says_so_without_its_text(api: ApiClient, collector: Endpoint) -> None:
    from django.db import DataError, connection, transaction

    from hindsight_site.telemetry import tracing

    with (
        pytest.raises(DataError),
        transaction.atomic(),
        connection.execute_wrapper(tracing.trace_statement),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT %s::json", [SECRET])
    (span,) = [span for span in spans(collector) if span.status.code == 2]
    assert attributes(span)["error.type"] == "DataError"
    assert SECRET.encode() not in b"".join(body for _, body in collector.bodies)


def test_a_task_of_the_queue_is_a_span(api: ApiClient, collector: Endpoint) -> None:
    from django_q import signals

    from hindsight_site.telemetry import tracing
    from reflection import tasks

    _, reflection = factories.trace(api.agent)
    tracing.trace_tasks()
    try:
        signals.pre_execute.send(sender="django_q", func=tasks.reflect, task={})
        tasks.reflect(str(api.team.pk), str(reflection.pk))
        signals.post_execute_in_worker.send(sender="django_q", func=tasks.reflect, task={"success": True})
    finally:
        signals.pre_execute.disconnect(dispatch_uid="telemetry")
        signals.post_execute_in_worker.disconnect(dispatch_uid="telemetry")
    task = next(span for span in spans(collector) if span.name == "reflection.tasks.reflect")
    assert attributes(task)["hindsight.team_id"] == str(api.team.pk)
    assert b"invoices" not in b"".join(body for _, body in collector.bodies)


_SPANS_FOR = """
import sys, time
from hindsight_site.telemetry import tracing
with tracing._tracer().start_as_current_span("a span"):
    pass
sys.stdout.write(str(time.monotonic()))
sys.stdout.flush()
"""


def test_a_collector_that_never_answers_does_not_keep_a_process_from_ending(tmp_path: Path) -> None:
    tracing = pytest.importorskip("hindsight_site.telemetry.tracing", reason="the extra `otel` is not installed")
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections, and says nothing
        environment = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{deaf.getsockname()[1]}",
            "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        }
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", _SPANS_FOR, "--data-dir", str(tmp_path)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert time.monotonic() - float(done.stdout) < tracing.LAST_SENDING + 3


@pytest.mark.parametrize(
    ("sql", "summary"),
    [
        ('SELECT "a"."b" FROM "memories_memory" WHERE x = \'FROM y\'', "SELECT memories_memory"),
        ("INSERT INTO reflection_trace (a) VALUES (%s)", "INSERT reflection_trace"),
        ('UPDATE "memories_memory" SET a = 1', "UPDATE memories_memory"),
        ("WITH near AS (SELECT id FROM memories_memoryvector) SELECT 1", "SELECT memories_memoryvector"),
        ("SAVEPOINT a", "SQL"),
        ("", "SQL"),
    ],
)
def test_of_a_statement_verb_and_table_are_told(sql: str, summary: str) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `otel` is not installed")
    from hindsight_site.telemetry.tracing import summary_of

    assert summary_of(sql) == summary


_FAIL = f"""
import logging
log = logging.getLogger("reflection.pipeline")
token = "hs_abcdefgh_{"x" * 43}"
try:
    raise ValueError("{SECRET} " + token)
except ValueError:
    log.exception("reflection failed", extra={{"content": "{SECRET}"}})
logging.getLogger("django-q").error(f"it broke: {SECRET}")
log.warning("no error")
"""


def test_an_error_reaches_sentry_with_nothing_of_what_was_said(endpoint: Endpoint, tmp_path: Path) -> None:
    pytest.importorskip("sentry_sdk", reason="the extra `sentry` is not installed")
    dsn = endpoint.url.replace("http://", "http://key@") + "/7"
    environment = {**os.environ, "SENTRY_DSN": dsn, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", _FAIL, "--data-dir", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    everything = b"".join(body for _, body in endpoint.bodies)
    assert everything.count(b'"event_id"') >= 2, done.stderr
    assert b"ValueError" in everything
    assert b"reflection failed" in everything
    for word in ("vault", "06:41", "hs_abcdefgh", "no error"):
        assert word.encode() not in everything


def test_an_event_is_made_anew_from_what_may_be_told() -> None:
    event = {
        "event_id": "1",
        "level": "error",
        "request": {"url": f"http://x/?q={SECRET}", "headers": {"Authorization": SECRET}, "data": SECRET},
        "breadcrumbs": {"values": [{"message": SECRET}]},
        "extra": {"text": SECRET},
        "user": {"email": SECRET},
        "logentry": {"message": SECRET, "params": [SECRET]},
        "exception": {
            "values": [
                {
                    "type": "KeyError",
                    "value": SECRET,
                    "stacktrace": {"frames": [{"function": "f", "lineno": 3, "vars": {"text": SECRET}}]},
                }
            ]
        },
        "a field of a later version": SECRET,
    }
    told = errors.scrubbed(event, {})
    assert SECRET not in repr(told)
    assert told["exception"]["values"][0]["stacktrace"]["frames"] == [{"function": "f", "lineno": 3}]


def test_a_setting_without_its_package_is_one_clear_line() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^SENTRY_DSN is set, .*: pip install sentry-sdk, or unset"):
        packages.need("SENTRY_DSN", "no_such_package.part", "sentry-sdk")
    packages.need("SENTRY_DSN", "json", "nothing")


def test_nothing_of_it_is_imported_when_it_is_off(tmp_path: Path) -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith(('sentry_sdk', 'opentelemetry.sdk'))])"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("SENTRY_DSN", "OTEL_EXPORTER_OTLP_ENDPOINT")
    }
    environment["DATABASE_URL"] = "postgresql://127.0.0.1:1/none"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", code, "--data-dir", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "[]", done.stderr
