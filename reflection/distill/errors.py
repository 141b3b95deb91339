"""What can go wrong with a model endpoint, in words that are safe to store and to show.

What an endpoint says itself is never passed on: it may echo the key or the trace.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openai import APIError, APIStatusError

NO_QUOTA_WAIT_SECONDS = 3_600.0

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|string_above_max_length"
)
_FORMAT = re.compile(r"response_format|json[_ ]?schema|json[_ ]?object|grammar|guided|not implemented")
_FILTERED = re.compile(r"content_filter|content management policy")


class DistillError(Exception):
    """A model could not do it. The message is short, safe to show, and free of secrets and trace text.

    `retryable`: a later run may succeed, after `retry_after` seconds where that is known. The tokens that
    were used all the same are on `tokens_in` and `tokens_out`, what they cost on `cost_usd` (None: not known).
    """

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.tokens_in = 0
        self.tokens_out = 0
        self.cost_usd: float | None = None


class NotTaken(Exception):
    """The endpoint does not take a request in this shape (400, 422); another shape may do."""

    def __init__(self, error: APIStatusError, model: str) -> None:
        super().__init__()
        self.named_temperature = "temperature" in f"{error.param} {error.message}".lower()
        self.failure = DistillError(
            f"The model endpoint does not take our requests to {model} ({error.status_code}).",
            retryable=False,
        )


def explained(error: APIError, model: str) -> DistillError | NotTaken:
    """Return what an error of the client package means for a run."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return DistillError("The model endpoint took too long to answer.", retryable=True)
    if not isinstance(error, openai.APIStatusError):
        return DistillError("The model endpoint cannot be reached.", retryable=True)
    status = error.status_code
    if status in (400, 413, 422):
        return _about_the_request(error, model)
    if status == 501 or (status == 500 and _FORMAT.search(f"{error.message}".lower())):
        return NotTaken(error, model)  # some servers fail where they do not know the format that is asked for
    if status in (401, 403):
        return DistillError(f"The model endpoint refused the API key ({status}).", retryable=False)
    if status == 404:
        return DistillError(f"The model endpoint has no model {model} at this address (404).", retryable=False)
    if error.code == "insufficient_quota":
        return DistillError(
            "The account at the model endpoint has no quota left.",
            retryable=True,
            retry_after=NO_QUOTA_WAIT_SECONDS,
        )
    retryable = status in (408, 409, 425, 429) or status >= 500
    return DistillError(
        f"The model endpoint answered with status {status}.",
        retryable=retryable,
        retry_after=retry_after(error.response.headers.get("retry-after")) if retryable else None,
    )


def _about_the_request(error: APIStatusError, model: str) -> DistillError | NotTaken:
    said = f"{error.code} {error.message}".lower()
    if error.status_code == 413 or _TOO_LONG.search(said):
        return DistillError(f"The trace is too long for the model {model}.", retryable=False)
    if _FILTERED.search(said):
        return DistillError("The model endpoint's content filter refused this trace.", retryable=False)
    return NotTaken(error, model)


def retry_after(header: str | None) -> float | None:
    """Seconds from a Retry-After header, which holds a number or a date; None when it holds neither."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), 24 * 3_600.0) if seconds == seconds else None  # not for NaN
