"""What is logged as an error, sent to Sentry: which error, where in our code, whose request. Nothing else.

An error's own text, the variables of its stack, the request and the log's arguments may all hold what an agent said
or a token, so an event is made anew from the fields that cannot. All of Sentry's integrations but the one for logs
are off: they would record queries and requests on the way.
"""

from __future__ import annotations

from typing import Any

from hindsight_site.middleware import current_request_id, current_team_id

_KEPT = ("event_id", "timestamp", "platform", "level", "logger", "release", "environment", "server_name", "sdk")
_OURS = {"hindsight_site", "memories", "reflection"}  # our messages are constants
_OF_A_FRAME = ("filename", "function", "module", "lineno", "context_line", "in_app")


def start(dsn: str, environment: str = "") -> None:
    """Send errors to `dsn` from now on, in this process and those forked from it."""
    import logging

    import sentry_sdk
    from sentry_sdk.integrations.atexit import AtexitIntegration
    from sentry_sdk.integrations.logging import LoggingIntegration

    sentry_sdk.init(
        dsn=dsn,
        environment=environment or None,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            LoggingIntegration(level=None, event_level=logging.ERROR),
            AtexitIntegration(callback=lambda pending, timeout: None),  # the default one writes to stderr
        ],
        max_breadcrumbs=0,
        include_local_variables=False,
        send_default_pii=False,
        max_request_body_size="never",
        traces_sample_rate=None,
        before_send=scrubbed,
    )


def scrubbed(event: Any, hint: dict[str, Any]) -> Any:
    """Sentry's event, a dict, with nothing in it but what can be told of any team."""
    kept = {name: event[name] for name in _KEPT if name in event}
    if "logentry" in event:
        kept["logentry"] = {"message": _message(event["logentry"].get("message", ""), hint)}
    errors = [_error(error) for error in event.get("exception", {}).get("values", ())]
    if errors:
        kept["exception"] = {"values": errors}
    request_id, team_id = _ids(hint)
    kept["tags"] = {name: value for name, value in (("request_id", request_id), ("team_id", team_id)) if value}
    return kept


def _message(template: str, hint: dict[str, Any]) -> str:
    """What the log line says before anything is put into it. Code that is not ours may have put it in itself."""
    record = hint.get("log_record")
    is_ours = record is not None and record.name.partition(".")[0] in _OURS
    return template if is_ours or (record is not None and record.args) else "(of another package; see the log)"


def _error(error: dict[str, Any]) -> dict[str, Any]:
    frames = error.get("stacktrace", {}).get("frames", ())
    told = [{name: frame[name] for name in _OF_A_FRAME if name in frame} for frame in frames]
    return {
        "type": error.get("type"),
        "module": error.get("module"),
        "mechanism": {"type": "logging", "handled": True},
        "stacktrace": {"frames": told},
    }


def _ids(hint: dict[str, Any]) -> tuple[str, str]:
    """Of the request: as the log line says, which Django writes when its own context is gone already."""
    request = getattr(hint.get("log_record"), "request", None)
    over = getattr(request, "log_ids", ("", ""))
    return current_request_id.get() or over[0], current_team_id.get() or over[1]
