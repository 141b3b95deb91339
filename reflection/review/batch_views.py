"""A batch as a table: filters, order, one action on many rows, and the table to take along."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from hindsight_site import sheets
from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Membership
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from memories.enums import Kind
from reflection.enums import DemoteReason
from reflection.models import ReviewBatch
from reflection.review import batch_table, bulk, pages, turns, verdicts
from reflection.review.batch_table import COLUMNS, CONFLICTS, DECISIONS, NONE, Line

SORT_TITLES = (
    ("memory", "Memory"), ("decision", "Decision"), ("stratum", "Drawn as"), ("reviewer", "By"), ("time", "When"),
)  # fmt: skip
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


@require_safe
@team_page()
def batch_page(request: TeamRequest, week: str) -> HttpResponse:
    """All items of one batch, with filters."""
    batch = _batch(request, week)
    turns.void_gone(request.team, batch)
    rows = _lines(request, batch)
    chosen = batch_table.chosen_of(request.GET.dict())
    shown = batch_table.narrowed(rows, chosen)
    asked = {name: value for name, value in chosen.items() if value}
    members = Membership.objects.of(request.team).select_related("user").order_by("user__email")
    agents = sorted({(row.item.memory.agent.slug, row.item.memory.agent.name) for row in rows if row.item.memory.agent})
    context: dict[str, Any] = {
        "batch": batch,
        "week": pages.week_title(batch.week),
        "rows": shown,
        "chosen": chosen,
        "query": urlencode(asked),
        "filtered": any(value for name, value in chosen.items() if name != "sort"),
        "sorts": [_sort(name, title, asked) for name, title in SORT_TITLES],
        "decisions": DECISIONS,
        "reasons": [*DemoteReason.choices, (NONE, "None given")],
        "kinds": Kind.choices,
        "agents": agents,
        "reviewers": [(str(member.user_id), str(member.user)) for member in members],
        "conflicts": CONFLICTS,
        "strata": pages.strata(request.team, batch),
        "is_open": verdicts.is_open(batch),
        "actions": bulk.ACTIONS.items(),
        "may_act": verdicts.is_open(batch) and permissions.can(request.membership, permissions.REVIEW),
    }
    return render(request, "review/batch.html", context)


@require_safe
@team_page()
def batch_export(request: TeamRequest, week: str, form: str) -> HttpResponse:
    """The rows that the page shows with the same address, as CSV or JSON Lines; blind ones stay blind."""
    if form not in FORMATS:
        raise Http404
    rows = batch_table.narrowed(_lines(request, _batch(request, week)), batch_table.chosen_of(request.GET.dict()))
    if form == "csv":
        body = sheets.as_csv(COLUMNS, batch_table.csv_rows(rows))
    else:
        body = sheets.as_jsonl(batch_table.records(rows))
    headers = {"Content-Disposition": f'attachment; filename="review-{request.team.slug}-{week}.{form}"'}
    return HttpResponse(body, content_type=FORMATS[form], headers=headers)


@require_POST
@team_page(permissions.REVIEW)
def batch_act(request: TeamRequest, week: str) -> HttpResponse:
    """One action on many rows: first a page that lists each of them, then, confirmed, the action itself."""
    batch, action = _batch(request, week), request.POST.get("action", "")
    if action not in bulk.ACTIONS:
        raise Http404
    try:
        verdicts.check_open(batch)
    except Refused as refusal:
        messages.error(request, refusal.message)
        return _back(request, week)
    turns.void_gone(request.team, batch)
    versions = _versions(request.POST)
    rows = _lines(request, batch)
    if "all" in request.POST:
        wanted = batch_table.narrowed(rows, batch_table.chosen_of(QueryDict(request.POST.get("query", "")).dict()))
    else:
        wanted = [row for row in rows if row.item.pk in versions]
    plan = bulk.plan(action, wanted)
    if not wanted:
        messages.warning(request, "No memory is selected: tick some rows first.")
        return _back(request, week)
    if "confirmed" not in request.POST:
        context = {
            "batch": batch, "week": pages.week_title(week), "action": action, "word": bulk.ACTIONS[action],
            "plan": plan, "reasons": DemoteReason.choices, "query": request.POST.get("query", ""),
        }  # fmt: skip
        return render(request, "review/bulk.html", context)
    return _carry_out(request, week, action, plan, versions)


def _carry_out(
    request: TeamRequest, week: str, action: str, plan: bulk.Plan, versions: dict[uuid.UUID, tuple[int, int]]
) -> HttpResponse:
    for item in plan.does:
        item.version = versions.get(item.pk, (0, 0))[0]  # as the confirming page showed it
    reason = request.POST.get("reason", "")
    done = bulk.carry_out(
        team=request.team, by=person(request.user), reviewer=request.user, action=action, items=plan.does,
        seen={ident: revision for ident, (_, revision) in versions.items()},
        reason=reason if reason in DemoteReason.values else "", note=request.POST.get("note", "").strip()[:2000],
    )  # fmt: skip
    left = [*plan.leaves, *done.leaves]
    told = f"{DONE_WORDS[action]} {len(done.done)} of {len(done.done) + len(left)}."
    if left:
        told += " Left: " + "; ".join(sorted({one.why for one in left})) + "."
    undo = ""
    if done.done and action in (bulk.APPROVE, bulk.DEMOTE):
        chosen = urlencode([("item", str(item.pk)) for item in done.done])
        undo = f"{reverse('review-batch-undo', args=[week])}?{chosen}"
    (messages.success if done.done else messages.warning)(request, told, extra_tags=undo)
    return _back(request, week)


DONE_WORDS = {bulk.APPROVE: "Approved", bulk.DEMOTE: "Demoted", bulk.CLAIM: "Claimed", bulk.TAKE_BACK: "Took back"}


@require_POST
@team_page(permissions.REVIEW)
def batch_undo(request: TeamRequest, week: str) -> HttpResponse:
    """Take back the verdicts that one action gave: those of the items in the address."""
    batch, wanted = _batch(request, week), _ids(request.GET.getlist("item"))
    items = [row.item for row in _lines(request, batch) if row.item.pk in wanted]
    done = bulk.carry_out(
        team=request.team, by=person(request.user), reviewer=request.user, action=bulk.TAKE_BACK, items=items, seen={}
    )
    told = f"Took back {len(done.done)} of {len(items)}."
    if done.leaves:
        told += " Left: " + " ".join(sorted({one.why for one in done.leaves}))
    (messages.info if done.done else messages.error)(request, told)
    return HttpResponseRedirect(reverse("review-batch", args=[week]), status=303)


def _batch(request: TeamRequest, week: str) -> ReviewBatch:
    return get_object_or_404(ReviewBatch.objects.of(request.team), week=week)


def _lines(request: TeamRequest, batch: ReviewBatch) -> list[Line]:
    manages = permissions.can(request.membership, permissions.MANAGE)
    return batch_table.lines(request.team, request.user, batch, manages=manages)


def _back(request: TeamRequest, week: str) -> HttpResponse:
    """To the table as it was filtered."""
    query = urlencode(QueryDict(request.POST.get("query", "")[:1000]).dict())
    address = reverse("review-batch", args=[week])
    return HttpResponseRedirect(f"{address}?{query}" if query else address, status=303)


def _sort(name: str, title: str, asked: dict[str, str]) -> dict[str, str]:
    """A heading that sorts: by itself, the other way, and back to the order of the draw."""
    now = asked.get("sort", "")
    following = {"": name, name: f"-{name}", f"-{name}": ""}.get(now, name)
    query = urlencode({**asked, "sort": following} if following else {k: v for k, v in asked.items() if k != "sort"})
    state = {name: "ascending", f"-{name}": "descending"}.get(now, "")
    return {"name": name, "title": title, "query": query, "state": state}


def _versions(form: QueryDict) -> dict[uuid.UUID, tuple[int, int]]:
    """The chosen items and, once they were confirmed, the item's version and the memory's revision that were seen.

    "<uuid>" or "<uuid>.<version>.<revision>"; a number that is missing is 0, which nothing has.
    """
    found = {}
    for value in form.getlist("item")[:1000]:
        ident, *numbers = value.split(".")
        seen = [int(number) if number.isdecimal() and len(number) < 10 else 0 for number in [*numbers, "", ""][:2]]
        for known in _ids([ident]):
            found[known] = (seen[0], seen[1])
    return found


def _ids(values: list[str]) -> list[uuid.UUID]:
    """Those of `values` that are ids."""
    found = []
    for value in values[:1000]:
        try:
            found.append(uuid.UUID(value))
        except ValueError:
            continue
    return found
