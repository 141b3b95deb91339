"""Waiting in an answer for the end of work in the background: the `wait` parameter, and the loop behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
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

    Call outside a transaction: each look is a short one of its own, so that nothing is held while nothing happens.
    """
    until = time.monotonic() + seconds
    while True:
        with team_transaction(team):
            row = read()
            if not is_open(row) or time.monotonic() >= until:
                return tell(row)
        time.sleep(every)
