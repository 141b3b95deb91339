"""What the pages of the review say: everything their templates need, gathered here."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from hindsight_site.accounts import permissions
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.pages import TeamRequest
from memories import judging_queries, team_policy
from memories.enums import Status
from memories.models import Memory
from memories.policies import LIVE
from reflection.enums import Decision, DemoteReason, ItemState, Stratum
from reflection.models import Reflection, ReviewBatch, ReviewItem, Trace, Verdict
from reflection.review import queries, sampling, turns
from reflection.review.queries import Outcomes
from reflection.review.statistics import Share, minutes_left
from reflection.review.turns import Turns
from reflection.review.verdicts import is_open
from reflection.review.weeks import opening_after, week_of

POOLED_WEEKS = 4
HAN = re.compile(r"[㐀-䶿一-鿿]")
GONE_IN_WORDS: dict[str, str] = {
    Status.FORGOTTEN: "This memory was forgotten after it was drawn: its words and evidence are gone.",
    Status.REJECTED: "This memory was rejected for good after it was drawn.",
    Status.SUPERSEDED: "This memory was replaced by another one after it was drawn.",
}


def home_context(request: TeamRequest) -> dict[str, Any]:
    """The week, what to do next, the rates and the weeks before."""
    team, now = request.team, timezone.now()
    batch = queries.current_batch(team, now)
    lines = queries.batch_lines(team, now)
    rows = [
        {"line": line, "title": week_title(line.batch.week), "band": band(line.random.rate)} for line in lines
    ]
    context: dict[str, Any] = {
        "batch": batch,
        "lines": rows,
        "last_week": rows[0] if rows else None,
        "pooled": queries.pooled(lines[:POOLED_WEEKS]),
        "pooled_weeks": min(len(lines), POOLED_WEEKS),
        "flagged": Memory.objects.of(team).filter(needs_review=True, status__in=LIVE).count(),
        "judging": judging_queries.waiting(team),
        "may_open": permissions.can(request.membership, permissions.MANAGE),
        "may_review": permissions.can(request.membership, permissions.REVIEW),
    }
    if batch is None:
        return context | _before_the_draw(team, now)
    return context | _progress(team, request.user, batch, now)


def _progress(team: Team, reader: User, batch: ReviewBatch, now: datetime) -> dict[str, Any]:
    standing = turns.turns_of(team, reader, batch, now)
    waiting = [place for place in standing.places if place.item.state == ItemState.PENDING]
    outcomes = queries.outcomes_by_stratum(team, [batch])
    total = len(standing.places) - standing.count(ItemState.VOID)
    decided = standing.count(ItemState.DECIDED)
    mine_left = sum(place.mine_to_do for place in waiting)
    return {
        "week": week_title(batch.week),
        "total": total,
        "decided": decided,
        "void": standing.count(ItemState.VOID),
        "waiting": len(waiting),
        "held": sum(place.held and place.mine_to_do for place in waiting),
        "left_to_others": len(waiting) - mine_left,
        "has_next": standing.next is not None,
        "minutes": minutes_left(queries.pace(team, reader), mine_left),
        "closes": closing(batch, team),
        "outcomes": sum(outcomes.values(), Outcomes()),
        "people": queries.decided_by_person(team, batch),
        "random": batch.population.get(Stratum.RANDOM, {}),
        "is_open": is_open(batch),
    }


def _before_the_draw(team: Team, now: datetime) -> dict[str, Any]:
    """Why there is no batch: too early in the week, or nothing to draw from, and then why that is."""
    week, review = week_of(now, team.time_zone), team_policy.of(team).review
    has_memories = sampling.reviewable(team, now).exists()
    return {
        "week": week_title(week.name),
        "opens": in_words(opening_after(now, team.time_zone, review.weekday, review.hour), team),
        "has_memories": has_memories,
        "has_traces": has_memories or Trace.objects.of(team).exists(),
        "last_run": None
        if has_memories
        else Reflection.objects.of(team).select_related("trace").order_by("-created_at", "-id").first(),
    }


def item_context(request: TeamRequest, item: ReviewItem, ask: str) -> dict[str, Any]:
    """One memory to judge. Until it is decided, nothing tells what the machine or a colleague thought."""
    standing = turns.turns_of(request.team, request.user, item.batch)
    place = standing.places[standing.index(item.pk)]
    item.state = place.item.state  # it may have become void just now
    obstacle = _obstacle(request, item)
    can_decide = not obstacle and item.state == ItemState.PENDING
    return {
        "item": item,
        "batch": item.batch,
        "week": week_title(item.batch.week),
        "ask": ask if can_decide and ask in {"reason", "edit"} else "",
        "reasons": list(enumerate(DemoteReason.choices, start=1)),
        "can_decide": can_decide,
        "obstacle": obstacle,
        "held_by": place.item.claimed_by if place.held else None,
        **_whereabouts(standing, item),
        **_verdicts(request, item, place),
        **_material(item),
    }


def _whereabouts(standing: Turns, item: ReviewItem) -> dict[str, Any]:
    """Where this item stands in the reader's order, and what lies on both sides."""
    before, after = standing.neighbours(item.pk)
    return {
        "number": standing.index(item.pk) + 1,
        "total": len(standing.places),
        "decided": standing.count(ItemState.DECIDED),
        "before": before,
        "after": after,
        "has_next": standing.next is not None,
        "last": _last_of_mine(standing, item),
    }


