"""What the pages of the review say: everything their templates need, gathered here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from hindsight_site.accounts import permissions
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.pages import TeamRequest
from hindsight_site.counting import counts
from hindsight_site.refusals import Refused
from memories import judging_queries, team_policy
from memories.actions.settling import open_edges
from memories.enums import Status
from memories.models import Memory
from memories.policies import LIVE
from reflection.enums import ITEM_DONE, Decision, DemoteReason, ItemState, Stratum
from reflection.models import Reflection, ReviewBatch, ReviewItem, Trace, Verdict
from reflection.review import queries, sampling, seconding, settling, turns
from reflection.review.canaries import keep_private
from reflection.review.queries import Outcomes
from reflection.review.settling import can_settle
from reflection.review.statistics import Share, minutes_left
from reflection.review.turns import Turns
from reflection.review.verdicts import is_open
from reflection.review.weeks import opening_after, week_of

POOLED_WEEKS = 4
MOST_DISAGREEMENTS = 20  # on one page, the oldest first
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
    rows = [{"line": line, "title": week_title(line.batch.week), "band": band(line.random.rate)} for line in lines]
    context: dict[str, Any] = {
        "batch": batch,
        "lines": rows,
        "last_week": rows[0] if rows else None,
        "is_first": not rows,
        "pooled": queries.pooled(lines[:POOLED_WEEKS]),
        "pooled_weeks": min(len(lines), POOLED_WEEKS),
        **_elsewhere(team),
        "edited": len(seconding.waiting_for_a_second_look(team, request.user)),
        "may_open": permissions.can(request.membership, permissions.MANAGE),
        "may_review": permissions.can(request.membership, permissions.REVIEW),
    }
    if batch is None:
        return context | _before_the_draw(team, now)
    return context | _progress(team, request.user, batch, now)


def _elsewhere(team: Team) -> dict[str, Any]:
    """What else waits for a person, in one query."""
    memories = Memory.objects.of(team)
    found = counts(
        team,
        disagreements=ReviewItem.objects.of(team).filter(state=ItemState.CONFLICTED),
        flagged=memories.filter(needs_review=True, status__in=LIVE),
        conflicts=open_edges(team),
        quarantined=memories.filter(status=Status.QUARANTINED),
    )
    judging = judging_queries.Waiting(conflicts=found["conflicts"], quarantined=found["quarantined"])
    return {"disagreements": found["disagreements"], "flagged": found["flagged"], "judging": judging}


def _progress(team: Team, reader: User, batch: ReviewBatch, now: datetime) -> dict[str, Any]:
    standing = turns.turns_of(team, reader, batch, now)
    waiting = [place for place in standing.places if place.item.state == ItemState.PENDING]
    outcomes = Counter(place.item.outcome for place in standing.places if place.item.stratum != Stratum.CANARY)
    total = len(standing.places) - standing.count(ItemState.VOID)
    decided = sum(standing.count(state) for state in ITEM_DONE)
    mine_left = sum(place.mine_to_do for place in waiting)
    mine_waiting = sum(place.is_judged for place in waiting)
    return {
        "week": week_title(batch.week),
        "total": total,
        "decided": decided,
        "void": standing.count(ItemState.VOID),
        "waiting": len(waiting),
        "held": sum(place.held and place.mine_to_do for place in waiting),
        "left_to_others": len(waiting) - mine_left - mine_waiting,
        "mine_waiting": mine_waiting,
        "for_second": sum(place.opinions > 0 for place in waiting),
        "conflicted": standing.count(ItemState.CONFLICTED),
        "has_next": standing.next is not None,
        "minutes": minutes_left(queries.pace(team, reader), mine_left),
        "closes": closing(batch, team),
        "next_draw": _next_draw(batch.closes_at, team),
        "outcomes": queries.outcomes_of(outcomes),
        "people": queries.decided_by_person(standing.verdicts),
        "random": batch.population.get(Stratum.RANDOM, {}),
        "is_open": is_open(batch),
    }


def _next_draw(after: datetime, team: Team) -> str:
    """Say when the first sample after a moment is drawn."""
    review = team_policy.of(team).review
    return in_words(opening_after(after, team.time_zone, review.weekday, review.hour), team)


def _before_the_draw(team: Team, now: datetime) -> dict[str, Any]:
    """Why there is no batch: too early in the week, or nothing to draw from, and then why that is."""
    week, review = week_of(now, team.time_zone), team_policy.of(team).review
    has_memories = sampling.reviewable(team, now).exists()
    return {
        "week": week_title(week.name),
        "sizes": review,
        "opens": _next_draw(now, team),
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
    obstacle = _obstacle(request, item, place)
    seen = _verdicts(request, item, place, standing)
    settles = item.state == ItemState.CONFLICTED and can_settle(request.membership, seen["opinions"])
    may_review = permissions.can(request.membership, permissions.REVIEW)
    edited = seconding.awaits(request.team, request.user, item) if may_review else None
    can_decide = (
        settles or edited is not None or (not obstacle and item.state == ItemState.PENDING and not place.is_judged)
    )
    return {
        "item": item,
        "batch": item.batch,
        "week": week_title(item.batch.week),
        "ask": ask if can_decide and ask in {"reason", "edit"} else "",
        "reasons": list(enumerate(DemoteReason.choices, start=1)),
        "can_decide": can_decide,
        # The status of a known answer would give the answer away.
        "hides_status": item.stratum == Stratum.CANARY and not seen["revealed"],
        "settles": settles,
        "seconds": edited is not None,
        "waits_for_second": place.is_judged and item.state == ItemState.PENDING and is_open(item.batch),
        "obstacle": obstacle,
        "held_by": item.claimed_by if place.held else None,
        **_whereabouts(standing, item),
        **seen,
        **_material(item),
    }


def _whereabouts(standing: Turns, item: ReviewItem) -> dict[str, Any]:
    """Where this item stands in the reader's order, and what lies on both sides."""
    before, after = standing.neighbours(item.pk)
    return {
        "number": standing.index(item.pk) + 1,
        "total": len(standing.places),
        "decided": standing.judged - standing.count(ItemState.VOID),
        "before": before,
        "after": after,
        "has_next": standing.next is not None,
        "last": _last_of_mine(standing, item),
    }


