"""How each operation stands in the OpenAPI document: what the views share is said here, once.

A view says what is its own (form in, form out). From its token scopes, forms and decorators follow
the errors it may answer with, the headers it takes and gives, and the token scope it needs.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity, ResolvedComponent, force_instance, get_doc
from drf_spectacular.utils import Direction, OpenApiParameter

from hindsight_site.api.fields import ProblemOut
from hindsight_site.api.idempotency import MAX_KEY_CHARS
from hindsight_site.problems import CONTENT_TYPE

SENDING = {"POST", "PATCH", "PUT"}
WRITING = {*SENDING, "DELETE"}
MEANINGS = {
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The token lacks the scope, or may not do this to that object.",
    404: "There is no such thing here, or it is another team's: the two look the same.",
    406: "Only JSON is served.",
    409: "The state does not allow it, or the Idempotency-Key was used with another request.",
    412: "Another revision than the current one was edited; `revision` is the current one.",
    413: "Over a size limit; the detail says the limit.",
    415: "The body is not application/json.",
    422: "A value is not valid; `errors` names each field.",
    429: "Too many requests, or over the team's quota. Retry-After says when to come back.",
    503: "Not available at this moment. Retry-After says when to come back.",
}
RETRY = (429, 503)

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="The same key and body gives the same answer, however often it is sent; the same key with "
    "another body is a 409.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": '^"[0-9]{1,9}"$', "example": '"3"'},
    OpenApiParameter.HEADER,
    description="The revision that was edited, as the ETag gave it. A stale one is a 412.",
)


def header(description: str, **schema: Any) -> dict[str, Any]:
    """Return a response header of the document."""
    return {"schema": {"type": "string", **schema}, "description": description}


REQUEST_ID = header("What this request is called in our logs.")
LOCATION = header("Where to find what was made, or the work that was begun.", format="uri-reference")
ETAG = header("The revision, in quotes.", pattern='^"[0-9]+"$')
RETRY_AFTER = {"schema": {"type": "integer", "minimum": 0}, "description": "Seconds until it is worth another try."}


class ContractSchema(AutoSchema):
    """drf-spectacular's reading of a view, with what the contract promises for every operation."""

    def get_summary(self) -> str:
        """The first sentence of what it does."""
        return self._words().partition("\n")[0].partition(". ")[0].removesuffix(".")

    def get_description(self) -> str:  # type: ignore[override]
        needed = getattr(self.view, "token_scopes", {}).get(self.method)
        scope = f"\n\nNeeds the token scope `{needed}`." if needed else ""
        return f"{self._words()}{scope}"

    def get_override_parameters(self) -> list[Any]:
        parameters: list[Any] = []
        if self._takes_key():
            parameters.append(IDEMPOTENCY_KEY)
        if self._takes_revision():
            parameters.append(IF_MATCH)
        return parameters

    def _words(self) -> str:
        """What the operation does: the docstring of its method."""
        return get_doc(getattr(self.view, self.method.lower(), None))

    def _takes_key(self) -> bool:
        handler = getattr(self.view, self.method.lower(), None)
        if getattr(handler, "takes_idempotency_key", False):
            return True
        made = self.get_response_serializers()
        return self.method == "POST" and isinstance(made, dict) and bool({201, 202} & set(made))

    def _takes_revision(self) -> bool:
        """Whether the body may name the edited revision: such a call takes it in If-Match too."""
        if self.method not in SENDING:
            return False
        form = force_instance(self.get_request_serializer())
        return "revision" in getattr(form, "fields", ())

    def _gives_revision(self) -> bool:
        """Whether the answer is one object with a revision."""
        given = force_instance(self.get_response_serializers())
        return "{" in self.path and "revision" in getattr(given, "fields", ())

    def _errors(self) -> list[int]:
        """The error statuses that this operation may answer with."""
        sends, writes = self.method in SENDING, self.method in WRITING
        may = {
            401: True,
            403: writes or bool(getattr(self.view, "token_scopes", {}).get(self.method)),
            404: sends or "{" in self.path or getattr(self.view, "may_be_missing", False),
            406: True,
            409: writes,
            412: self._takes_revision(),
            413: sends,
            415: sends,
            422: sends or any(parameter["in"] == "query" for parameter in self._get_parameters()),
            429: True,
            503: True,
        }
        return [status for status, answers in may.items() if answers]

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies = super()._get_response_bodies(direction)
        for status in self._errors():
            bodies.setdefault(str(status), self._problem(status))
        return bodies

    def _problem(self, status: int) -> dict[str, Any]:
        """Refer to the one description of this error status."""
        name = HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")
        body = self.resolve_serializer(ProblemOut, "response")
        response = {
            "description": MEANINGS[status],
            "headers": {"X-Request-ID": REQUEST_ID, **({"Retry-After": RETRY_AFTER} if status in RETRY else {})},
            "content": {CONTENT_TYPE: {"schema": body.ref}},
        }
        component = ResolvedComponent(
            name=name, type=ResolvedComponent.RESPONSE, schema=response, object=ComponentIdentity(name)
        )
        self.registry.register_on_missing(component)
        return component.ref

    def _get_response_headers_for_code(self, status_code: str, direction: Direction = "response") -> dict[str, Any]:
        headers = super()._get_response_headers_for_code(status_code, direction)
        headers["X-Request-ID"] = REQUEST_ID
        if status_code == "202":
            headers["Location"] = LOCATION
        if status_code == "200" and self._gives_revision():
            headers["ETag"] = ETAG
        return headers
