"""How long a question may take, and what happens to a search that is late: it is left out, and said so.

An agent waits for the answer before it can go on, so a thin answer in time beats a full one too late.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

LEAST_MS = 20  # of a statement: less would cancel what is nearly done

Result = TypeVar("Result")


class Unanswered(Exception):
    """A search that is made elsewhere than in the database could not answer, or not in time."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock; `None` for as long as it takes."""

    at: float | None

    @classmethod
    def after(cls, milliseconds: float) -> Deadline:
        """Return the deadline so many milliseconds from now; 0 for none."""
        return cls(time.monotonic() + milliseconds / 1000 if milliseconds > 0 else None)

    def left(self) -> float | None:
        """Seconds left, not below zero; None without a deadline."""
        return None if self.at is None else max(0.0, self.at - time.monotonic())


class Search:
    """Statements that may be cancelled without losing the transaction they run in."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline

    def attempt(self, search: Callable[[], Result], otherwise: Result) -> tuple[Result, bool]:
        """Return what `search` returns, or `otherwise` and False when it was late or could not answer."""
        try:
            return search(), True
        except Unanswered as error:
            logger.warning("a search was left out: %s", error)
            return otherwise, False
        except OperationalError as error:  # cancelled by statement_timeout
            if getattr(error.__cause__, "sqlstate", "") != "57014":
                raise
            logger.warning("a search was cancelled: over its deadline")
            _end()
            _begin(self.deadline)
            return otherwise, False


@contextmanager
def searching(deadline: Deadline) -> Iterator[Search]:
    """Run searches under the deadline, each with at most half of what is left at the start.

    A savepoint keeps the transaction alive when one is cancelled; going back to it at the end undoes
    nothing but the settings, as searches only read. Just-in-time compilation costs more than it saves here.
    """
    _begin(deadline)
    yield Search(deadline)
    _end()


def _begin(deadline: Deadline) -> None:
    left = deadline.left()
    timeout = 0 if left is None else max(LEAST_MS, int(left * 500))
    # Statements that nobody reads from travel together: a round trip costs as much as a small query.
    with connection.cursor() as cursor:
        cursor.execute(
            "SAVEPOINT hs_search; SELECT set_config('jit', 'off', true), set_config('statement_timeout', %s, true)",
            [str(timeout)],
        )


def _end() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK TO SAVEPOINT hs_search; RELEASE SAVEPOINT hs_search")
