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
from hindsight_site.accounts.models import Membership
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Conflict, Invalid, Refused
from memories.enums import Kind
from reflection.enums import Decision, ItemState
from reflection.models import ReviewBatch, ReviewItem
from reflection.review import pages, queries, sampling, turns, verdicts

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
    """Carry a decision out and go on to the next memory."""
    item, given = find(request, item_id), request.POST
    decision = given.get("decision", "")
    field, ask = ASKS.get(decision, ("decision", ""))
    if field not in given:
        return see_other("review-item", item_id, ask=ask)
    try:
        verdicts.decide(
            team=request.team,
            by=person(request.user),
            reviewer=request.user,
            item=item,
            decision=decision,
            reason=given.get("reason", "") if decision == Decision.DEMOTE else "",
            note=given.get("note", "").strip(),
            content=given["content"].replace("\r\n", "\n").strip() if decision == Decision.EDIT else None,
            version=number(given.get("version", "")),
            revision=number(given["revision"]) if "revision" in given else None,
        )
    except Invalid as refusal:
        context = pages.item_context(request, item, ask) | {"refusal": refusal, "given": given}
        return render(request, "review/item.html", context, status=refusal.status)
    except Refused as refusal:
        context = {"item": item, "refusal": refusal, "decided": pages.first_verdict(item)}
        return render(request, "review/refused.html", context, status=refusal.status)
    return see_next(request, item.batch)


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
def batch_page(request: TeamRequest, week: str) -> HttpResponse:
    """All items of one batch, with filters."""
    batch = get_object_or_404(ReviewBatch.objects.of(request.team), week=week)
    turns.void_gone(request.team, batch)
    chosen = {name: request.GET.get(name, "") for name in ("decision", "kind", "reviewer")}
    members = Membership.objects.of(request.team).select_related("user").order_by("user__email")
    context: dict[str, Any] = {
        "batch": batch,
        "week": pages.week_title(batch.week),
        "rows": queries.batch_items(request.team, batch, **chosen),
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "decisions": [(ItemState.PENDING, "Not decided yet"), *Decision.choices, (ItemState.VOID, "Void")],
        "kinds": Kind.choices,
        "reviewers": [(str(member.user_id), str(member.user)) for member in members],
        "strata": pages.strata(request.team, batch),
        "is_open": verdicts.is_open(batch),
    }
    return render(request, "review/batch.html", context)


def find(request: TeamRequest, item_id: uuid.UUID) -> ReviewItem:
    """Return an item of the reader's team; another team's does not exist."""
    items = ReviewItem.objects.of(request.team).select_related("batch", "memory__scope__agent")
    return get_object_or_404(items, pk=item_id)


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