def _verdicts(request: TeamRequest, item: ReviewItem, place: turns.Place) -> dict[str, Any]:
    """What was decided, what may be taken back, and whether the blind is lifted."""
    verdict, open_ = first_verdict(item), is_open(item.batch)
    return {
        "verdict": verdict,
        "mine": place.mine,
        "text_before": queries.text_before(verdict) if verdict else None,
        "revealed": item.state != ItemState.PENDING or not open_,
        "can_undo": place.mine is not None and open_,
        "may_undo_last": open_ and permissions.can(request.membership, permissions.REVIEW),
    }


def _material(item: ReviewItem) -> dict[str, Any]:
    """The memory, what it rests on, and what stands beside it."""
    memory = item.memory
    is_gone = item.state == ItemState.VOID or memory.status == Status.FORGOTTEN
    return {
        "memory": memory,
        "language": language(memory.content),
        "gone": GONE_IN_WORDS.get(memory.status, "") if is_gone else "",
        "changed_since_drawn": item.state == ItemState.PENDING and queries.changed_since_drawn(item),
        "structure_template": f"memories/structures/{memory.kind}.html",
        "evidence": queries.evidence_of(memory),
        "alike": queries.alike(memory),
        "recalls": queries.recalls_of(memory),
    }


def _obstacle(request: TeamRequest, item: ReviewItem) -> str:
    """Why the reader cannot decide this one, in words; empty when they can."""
    if not permissions.can(request.membership, permissions.REVIEW):
        role = request.membership.get_role_display()
        return f"You are here to read: your role ({role}) does not judge memories."
    if not is_open(item.batch):
        return f"The review of {week_title(item.batch.week).lower()} is closed; its verdicts stand."
    if item.state == ItemState.PENDING and turns.written_by(request.team, request.user, [item.memory_id]):
        return "You wrote this memory yourself: somebody else has to judge it."
    return ""


def _last_of_mine(standing: Turns, item: ReviewItem) -> dict[str, Any] | None:
    """The reader's latest verdict in this batch, which U takes back; None when it is the one on this page."""
    mine = [(n, p) for n, p in enumerate(standing.places, start=1) if p.mine is not None]
    if not mine:
        return None
    number, place = max(mine, key=lambda pair: pair[1].mine.created_at)  # type: ignore[union-attr]
    return None if place.item.pk == item.pk else {"number": number, "place": place}


def first_verdict(item: ReviewItem) -> Verdict | None:
    """The verdict that decided an item."""
    standing = (
        Verdict.objects.of(item.team).filter(item=item, undone_at=None).select_related("reviewer", "item")
    )
    return standing.exclude(decision=Decision.CANNOT_TELL).order_by("created_at").first()


def strata(team: Team, batch: ReviewBatch) -> list[dict[str, Any]]:
    """What was drawn from what, and how it ended, by stratum."""
    outcomes = queries.outcomes_by_stratum(team, [batch])
    rows = []
    for stratum in Stratum:
        population = batch.population.get(stratum)
        if not population:
            continue
        ended = outcomes.get((batch.pk, stratum), Outcomes())
        rate = ended.rate if stratum == Stratum.RANDOM else None
        rows.append(
            {
                "stratum": stratum.value,
                "population": population,
                "outcomes": ended,
                "rate": rate,
                "band": band(rate),
            }
        )
    return rows


def band(rate: Share | None) -> dict[str, str] | None:
    """Where a share and its interval lie on a line of 100 units; None when there is nothing to draw."""
    if rate is None:
        return None
    return {
        "low": f"{rate.low * 100:.1f}",
        "high": f"{rate.high * 100:.1f}",
        "mean": f"{rate.share * 96:.1f}",
    }


def week_title(name: str) -> str:
    """Write an ISO week for people: "2026-W49" is "Week 49 of 2026"."""
    year, number = name.split("-W")
    return f"Week {int(number)} of {year}"


def closing(batch: ReviewBatch, team: Team) -> str:
    """Say when a batch closes; midnight is said as the last minute of the day."""
    return in_words(batch.closes_at - timedelta(minutes=1), team)


def in_words(moment: datetime, team: Team) -> str:
    """Write a moment by the team's clock: "Sunday 6 December, 23:59 Europe/Paris"."""
    local = moment.astimezone(ZoneInfo(team.time_zone))
    return f"{local:%A} {local.day} {local:%B, %H:%M} {team.time_zone}"


def language(text: str) -> str:
    """The language to read a text out in, as far as its script tells: "zh", or empty for unknown."""
    return "zh" if len(HAN.findall(text)) * 4 > len(text) else ""
