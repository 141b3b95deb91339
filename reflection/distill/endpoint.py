"""Talking to an OpenAI-compatible endpoint: bounded in time, patient, and modest where it refuses.

The `openai` package takes a second to import and stays out of the web processes: it is imported where a
client is made.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hindsight_site import outbound
from reflection.distill.errors import DistillError, NotTaken, explained

if TYPE_CHECKING:
    from openai import OpenAI

TEMPERATURE = 0.2
MAX_ATTEMPTS = 4  # of one request
FIRST_WAIT_SECONDS = 0.5  # doubled after each attempt
LONGEST_WAIT_SECONDS = 20.0  # an endpoint that asks for more is asked again by a later run
MAX_BODY_BYTES = 4 * 1024 * 1024
OVER_BUDGET = "The token budget of one reflection is used up. The trace is kept."

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Where the model is and what it costs.

    `timeout_seconds` is for one request, `budget_seconds` for a whole run with its retries; the latter
    must stay below the queue's time-out. Prices are US dollars per million tokens; 0 means not known.
    `shard_chars`: a trace longer than this is distilled in parts of about this size.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    model_strong: str
    timeout_seconds: float = 60.0
    price_in: float = 0.0
    price_out: float = 0.0
    budget_seconds: float = 100.0
    shard_chars: int = 24_000
    run_tokens: int = 0  # in and out, of one run; no further request is made beyond it. 0: no limit
    is_teams_own: bool = False  # named by a team: only a public address is called


@dataclass(frozen=True, slots=True)
class Shape:
    """What a request asks of an endpoint beyond the messages; not every one takes everything."""

    answer: str = "json_schema"  # then json_object, then text
    temperature: bool = True

    def lesser(self, refusal: NotTaken) -> Shape:
        """The next shape to try. Newer reasoning models refuse a temperature, older servers a schema."""
        if self.temperature and refusal.named_temperature:
            return replace(self, temperature=False)
        if self.answer != "text":
            return replace(self, answer="json_object" if self.answer == "json_schema" else "text")
        if self.temperature:
            return replace(self, temperature=False)
        raise refusal.failure


#: What each (address, model) has been found to take; found out anew by each process.
_shapes: dict[tuple[str, str], Shape] = {}


class Conversation:
    """Requests to one model within one time budget; may be used from several threads."""

    def __init__(self, client: OpenAI, endpoint: ModelEndpoint, model: str) -> None:
        self.model = model
        self.tokens_in = 0
        self.tokens_out = 0
        self._client = client
        self._endpoint = endpoint
        self._deadline = time.monotonic() + endpoint.budget_seconds
        self._lock = threading.Lock()

    def ask(self, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """Return the text of the model's answer, "" when it said nothing. Raises `DistillError`."""
        key = (self._endpoint.base_url, self.model)
        shape = _shapes.get(key, Shape())
        while True:
            try:
                answer = self._ask_patiently(messages, schema, shape)
            except NotTaken as refusal:
                shape = shape.lesser(refusal)
                continue
            _shapes[key] = shape
            return answer

    def cost_usd(self) -> float | None:
        """What the tokens so far cost, or None when no price is set."""
        endpoint = self._endpoint
        if not (endpoint.price_in or endpoint.price_out):
            return None
        return (self.tokens_in * endpoint.price_in + self.tokens_out * endpoint.price_out) / 1_000_000

    def _ask_patiently(self, messages: Sequence[Message], schema: dict[str, Any], shape: Shape) -> str:
        attempt = 1
        while True:
            try:
                return self._ask_once(messages, schema, shape)
            except DistillError as failure:
                asked = failure.retry_after
                wait = FIRST_WAIT_SECONDS * 2 ** (attempt - 1) if asked is None else asked
                if not failure.retryable or attempt == MAX_ATTEMPTS or not self._time_to_wait(wait):
                    raise
            time.sleep(wait)
            attempt += 1

    def _time_to_wait(self, wait: float) -> bool:
        return wait <= LONGEST_WAIT_SECONDS and time.monotonic() + wait < self._deadline

    def _ask_once(self, messages: Sequence[Message], schema: dict[str, Any], shape: Shape) -> str:
        import httpx2  # the HTTP client underneath; its own errors come through while a body is read
        import openai

        if self._endpoint.run_tokens and self.tokens_in + self.tokens_out >= self._endpoint.run_tokens:
            raise DistillError(OVER_BUDGET, retryable=False)
        now = time.monotonic()
        until = min(self._deadline, now + self._endpoint.timeout_seconds)
        if until <= now:
            raise DistillError("The time for this reflection is used up.", retryable=True)
        try:
            with self._client.chat.completions.with_streaming_response.create(
                model=self.model,
                messages=list(messages),  # type: ignore[arg-type]
                temperature=TEMPERATURE if shape.temperature else openai.omit,
                response_format=_response_format(shape, schema),
                timeout=until - now,
            ) as response:
                # Read here and not by the package: an endpoint that keeps a slow line open with blanks
                # never runs into a read time-out.
                body = _read_until(response.iter_bytes(), until)
        except openai.APIError as error:
            raise explained(error, self.model) from error
        except httpx2.HTTPError as error:
            raise DistillError("The model endpoint broke off its answer.", retryable=True) from error
        return self._text(body)

    def _text(self, body: bytes) -> str:
        try:
            completion = json.loads(body)
            choice = completion["choices"][0]
            content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DistillError("The model endpoint sent no completion.", retryable=True) from error
        self._count(completion.get("usage"))
        if refusal or choice.get("finish_reason") == "content_filter":
            raise DistillError("The model refused to look at this trace.", retryable=False)
        return content if isinstance(content, str) else ""

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        with self._lock:
            self.tokens_in += _natural(usage.get("prompt_tokens"))
            self.tokens_out += _natural(usage.get("completion_tokens"))


