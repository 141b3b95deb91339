"""One scenario from its first call to the comparison of the books."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException

from tests.chaos import books
from tests.chaos.places import Place
from tests.chaos.scenarios import Scenario
from tests.chaos.traffic import Ledger, Traffic

BEFORE = 3.0  # seconds of traffic before the harm
AFTER = 2.0  # and after the site works again
_POLL = 0.2


@dataclass(slots=True)
class Outcome:
    """Seconds, counted from the end of the harm, but for `gap`: the longest time without an answered recall."""

    name: str
    harm: float = 0.0
    gap: float = 0.0
    writes_after: float = 0.0
    reflects_after: float = 0.0
    all_done_after: float = 0.0
    acknowledged: int = 0
    retries: str = ""
    wrong: list[str] = field(default_factory=list)


class NotBack(Exception):
    """The site did not come back by itself in time."""


def run(scenario: Scenario, place: Place) -> Outcome:
    """Do the harm to the site of `place`, and tell what became of it."""
    outcome, traffic = Outcome(scenario.name), Traffic(place.site, f"{scenario.name}-{int(time.time())}")
    ledger = traffic.ledger
    traffic.start()
    begun = time.monotonic()
    try:
        _wait(lambda: bool(ledger.recalled_at and ledger.memories and ledger.traces), 60, "no call was answered before")
        time.sleep(BEFORE)
        harmed_at = time.monotonic()
        scenario.act(place, traffic)
        over_at = time.monotonic()
        outcome.harm = over_at - harmed_at
        _watch_return(scenario, place, traffic, over_at, outcome)
        time.sleep(AFTER)
    except (NotBack, AssertionError) as error:
        outcome.wrong.append(str(error))
    finally:
        traffic.stop()
    if not outcome.wrong:
        _compare(scenario, place, ledger, over_at, outcome)
    moments = [begun, *ledger.recalled_at]
    outcome.gap = max((later - earlier for earlier, later in itertools.pairwise(moments)), default=0.0)
    outcome.acknowledged = len(ledger.memories) + len(ledger.traces)
    outcome.retries = ", ".join(f"{count} {what}" for what, count in ledger.retries.most_common())
    if outcome.wrong:
        books.note(place.folder, scenario.name, ledger)
    return outcome


def _watch_return(scenario: Scenario, place: Place, traffic: Traffic, over_at: float, outcome: Outcome) -> None:
    """Wait until recalls, writes and reflections work again. Raises NotBack."""
    ledger = traffic.ledger
    _wait(lambda: bool(ledger.recalled_at) and ledger.recalled_at[-1] > over_at, scenario.within, "no recall answered")
    _wait(lambda: bool(ledger.written_at) and ledger.written_at[-1] > over_at, scenario.within, "no write acknowledged")
    outcome.writes_after = next(at for at in ledger.written_at if at > over_at) - over_at
    reflection = traffic.record()
    if reflection is None:
        raise NotBack("a trace was not recorded afterwards")
    _wait(lambda: _has_ended(place, reflection), scenario.within, "a new reflection did not end")
    outcome.reflects_after = time.monotonic() - over_at


def _compare(scenario: Scenario, place: Place, ledger: Ledger, over_at: float, outcome: Outcome) -> None:
    deadline = time.monotonic() + scenario.within
    found = books.read(place.site)
    while (found.open or found.waiting or found.untold) and time.monotonic() < deadline:
        time.sleep(2.0)
        found = books.read(place.site)
    outcome.all_done_after = time.monotonic() - over_at
    outcome.wrong += books.amiss(ledger, found, may_fail=scenario.may_fail)
    if says := books.contradictions(place.site):
        outcome.wrong.append(says)


def _has_ended(place: Place, reflection: str) -> bool:
    try:
        _, answer = place.site.api("GET", f"reflections/{reflection}")
    except (OSError, HTTPException):
        return False
    return answer.get("status") not in {"queued", "running", None}


def _wait(what: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise NotBack(f"{otherwise} within {seconds:.0f} s")
        time.sleep(_POLL)
