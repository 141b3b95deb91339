"""Waiting in an answer for the end of work in the background: the `wait` parameter, and the loop behind it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.api.pagination import read_whole

Row = TypeVar("Row")

MAX_WAIT_SECONDS = 20
WAIT = OpenApiParameter(
    "wait",
    {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0},
    description="Seconds to wait for an end state.",
)


class Places:
    """How many may wait at once in one process: each holds a thread, and the others are for who does not wait.

    A thread has one place, however many waits there are within each other in it.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: Counter[int] = Counter()  # waits by thread
        self._lock = threading.Lock()

    @contextmanager
    def granted(self, seconds: float) -> Iterator[float]:
        """How many of these seconds a caller may wait: all, or none while too many wait. Held while it lasts."""
        thread = threading.get_ident()
        with self._lock:
            has_place = thread in self._taken or len(self._taken) < self.most
            if has_place and seconds > 0:
                self._taken[thread] += 1
        try:
            yield seconds if has_place else 0.0
        finally:
            if has_place and seconds > 0:
                with self._lock:
                    self._taken[thread] -= 1
                    if not self._taken[thread]:
                        del self._taken[thread]


PLACES = Places(4)  # `manage.py web` makes it half of its threads


def wait_seconds(request: Request) -> int:
    """The `wait` parameter: 0..20 seconds."""
    return read_whole(request, "wait", default=0, low=0, high=MAX_WAIT_SECONDS)


def until_ended(
    team: Team,
    read: Callable[[], Row],
    is_open: Callable[[Row], bool],
    tell: Callable[[Row], dict[str, Any]],
    *,
    seconds: float,
    every: float,
) -> dict[str, Any]:
    """Tell of a row when it has ended, or as it stands after `seconds`; it is read anew `every` so many.

    As it stands at once, while too many wait already. Call outside a transaction: each look is a short one of its
    own, so that nothing is held while nothing happens but a thread.
    """
    with PLACES.granted(seconds) as allowed:
        until = time.monotonic() + allowed
        while True:
            with team_transaction(team):
                row = read()
                if not is_open(row) or time.monotonic() >= until:
                    return tell(row)
            time.sleep(every)