@contextmanager
def conversation(endpoint: ModelEndpoint, model: str) -> Iterator[Conversation]:
    """Open a conversation; a `DistillError` that leaves it knows the tokens that were used."""
    from openai import OpenAI

    with OpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key or "none",  # local servers want none; the package insists on one
        max_retries=0,  # retried here, within the budget
        http_client=_public_only(endpoint.base_url) if endpoint.is_teams_own else None,
    ) as client:
        talk = Conversation(client, endpoint, model)
        try:
            yield talk
        except DistillError as error:
            error.tokens_in, error.tokens_out = talk.tokens_in, talk.tokens_out
            error.cost_usd = talk.cost_usd()
            raise


def _public_only(url: str) -> Any:
    """An HTTP client for an address that a team named: resolved by us, never private, no redirects.

    Raises `DistillError` when the address may not be called.
    """
    import httpx2

    class Checked(httpx2.HTTPTransport):
        def handle_request(self, request: Any) -> Any:
            try:
                target = outbound.resolve(str(request.url))
            except (outbound.NotAllowed, outbound.Unreachable) as error:
                raise httpx2.ConnectError(str(error), request=request) from error
            request.url = request.url.copy_with(host=target.address)  # the Host header keeps the name
            request.extensions = {**request.extensions, "sni_hostname": target.host}
            return super().handle_request(request)

    try:
        outbound.resolve(url)
    except outbound.NotAllowed as error:
        raise DistillError(f"The team's model endpoint may not be called. {error}", retryable=False) from None
    except outbound.Unreachable as error:
        raise DistillError("The model endpoint cannot be reached.", retryable=True) from error
    return httpx2.Client(transport=Checked(), follow_redirects=False, timeout=None, trust_env=False)  # noqa: S113 - set by request


def _response_format(shape: Shape, schema: dict[str, Any]) -> Any:
    import openai

    if shape.answer == "json_schema":
        named = {"name": "reflection", "strict": True, "schema": schema}
        return {"type": "json_schema", "json_schema": named}
    return {"type": "json_object"} if shape.answer == "json_object" else openai.omit


def _read_until(chunks: Iterator[bytes], until: float) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise DistillError("The model endpoint sent too long an answer.", retryable=False)
        if time.monotonic() > until:
            raise DistillError("The model endpoint took too long to answer.", retryable=True)
    return bytes(body)


def _natural(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
