"""The four stages of a load run: filling, recalls, mixed traffic, many teams at once."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable
from typing import Any

from tests.evals.load import corpus
from tests.evals.load.callers import Line, Run, ask_together
from tests.evals.load.footprint import Watch
from tests.running_site import Site, until

BULK = 500  # memories in one request: the most that the API takes
PAUSE = (2.0, 8.0)  # seconds between two requests of one of many teams

# One person owns all teams: hashing a password for each would take longer than the run.
_MAKE_TEAMS = """
import json
from hindsight_site.accounts import actions
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import User
from tests import factories
user, _ = User.objects.get_or_create(email="load@hindsight.local")
tokens = {}
for number in range(%d):
    team = actions.create_team(by=SYSTEM, name=f"Load {number}", slug=f"load-{number}", owner=user)
    tokens[team.slug] = factories.token(team, factories.agent(team, "caller"))
print(json.dumps(tokens))
"""

Say = Callable[[str], None]


def make_teams(site: Site, count: int) -> list[str]:
    """So many teams with an agent each. Returns the agents' tokens, which may do everything."""
    output = site.run("shell", "--verbosity", "0", "-c", _MAKE_TEAMS % count)
    return list(json.loads(output.strip().splitlines()[-1]).values())


def fill(site: Site, token: str, first: int, count: int, say: Say) -> dict[str, Any]:
    """Remember `count` memories through the API. Returns how many a second, and how many were merged."""
    line, begun, merged = Line(site.access["url"], token), time.monotonic(), 0
    for start in range(first, first + count, BULK):
        bodies = [corpus.memory(number) for number in range(start, min(start + BULK, first + count))]
        answer = line.post("bulk", "memories/bulk", {"memories": bodies})
        if answer is None:
            raise SystemExit(f"Filling failed: {dict(line.errors)}")
        failed = [result for result in answer["results"] if result.get("error")]
        if failed:
            raise SystemExit(f"A memory was refused: {failed[0]}")
        merged += sum("merged_into" in result for result in answer["results"])
        done = start + len(bodies) - first
        if done % 10_000 == 0:
            say(f"  {done:,} memories, {done / (time.monotonic() - begun):.0f} a second")
    took = time.monotonic() - begun
    return {"memories": count, "seconds": round(took, 1), "a_second": round(count / took, 1), "merged": merged}


def recalls(site: Site, token: str, memories: int, callers: int, seconds: float) -> Run:
    """Nothing but recalls, by so many callers at once."""
    draw = random.Random(callers)
    lines = [Line(site.access["url"], token) for _ in range(callers)]
    return ask_together(
        lines,
        seconds,
        lambda line, number: line.post("recall", "recall", corpus.question(draw.randrange(memories))) and None,
    )


def mixed(site: Site, token: str, memories: int, callers: int, seconds: float) -> tuple[Run, dict[str, Any]]:
    """70 % recalls, 20 % whole traces, 10 % feedback to the caller's last recall; with the memory meanwhile,
    and how long the worker then needs for what is left in the queue."""
    numbers, draw = itertools.count(), random.Random(7)
    last: dict[int, dict[str, Any]] = {}

    def turn(line: Line, number: int) -> None:
        recalled = last.get(id(line))
        what = draw.random()
        if what < 0.2:
            line.post("record_trace", "traces", corpus.trace(next(numbers)))
        elif what < 0.3 and recalled:
            hits = [{"memory": hit["memory"], "adopted": True, "success": True} for hit in recalled["hits"][:2]]
            line.post("feedback", "feedback", {"recall_id": recalled["recall_id"], "items": hits})
            last.pop(id(line))
        else:
            answer = line.post("recall", "recall", corpus.question(draw.randrange(memories)))
            if answer and answer["hits"]:
                last[id(line)] = answer

    with Watch(site.processes) as watch:
        run = ask_together([Line(site.access["url"], token) for _ in range(callers)], seconds, turn)
    begun, waiting = time.monotonic(), _waiting(site)
    until(lambda: _waiting(site) == 0, timeout=1800, every=1.0)
    queue = {"left_at_the_end": waiting, "seconds_to_work_it_off": round(time.monotonic() - begun, 1)}
    return run, {"queue": queue, "memory_mb": watch.summary()}


def many_teams(site: Site, tokens: list[str], seconds: float) -> Run:
    """One caller of each team, all at once, each with the pauses of an agent at work. A team that is shown
    another's memory counts as an error."""

    def turn(line: Line, number: int) -> None:
        time.sleep(random.uniform(*PAUSE))
        place = tokens.index(line.token)
        if number % 5 == 4:
            line.post("record_trace", "traces", corpus.trace(place * 1_000_000 + number))
            return
        answer = line.post("recall", "recall", {"query": f"the door code of team {place}", "min_relevance": 0})
        texts = [hit["snippet"] for hit in answer["hits"]] if answer else []
        if answer and not any(text.startswith(f"Team {place} ") for text in texts):
            line.errors["its own memory was not found"] += 1
        if any(text.startswith("Team ") and not text.startswith(f"Team {place} ") for text in texts):
            line.errors["another team's memory was shown"] += 1

    for place, token in enumerate(tokens):
        line = Line(site.access["url"], token)
        line.post("remember", "memories", {"kind": "fact", "content": f"Team {place} has the door code {place}-37."})
        if line.errors:
            raise SystemExit(f"A team could not be filled: {dict(line.errors)}")
    return ask_together([Line(site.access["url"], token) for token in tokens], seconds, turn)


def _waiting(site: Site) -> int:
    return site.request("GET", "/readyz")[2]["checks"]["queue"]["waiting"]