def _verdicts(request: TeamRequest, item: ReviewItem, place: turns.Place, batch: Turns) -> dict[str, Any]:
    """What was decided, what may be taken back, and whether the blind is lifted."""
    open_, manages = is_open(item.batch), permissions.can(request.membership, permissions.MANAGE)
    is_private = keep_private(item, is_own=place.mine is not None, manages=manages)
    is_blind = is_private or (item.state == ItemState.PENDING and open_)
    here = [one for one in batch.verdicts if one.item_id == item.pk and one.decision != Decision.CANNOT_TELL]
    standing = [] if is_blind else queries.in_weight(here)
    verdict = next(iter(standing), None) if not is_blind else place.mine
    settled = verdict if verdict is not None and verdict.settles else None
    if item.state == ItemState.CONFLICTED:
        for one in standing:
            one.item = item
        seconding.tell_texts_before(request.team, standing)
    mine = settled if settled is not None and settled.reviewer_id == request.user.pk else place.mine
    return {
        "verdict": verdict,
        "opinions": [one for one in standing if not one.settles],
        "mine": mine,
        "text_before": queries.text_before(item, verdict) if verdict else None,
        "revealed": not is_blind,
        "can_undo": mine is not None and open_ and (mine.settles or item.state != ItemState.RESOLVED),
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
        "alike": queries.alike(item, memory),
        "recalls": queries.recalls_of(memory) if memory.access_count else [],
    }


