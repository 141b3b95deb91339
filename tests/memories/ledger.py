"""What must have become of every memory, calculated from the log of a year alone.

Written apart from the product's rules, from the table in the domain: no function of theirs is used. Days
are plain numbers, a memory is a dictionary, and the numbers of the default policy stand in the text.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

NEVER = -10_000.0


@dataclass
class Books:
    """The end of the year: each memory's page, and of each sweep what it spared, evicted and changed."""

    pages: dict[Any, dict[str, Any]] = field(default_factory=dict)
    spared: list[int] = field(default_factory=list)
    evicted: list[int] = field(default_factory=list)

    def statuses(self) -> Counter[str]:
        return Counter(page["status"] for page in self.pages.values())


def balance(log, sweeps: list[float], capacity: int) -> Books:
    """Go through the year once, sweep by sweep."""
    books, waiting = Books(), sorted(log, key=lambda entry: entry.day)
    place = 0
    for noon in sweeps:
        while place < len(waiting) and waiting[place].day <= noon:
            _enter(books.pages, waiting[place])
            place += 1
        books.spared.append(sum(_close_day(page, noon) for page in books.pages.values()))
        books.evicted.append(_make_room(books.pages, noon, capacity))
    for entry in waiting[place:]:
        _enter(books.pages, entry)
    return books


def _enter(pages, entry) -> None:
    what, day, facts = entry.what, entry.day, entry.facts
    if what == "born":
        pages[entry.memory] = {
            "id": entry.memory, "born": day, "status": "live", "good": 2 * facts["belief"],
            "bad": 2 - 2 * facts["belief"], "hits": 0, "seen": day, "aside": 0, "uses": 0, "wins": 0,
            "approved": NEVER, "restored": NEVER, "pinned": False, "flag": False, "lost": set(), "since": None,
            "spoken": set(), "cap": 0.8, **facts,
        }  # fmt: skip
        return
    page = pages[entry.memory]
    if what == "hit":
        page["hits"] += 1
        page["aside"] += 1
        page["seen"] = max(page["seen"], day)
    elif what == "told" and facts["adopted"]:
        page["aside"] = 0
        page["uses"] += 1
        page["wins"] += facts["success"]
        _believe(page, (facts["voice"], int(day)), facts["success"])
    elif what == "approved":
        page.update(approved=day, status="live", flag=False, uses=0, wins=0, lost=set(), streak_at=None)
        page["good"] += 1
        page["cap"] = 0.95
        if page["kind"] != "task" and not page["transient"]:
            page["tier"] = "semantic"
    elif what == "demoted":
        page.update(status="demoted", flag=False)
    elif what == "pinned":
        page["pinned"] = True
    elif what == "restored":
        page.update(status="live", seen=max(page["seen"], day), restored=day, ends=None, why=None)


def _believe(page, voice_and_day, success: bool) -> None:
    """One observation a day from each agent; successes do not carry the belief above the cap."""
    if voice_and_day in page["spoken"]:
        return
    page["spoken"].add(voice_and_day)
    if not success:
        page["bad"] += 1
        return
    most = page["bad"] * page["cap"] / (1 - page["cap"])
    page["good"] = max(page["good"], min(page["good"] + 1, most))


def _close_day(page, noon: float) -> int:
    """Apply the rules to one page; 1 when it was spared."""
    protected = page["pinned"] or noon - page["approved"] < 90 or noon - page["restored"] < 30
    fate = _fate(page, noon)
    if fate and protected:
        _weigh(page, noon, protected)
        return 1
    if fate in ("removed", "deleted"):
        page["status"] = "forgotten"
    elif fate:
        page.update(status="archived", why=fate, since=noon)
    elif page["status"] == "live" and page["tier"] != "working":
        _weigh(page, noon, protected)
    return 0


def _fate(page, noon: float) -> str:
    idle = noon - page["seen"]
    if page["status"] == "archived":
        gone = page["why"] == "idle episode" and noon - max(page["since"], page["seen"]) >= 180
        return "deleted" if gone else ""
    if page["status"] != "live":
        return ""
    if page["tier"] == "working":
        return "removed" if page["ends"] <= noon else ""
    if page["ends"] is not None and page["ends"] <= noon:
        return "expired"
    tried = page["kind"] == "experience" and page["uses"] >= 5
    if page["good"] / (page["good"] + page["bad"]) < 0.3 and not tried:
        return "unlikely"
    if page["tier"] == "semantic":
        return ""
    limit = {"task": 60, "experience": 90}.get(page["kind"], 180)
    if idle < limit or (limit == 180 and page["hits"] >= 3):
        return ""
    return "idle episode" if page["kind"] == "task" else "idle"


def _weigh(page, noon: float, protected: bool) -> None:
    if page["status"] != "live" or page["tier"] == "working":
        return
    if page["kind"] == "experience" and page["uses"] >= 5 and page["wins"] / page["uses"] < 0.3:
        page["flag"] = True
    halves = int(page["flag"] and not page["pinned"])
    off = 0.0
    if not protected:
        idle, factual = noon - page["seen"], page["kind"] in ("fact", "preference", "relation")
        if page["tier"] != "semantic" and idle >= (90 if factual else 30) and not (factual and page["hits"] >= 3):
            halves += 1
        if page["transient"] and noon - page["born"] >= 1:
            halves += 1
        if page["kind"] == "experience":
            off = 0.1 * (page["aside"] // 5)
    page["weight"] = max(0.0, 0.5**halves - off)


def _make_room(pages, noon: float, capacity: int) -> int:
    scopes = defaultdict(list)
    for page in pages.values():
        if page["status"] == "live" and page["tier"] != "working":
            scopes[page["scope"]].append(page)
    evicted = 0
    for full in scopes.values():
        free = [p for p in full if not (p["pinned"] or noon - p["approved"] < 90 or noon - p["restored"] < 30)]
        free.sort(key=lambda page: (_worth(page, noon), page["id"]))
        for page in free[: max(0, len(full) - capacity)]:
            page.update(status="archived", why="full", since=noon)
            evicted += 1
    return evicted


def _worth(page, noon: float) -> float:
    often = min(1.0, math.log(1 + page["hits"], 101))
    fresh = math.exp(-math.log(2) * max(0.0, noon - page["seen"]) / 30)
    return 0.4 * page["good"] / (page["good"] + page["bad"]) + 0.3 * often + 0.3 * fresh
