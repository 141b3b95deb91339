"""Why a domain function says no. Faces turn these into their own form (problem+json, a page, a tool error).

`code` is for programs and stable; the message is for people and says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field. `field` is a dotted path such as `steps.3.role`."""

    field: str
    message: str
    code: str = "invalid"


class Refused(Exception):
    """A domain function refused; nothing was changed."""

    status = 422
    code = "refused"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        errors: tuple[FieldError, ...] = (),
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.errors = errors
        self.extra = extra or {}


class Invalid(Refused):
    """The arguments are not of the right form."""

    status = 422
    code = "invalid"


class TooLarge(Refused):
    """Over a size limit; the message says the limit."""

    status = 413
    code = "too_large"


class NotFound(Refused):
    """There is no such thing here, or it is another team's: the two look the same."""

    status = 404
    code = "not_found"


class Forbidden(Refused):
    """The caller is known but may not."""

    status = 403
    code = "forbidden"


class Conflict(Refused):
    """The state does not allow it."""

    status = 409
    code = "conflict"


class Stale(Refused):
    """The caller edited an older revision; `extra["revision"]` is the current one."""

    status = 412
    code = "stale_revision"