def _obstacle(request: TeamRequest, item: ReviewItem, place: turns.Place) -> str:
    """Why the reader cannot decide this one, in words; empty when they can."""
    if not permissions.can(request.membership, permissions.REVIEW):
        role = request.membership.get_role_display()
        return f"You are here to read: your role ({role}) does not judge memories."
    if not is_open(item.batch):
        return f"The review of {week_title(item.batch.week).lower()} is closed; its verdicts stand."
    if item.state == ItemState.PENDING and place.is_own_work:
        known = item.stratum == Stratum.CANARY
        return f"You {'judged this memory before' if known else 'wrote this memory yourself'}: somebody else has to."
    if item.state == ItemState.CONFLICTED:
        return "Two people differ on this one, and you are one of them: somebody else has to settle it."
    return ""


def _last_of_mine(standing: Turns, item: ReviewItem) -> dict[str, Any] | None:
    """The reader's latest verdict in this batch, which U takes back; None when it is the one on this page."""
    mine = [(n, p) for n, p in enumerate(standing.places, start=1) if p.mine is not None]
    if not mine:
        return None
    number, place = max(mine, key=lambda pair: pair[1].mine.created_at)  # type: ignore[union-attr]
    return None if place.item.pk == item.pk else {"number": number, "place": place}


def refused_context(
    request: TeamRequest, item: ReviewItem, refusal: Refused, given: Mapping[str, str]
) -> dict[str, Any]:
    """Why a decision was not needed, what stands instead, and whether it can be kept as a second opinion."""
    item.refresh_from_db(fields=["state", "version"])
    is_told = item.state not in (ItemState.PENDING, ItemState.VOID) and item.stratum != Stratum.CANARY
    decided = first_verdict(item) if is_told else None
    is_colleagues = decided is not None and decided.reviewer_id != request.user.pk
    can_add = is_colleagues and refusal.code == "already_decided" and item.state == ItemState.DECIDED
    return {
        "item": item,
        "refusal": refusal,
        "decided": decided,
        "adds": can_add and given.get("decision") != Decision.CANNOT_TELL,
        "given": given,
        "word": dict(Decision.choices).get(given.get("decision", ""), ""),
    }


def conflicts_context(request: TeamRequest) -> dict[str, Any]:
    """The disagreements that nobody settled yet, each with both opinions, and the edits to look at once more."""
    items = list(settling.disagreements(request.team)[:MOST_DISAGREEMENTS])
    standing = queries.standing_verdicts(request.team, items)
    for item in items:
        for one in standing.get(item.pk, []):
            one.item = item
    seconding.tell_texts_before(request.team, [one for those in standing.values() for one in those])
    rows = []
    for item in items:
        opinions = [one for one in standing.get(item.pk, []) if one.decision != Decision.CANNOT_TELL]
        rows.append(
            {
                "item": item,
                "week": week_title(item.batch.week),
                "opinions": opinions,
                "may_settle": can_settle(request.membership, opinions),
            }
        )
    batch = queries.current_batch(request.team, timezone.now())
    share = batch.population.get(Stratum.RANDOM, {}).get("for_two", 0) if batch else 0
    edited = seconding.waiting_for_a_second_look(request.team, request.user)[:MOST_DISAGREEMENTS]
    return {"rows": rows, "most": MOST_DISAGREEMENTS, "for_two": share, "edited": edited}


def first_verdict(item: ReviewItem) -> Verdict | None:
    """The verdict that decided an item."""
    standing = Verdict.objects.of(item.team).filter(item=item, undone_at=None).select_related("reviewer", "item")
    return standing.exclude(decision=Decision.CANNOT_TELL).order_by("-settles", "created_at").first()


def strata(team: Team, batch: ReviewBatch) -> list[dict[str, Any]]:
    """What was drawn from what, and how it ended, by stratum."""
    outcomes = queries.outcomes_by_stratum(team, [batch])
    rows = []
    for stratum in Stratum:
        population = batch.population.get(stratum)
        if not population or stratum == Stratum.CANARY:
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
