"""The first page: how memory is doing, and what waits for a person. It reads from every app."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Q, Subquery, Sum
from django.db.models.functions import JSONObject, TruncDate
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from hindsight_site import plots
from hindsight_site.accounts import permissions
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.counting import counts
from memories import policies
from memories.actions.settling import open_edges
from memories.enums import Kind, RecallStatus, Status, Tier
from memories.models import Feedback, Memory, Recall
from reflection.enums import REFLECTION_OPEN, ReflectionStatus, RejectReason, Stratum
from reflection.invariants import running as integrity
from reflection.models import Reflection, Trace
from reflection.review import queries as review
from reflection.review.statistics import Share

WEEKS = 4
DAYS = 7 * WEEKS  # how far the page looks back: whole weeks, so that every weekday weighs the same


@dataclass(frozen=True)
class Waiting:
    """Something that needs a person, and where to go for it."""

    icon: str
    count: int
    one: str
    many: str
    url: str

    @property
    def text(self) -> str:
        """What it is, in the singular or the plural."""
        return self.one if self.count == 1 else self.many


@require_safe
@team_page()
def overview(request: TeamRequest) -> HttpResponse:
    """Live memories, recalls, reflections, judgements, and what needs a person."""
    team = request.team
    now = timezone.now()
    since = now - timedelta(days=DAYS)
    days = plots.days_until(timezone.localdate(), DAYS)
    live = live_memories(team)
    runs = reflections(team, since)
    found = figures(team, since, now, request.user if permissions.can(request.membership, permissions.REVIEW) else None)
    context = {
        "days": DAYS,
        "live": live,
        "recalls": recalls(team, since, days),
        "feedback": found["feedback"],
        "acceptance": review.pooled(review.batch_lines(team, now, WEEKS)),
        "reflections": runs,
        "refused": refused(team, since),
        "written": written(team, since, days),
        "waiting": waiting(live, runs, found),
        "integrity": integrity.last_check(team),
        "latest": Memory.objects.of(team)
        .filter(status__in=policies.LIVE)
        .exclude(tier=Tier.WORKING)
        .select_related("scope", "agent")
        .order_by("-created_at", "-id")[:5],
        "started": bool(live["total"] or live["quarantined"] or runs["total"] or found["traces"]),
    }
    return render(request, "overview.html", context)


def live_memories(team: Team) -> dict[str, Any]:
    """Count what can be recalled now by kind and tier, and what waits: in quarantine, or flagged."""
    is_live = Q(status__in=policies.LIVE)
    rows = (
        Memory.objects.of(team)
        .filter(is_live | Q(status=Status.QUARANTINED))
        .values("kind", "tier")
        .annotate(
            live=Count("id", filter=is_live),
            flagged=Count("id", filter=is_live & Q(needs_review=True)),
            quarantined=Count("id", filter=Q(status=Status.QUARANTINED)),
        )
    )
    counts = {(row["kind"], row["tier"]): row["live"] for row in rows}
    tiers = [(tier, sum(counts.get((kind, tier), 0) for kind in Kind)) for tier in Tier]
    table = [
        {
            "kind": kind,
            "cells": [counts.get((kind, tier), 0) for tier in Tier],
            "total": sum(counts.get((kind, tier), 0) for tier in Tier),
        }
        for kind in Kind
    ]
    most = max((row["total"] for row in table), default=0) or 1
    for row in table:
        # 0..100 of the widest row, split by tier
        widths = [round(100 * cell / most, 2) for cell in row["cells"]]
        offsets = [round(sum(widths[:i]), 2) for i in range(len(widths))]
        row["segments"] = list(zip(Tier, row["cells"], offsets, widths, strict=True))
    return {
        "table": table,
        "tiers": tiers,
        "total": sum(count for _, count in tiers),
        "flagged": sum(row["flagged"] for row in rows),
        "quarantined": sum(row["quarantined"] for row in rows),
    }


def recalls(team: Team, since: datetime, days: list[date]) -> dict[str, Any]:
    """Count recalls per day by how they ended; `match_rate` is None without any."""
    rows = (
        Recall.objects.of(team)
        .filter(created_at__gte=since)
        .annotate(day=TruncDate("created_at"))
        .values_list("status", "day")
        .annotate(count=Count("id"))
    )
    by_status: dict[str, dict[date, int]] = {status: {} for status in RecallStatus}
    for status, day, count in rows:
        by_status[status][day] = count
    matched = sum(by_status[RecallStatus.MATCHED].values())
    total = matched + sum(by_status[RecallStatus.NO_MATCH].values())
    return {
        "total": total,
        "matched": matched,
        "match_rate": matched / total if total else None,
        "plot": plots.bars(days, by_status[RecallStatus.MATCHED], by_status[RecallStatus.NO_MATCH]),
    }


def feedback(team: Team, since: datetime) -> dict[str, Any]:
    """What became of recalled memories: the share adopted, and how often a task that used one succeeded."""
    return shares_of(Feedback.objects.of(team).filter(created_at__gte=since).aggregate(**FEEDBACK))


FEEDBACK = {
    "told": Count("id"),
    "used": Count("id", filter=Q(adopted=True)),
    "judged": Count("id", filter=Q(adopted=True, success__isnull=False)),
    "succeeded": Count("id", filter=Q(adopted=True, success=True)),
}


def shares_of(told: dict[str, int]) -> dict[str, Any]:
    """The counts of `FEEDBACK` with the two shares that are read from them; None without any."""
    return {
        **told,
        "used_share": told["used"] / told["told"] if told["told"] else None,
        "success_share": told["succeeded"] / told["judged"] if told["judged"] else None,
    }


def reflections(team: Team, since: datetime) -> dict[str, Any]:
    """Count runs by state, with what they cost; the open ones whatever their age."""
    rows = (
        Reflection.objects.of(team)
        .filter(Q(created_at__gte=since) | Q(status__in=REFLECTION_OPEN))
        .values("status")
        .annotate(count=Count("id"), cost=Sum("cost_usd"), last=Max("created_at"))
    )
    found = {row["status"]: row for row in rows}
    states = [(status, found[status]["count"]) for status in ReflectionStatus if status in found]
    costs = [row["cost"] for row in found.values() if row["cost"] is not None]
    total = sum(count for _, count in states)
    return {
        "states": [(status, count, round(100 * count / total, 2)) for status, count in states],
        "total": total,
        "open": sum(count for status, count in states if status in REFLECTION_OPEN),
        "failed": dict(states).get(ReflectionStatus.FAILED, 0),
        "cost": sum(costs) if costs else None,
    }


def refused(team: Team, since: datetime) -> list[tuple[str, str, int]]:
    """Count what the gates refused since then, as (reason, in words, how many), the commonest first."""
    with connection.cursor() as cursor:
        cursor.execute(_REFUSED, [team.pk, since])
        rows = cursor.fetchall()
    labels = dict(RejectReason.choices)
    return [(reason, str(labels.get(reason, reason)), count) for reason, count in rows]


_REFUSED = """
SELECT candidate->>'reason' AS reason, count(*) AS n
FROM reflection_reflection AS run, jsonb_array_elements(run.rejected) AS candidate
WHERE run.team_id = %s AND run.created_at >= %s AND jsonb_typeof(run.rejected) = 'array'
GROUP BY 1 HAVING candidate->>'reason' IS NOT NULL ORDER BY 2 DESC, 1
"""


def by_status(team: Team) -> dict[str, int]:
    """Count all memories by status, working memory and tombstones included; every status is named."""
    counts = dict(Memory.objects.of(team).values_list("status").annotate(n=Count("id")))
    return {status: counts.get(status, 0) for status in Status.values}


def this_week(team: Team, now: datetime) -> Share | None:
    """The acceptance rate of the running week so far: the random sample only. None before its first verdict."""
    batch = review.current_batch(team, now)
    if batch is None:
        return None
    return review.outcomes_by_stratum(team, [batch]).get((batch.pk, Stratum.RANDOM), review.Outcomes()).rate


def written(team: Team, since: datetime, days: list[date]) -> dict[str, Any]:
    """Count the memories that were written on each day, working memory left out."""
    rows = (
        Memory.objects.of(team)
        .filter(created_at__gte=since)
        .exclude(tier=Tier.WORKING)
        .annotate(day=TruncDate("created_at"))
        .values_list("day")
        .annotate(count=Count("id"))
    )
    plot = plots.bars(days, dict(rows))
    return {"total": plot.total, "plot": plot}


def figures(team: Team, since: datetime, now: datetime, reviewer: User | None) -> dict[str, Any]:
    """In one query: what waits in the review (for this reviewer) and among the conflicts, the traces, the feedback."""
    told = Feedback.objects.of(team).filter(created_at__gte=since).order_by()
    parts = JSONObject(**{name: name for name in FEEDBACK})
    row = counts(
        team,
        {"feedback": Subquery(told.values("team_id").annotate(**FEEDBACK).values(parts=parts))},
        to_judge=review.to_judge(team, reviewer, now) if reviewer else review.waiting_items(team, now),
        conflicts=open_edges(team),
        traces=Trace.objects.of(team)[:1],
    )
    return {**row, "feedback": shares_of(row["feedback"] or dict.fromkeys(FEEDBACK, 0))}


def waiting(live: dict[str, Any], runs: dict[str, Any], found: dict[str, Any]) -> list[Waiting]:
    """Return what needs a person, most pressing first; nothing that is zero."""
    listed = reverse("memories")
    all_of_it = [
        Waiting(
            "review",
            found["to_judge"],
            "memory of this week’s sample to judge",
            "memories of this week’s sample to judge",
            reverse("review"),
        ),
        Waiting(
            "quarantined",
            live["quarantined"],
            "memory in quarantine: harmless or not?",
            "memories in quarantine: harmless or not?",
            reverse("quarantine"),
        ),
        Waiting(
            "flag",
            live["flagged"],
            "memory flagged for review",
            "memories flagged for review",
            f"{listed}?needs_review=1",
        ),
        Waiting(
            "warning",
            found["conflicts"],
            "contradiction that nobody has settled",
            "contradictions that nobody has settled",
            reverse("conflicts"),
        ),
        Waiting(
            "failed",
            runs["failed"],
            "reflection that failed",
            "reflections that failed",
            f"{reverse('traces')}?reflection=failed",
        ),
    ]
    return [entry for entry in all_of_it if entry.count]
