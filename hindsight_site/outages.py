"""The database is away, is restarting, or gave up on a statement: a 503 that says when to come back, no 500."""

from __future__ import annotations

import logging

from django.db import InterfaceError, InternalError, OperationalError

logger = logging.getLogger(__name__)

RETRY_AFTER = 5  # seconds: a restart takes about as long
DETAIL = (
    f"The database does not answer at the moment, or not in time. Try again in {RETRY_AFTER} s; with an "
    "Idempotency-Key a repeated POST does nothing twice."
)
# What psycopg does not count among operational errors: a standby that was not promoted yet, and a
# transaction that was ended because it took too long, or did nothing for too long.
_ALSO = {"25006", "25P03", "25P04"}


def is_outage(error: BaseException | None) -> bool:
    """Whether the database is to blame, and the same request may well succeed in a moment.

    Operational errors are that: no connection, a server that shuts down or recovers, too many clients, a
    statement or a lock that timed out, a deadlock, a full disk. Only one kind of them would come again: what
    is over a limit of PostgreSQL's own (class 54).
    """
    if isinstance(error, OperationalError | InterfaceError):
        return not (_sqlstate(error) or "").startswith("54")
    return isinstance(error, InternalError) and _sqlstate(error) in _ALSO


def note(error: BaseException) -> None:
    """Log it in a line: which kind it was, and none of its text."""
    kind = type(error.__cause__ or error).__name__
    logger.warning("the database does not answer", extra={"error": kind, "sqlstate": _sqlstate(error)})


def _sqlstate(error: BaseException) -> str | None:
    """PostgreSQL's code for it. Django wraps the driver's error, which has the code."""
    return getattr(error.__cause__, "sqlstate", None)
