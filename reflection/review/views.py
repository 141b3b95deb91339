"""Pages of the weekly review: the week, one memory to judge, a batch as a table.

Every decision is a form that is posted and answered with a redirect; scripts only add keys.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Conflict, Invalid, Refused
from reflection.enums import Decision
from reflection.models import ReviewBatch, ReviewItem
from reflection.review import pages, queries, sampling, settling, turns, verdicts

# The decisions that need more: the field they wait for, and the step that asks for it.
ASKS: dict[str, tuple[str, str]] = {
    Decision.DEMOTE: ("reason", "reason"),
    Decision.EDIT: ("content", "edit"),
}


@require_safe
@team_page()
def home(request: TeamRequest) -> HttpResponse:
    """This week's review: how far it is, what to do next, how good the memories are."""
    return render(request, "review/home.html", pages.home_context(request))


@require_POST
@team_page(permissions.MANAGE)
def open_now(request: TeamRequest) -> HttpResponse:
    """Draw this week's sample before its time."""
    try:
        batch = sampling.open_batch(team=request.team, by=person(request.user))
    except Conflict as refusal:
        messages.warning(request, refusal.message)
    else:
        messages.success(request, f"The sample of {pages.week_title(batch.week).lower()} is drawn.")
    return see_other("review")


@require_POST
@team_page(permissions.REVIEW)
def go_on(request: TeamRequest) -> HttpResponse:
    """Continue reviewing: claim the next memory and open it."""
    batch = queries.current_batch(request.team, timezone.now())
    return see_next(request, batch) if batch else see_other("review")


@require_safe
@team_page()
def item_page(request: TeamRequest, item_id: uuid.UUID) -> HttpResponse:
    """One memory with what it rests on; `?ask=reason` and `?ask=edit` are the second step of a decision."""
    item = find(request, item_id)
    turns.renew_claim(request.team, request.user, item)
    return render(request, "review/item.html", pages.item_context(request, item, request.GET.get("ask", "")))


@require_POST
@team_page(permissions.REVIEW)
def decide(request: TeamRequest, item_id: uuid.UUID) -> HttpResponse:
    """Carry a decision out and go on to the next memory; `settles` ends a disagreement, `adds` comes second."""
    item, given = find(request, item_id), request.POST
    decision = given.get("decision", "")
    field, ask = ASKS.get(decision, ("decision", ""))
    if field not in given:
        return see_other("review-item", item_id, ask=ask)
    settles = "settles" in given
    try:
        if settles:
            settling.settle(**_judgement(request, item))
        else:
            verdicts.decide(**_judgement(request, item), adds="adds" in given)
    except Invalid as refusal:
        context = pages.item_context(request, item, ask) | {"refusal": refusal, "given": given}
        return render(request, "review/item.html", context, status=refusal.status)
    except Refused as refusal:
        context = pages.refused_context(request, item, refusal, given)
        return render(request, "review/refused.html", context, status=refusal.status)
    if settles:
        messages.success(request, "Settled. Both opinions are kept beside it.", extra_tags=_undo_of(item))
        return see_other("review-conflicts")
    return see_next(request, item.batch)


def _judgement(request: TeamRequest, item: ReviewItem) -> dict[str, Any]:
    """What a form says, as the actions take it."""
    given = request.POST
    decision = given.get("decision", "")
    return {
        "team": request.team,
        "by": person(request.user),
        "reviewer": request.user,
        "item": item,
        "decision": decision,
        "reason": given.get("reason", "") if decision == Decision.DEMOTE else "",
        "note": given.get("note", "").strip(),
        "content": given["content"].replace("\r\n", "\n").strip() if decision == Decision.EDIT else None,
        "version": number(given.get("version", "")),
        "revision": number(given["revision"]) if "revision" in given else None,
    }


def _undo_of(item: ReviewItem) -> str:
    return reverse("review-undo", args=[item.pk])


@require_POST
@team_page(permissions.REVIEW)
def undo(request: TeamRequest, item_id: uuid.UUID) -> HttpResponse:
    """Take one's own decision back and show the memory again."""
    item = find(request, item_id)
    try:
        verdict = verdicts.undo(team=request.team, by=person(request.user), reviewer=request.user, item=item)
    except Refused as refusal:
        messages.error(request, refusal.message)
    else:
        messages.info(request, f"Taken back: it was “{verdict.get_decision_display()}”. Decide again.")
    return see_other("review-item", item_id)


@require_safe
@team_page()
def conflicts_page(request: TeamRequest) -> HttpResponse:
    """Where two people differ: both verdicts side by side, and the way to settle each."""
    return render(request, "review/conflicts.html", pages.conflicts_context(request))


def find(request: TeamRequest, item_id: uuid.UUID) -> ReviewItem:
    """Return an item of the reader's team; another team's does not exist."""
    item = get_object_or_404(queries.for_page(request.team), pk=item_id)
    item.team = item.batch.team = item.memory.team = request.team  # known already: not to be read again
    return item


def see_next(request: TeamRequest, batch: ReviewBatch) -> HttpResponse:
    """Go to the next memory of this reviewer, or home when there is none for them."""
    item = turns.take_next(request.team, request.user, batch)
    return see_other("review-item", item.pk) if item else see_other("review")


def see_other(name: str, *args: object, ask: str = "") -> HttpResponse:
    """Answer a POST: 303, so that the browser asks for the next page with GET and a reload posts nothing."""
    query = f"?ask={ask}" if ask else ""
    return HttpResponseRedirect(reverse(name, args=args) + query, status=303)


def number(text: str) -> int:
    """Return a form's hidden number; 0, which no row has, for anything else."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0
