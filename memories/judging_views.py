"""Pages on which people judge: conflicts side by side, quarantine with its reasons, sharing, taking apart."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from hindsight_site import cursors
from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from memories import actions, judging_queries, queries, scopes
from memories.enums import Resolution
from memories.models import Merge

PAGE_SIZE = 10
LATELY = 10

_SUPERSEDED = "The other is superseded: it stays in the history and is recalled no more."
EFFECTS = {
    Resolution.KEEP_LEFT: f"Kept the left one. {_SUPERSEDED}",
    Resolution.KEEP_RIGHT: f"Kept the right one. {_SUPERSEDED}",
    Resolution.BOTH: "Both stay, with when each of them holds. They are not contested any more.",
    Resolution.NEITHER: "Both are demoted: they stay in the history and are recalled no more.",
}


@require_safe
@team_page()
def conflicts_page(request: TeamRequest) -> HttpResponse:
    """What contradicts each other, the two sides next to each other, and what was settled lately."""
    team = request.team
    page = cursors.newest_first(judging_queries.conflicts(team, None), request.GET, PAGE_SIZE)
    evidence = judging_queries.evidence_of(team, [side for edge in page.rows for side in (edge.target, edge.source)])
    context = {
        "page": page,
        "conflicts": [
            {
                "edge": edge,
                "left": edge.target,
                "right": edge.source,
                "left_evidence": evidence.get(edge.target_id, []),
                "right_evidence": evidence.get(edge.source_id, []),
            }
            for edge in page.rows
        ],
        "settled": judging_queries.latest_settlements(team, LATELY),
    }
    return render(request, "memories/conflicts.html", context)


@require_POST
@team_page(permissions.REVIEW)
def conflict_resolve(request: TeamRequest, conflict_id: uuid.UUID) -> HttpResponse:
    """Settle one conflict; the page that follows offers to undo it."""
    edge = judging_queries.conflict(request.team, None, conflict_id)
    decision = request.POST.get("decision", "")
    done = _tried(
        request,
        lambda: actions.settle_conflict(
            team=request.team,
            by=person(request.user),
            conflict=edge,
            decision=decision,
            condition=request.POST.get("condition", "").strip()[:300],
            note=request.POST.get("note", "").strip()[:1000],
        ),
    )
    if done:
        undo = reverse("conflict_undo", args=[conflict_id])
        messages.success(request, EFFECTS[Resolution(decision)], extra_tags=undo)
    return redirect("conflicts")


@require_POST
@team_page(permissions.REVIEW)
def conflict_undo(request: TeamRequest, conflict_id: uuid.UUID) -> HttpResponse:
    """Open a settled conflict again."""
    edge = judging_queries.conflict(request.team, None, conflict_id)
    if _tried(request, lambda: actions.undo_settlement(team=request.team, by=person(request.user), conflict=edge)):
        messages.info(request, "Undone: both memories stand as they did, and the conflict is open again.")
    return redirect("conflicts")


@require_safe
@team_page()
def quarantine_page(request: TeamRequest) -> HttpResponse:
    """What is held back, why, by which rule and where in its words; and what was decided lately."""
    team = request.team
    page = cursors.newest_first(judging_queries.held_back(team, None), request.GET, 2 * PAGE_SIZE)
    cases = judging_queries.cases_of(team, page.rows)
    evidence = judging_queries.evidence_of(team, page.rows)
    opposed = judging_queries.opposed(team, page.rows)
    context = {
        "page": page,
        "held": [
            {
                "memory": memory,
                "case": cases.get(memory.pk),
                "findings": cases[memory.pk].findings if memory.pk in cases else [],
                "evidence": evidence.get(memory.pk, []),
                "opposes": opposed.get(memory.pk, []),
            }
            for memory in page.rows
        ],
        "decided": judging_queries.lately_decided(team, LATELY),
    }
    return render(request, "memories/quarantine.html", context)


QUARANTINE: dict[str, tuple[Callable[..., Any], str]] = {
    "release": (actions.release, "Released. Agents may be told it again, as a candidate that the review asks about."),
    "reject": (actions.reject, "Rejected. It never reaches an agent."),
}


@require_POST
@team_page(permissions.REVIEW)
def quarantine_decide(request: TeamRequest, memory_id: uuid.UUID, decision: str) -> HttpResponse:
    """Release or reject what is held back; the page that follows offers to undo it."""
    memory = queries.get(request.team, None, memory_id)
    action, effect = QUARANTINE[decision]
    note = request.POST.get("note", "").strip()[:300]
    if _tried(request, lambda: action(team=request.team, by=person(request.user), memory=memory, note=note)):
        messages.success(request, effect, extra_tags=reverse("quarantine_undo", args=[memory_id]))
    return redirect("quarantine")


@require_POST
@team_page(permissions.REVIEW)
def quarantine_undo(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Hold a memory back again that was released or rejected."""
    memory = queries.get(request.team, None, memory_id)
    act = actions.undo_quarantine_decision
    if _tried(request, lambda: act(team=request.team, by=person(request.user), memory=memory)):
        messages.info(request, "Undone: it is held back again.")
    return redirect("quarantine")


@require_POST
@team_page(permissions.REVIEW)
def memory_promote(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Copy a private memory to a shared scope, and go to the copy."""
    memory = queries.get(request.team, None, memory_id)
    try:
        scope = scopes.writable(request.team, None, request.POST.get("scope", ""))
        copy = actions.promote(team=request.team, by=person(request.user), memory=memory, scope=scope)
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("memory", memory_id)
    messages.success(request, f"Shared with {scope.name}. This is the copy; it goes when its origin is forgotten.")
    return redirect("memory", copy.pk)


@require_POST
@team_page(permissions.REVIEW)
def memory_split(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Bring back what a memory took in, and go to it."""
    memory = queries.get(request.team, None, memory_id)
    wanted = request.POST.get("merge", "")
    try:
        merge = Merge.objects.of(request.team).filter(memory=memory, pk=uuid.UUID(wanted)).first() if wanted else None
        chosen = {"merge": merge.pk} if merge else {}
        new = actions.split(team=request.team, by=person(request.user), memory=memory, **chosen)
    except ValueError:
        messages.error(request, "That is not one of its merges.")
        return redirect("memory", memory_id)
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("memory", memory_id)
    messages.success(request, "Split: this is a memory of its own again, with its own evidence.")
    return redirect("memory", new.pk)


def _tried(request: TeamRequest, act: Callable[[], Any]) -> bool:
    """Do it; tell why not when it is refused."""
    try:
        act()
    except Refused as refusal:
        messages.error(request, refusal.message)
        return False
    return True
