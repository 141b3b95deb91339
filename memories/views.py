"""Pages of memories: the list, one memory whole, and what a person may do with it."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import JSONObject
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hindsight_site import cursors
from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Agent, AuditEvent
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Conflict, Refused
from memories import (
    actions,
    blinding,
    differences,
    judging_queries,
    playground,
    policies,
    queries,
    reembedding,
    usage,
    verbs,
)
from memories.actions.changing import governed
from memories.confidence import Belief
from memories.embeddings import get_embedder
from memories.enums import Kind, RelationKind, Rule, Status, Tier
from memories.lift import lifts
from memories.models import Evidence, Feedback, Memory, RecallHit, Relation, Revision, Scope
from memories.reembedding_job import request_reembedding

LIVE = "live"  # the list's default: what counts as known now
ANY = "any"
STATUS_CHOICES = [(ANY, "Any but forgotten"), *Status.choices]
SHOWN = 12  # recalls, revisions and audit events on the page of one memory


@require_safe
@team_page()
def memory_list(request: TeamRequest) -> HttpResponse:
    """The team's memories, newest first, narrowed by the address's parameters."""
    chosen = {name: request.GET.get(name, "").strip() for name in ("q", "scope", "agent", "tier", "kind")}
    status = request.GET.get("status") or LIVE
    needs_review = bool(request.GET.get("needs_review"))
    filters = queries.Filters(
        scope=chosen["scope"],
        agent=chosen["agent"],
        tier=chosen["tier"],
        kind=chosen["kind"],
        text=chosen["q"],
        status="" if status in (LIVE, ANY) else status,
        needs_review=needs_review or None,
    )
    found = queries.narrow(queries.visible(request.team, None), filters)
    unjudged: dict[uuid.UUID, str] = {}
    if status == LIVE:
        found = found.filter(status__in=policies.LIVE)
    else:  # any other choice would tell how one stands that the reader is to judge without knowing
        unjudged = blinding.unjudged(request.membership, request.user)
        found = found.exclude(pk__in=list(unjudged))
    context = {
        "unjudged": len(unjudged),
        "page": cursors.newest_first(found, request.GET),
        "chosen": chosen,
        "status": status,
        "needs_review": needs_review,
        "filtered": any(chosen.values()) or needs_review or status != LIVE,
        "scopes": Scope.objects.of(request.team).order_by("name").values_list("slug", "name")[:500],
        "agents": Agent.objects.of(request.team).order_by("name").values_list("slug", "name")[:500],
        "tiers": Tier.choices,
        "kinds": Kind.choices,
        "statuses": STATUS_CHOICES,
    }
    return render(request, "memories/list.html", context)


@require_safe
@team_page()
def memory_detail(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """One memory: what it says, what it rests on, what it was before, how it was used, who did what."""
    memory = judging_queries.for_page(request.team, memory_id)
    if address := blinding.unjudged(request.membership, request.user).get(memory.pk):
        return render(request, "memories/sampled.html", {"memory": memory, "address": address})
    return render(request, "memories/detail.html", memory_context(memory))


def memory_context(memory: Memory) -> dict[str, Any]:
    team = memory.team
    relations = relations_of(memory)
    versions = versions_of(memory)
    return {
        "memory": memory,
        "structure_template": f"memories/structures/{memory.kind}.html",
        "evidence": Evidence.objects.of(team).filter(memory=memory).order_by("created_at", "step_sequence"),
        "versions": versions,
        "parts_are_older": differences.parts_are_older(
            (memory.content, memory.structure),
            [(version["revision"].content, version["revision"].structure) for version in versions],
        ),
        "relations": relations,
        "contested": [edge for edge in relations if edge["contested"]],
        "uses": uses_of(memory),
        "again": playground.of_memory(memory),
        "events": AuditEvent.objects.of(team)
        .filter(object_type="memory", object_id=str(memory.pk))
        .order_by("-at")[:SHOWN],
        "offers": verbs.offers(memory),
        "lift": lifts(team, [memory.pk]).get(memory.pk),
        "fades": [Rule(cause).label for cause in memory.fades],
        "reasons": verbs.REASONS,
        **judging_queries.of_memory(memory),
    }


def versions_of(memory: Memory) -> list[dict[str, Any]]:
    """Return each change, newest first: the earlier version, and the text that followed it."""
    earlier = list(Revision.objects.of(memory.team).filter(memory=memory).order_by("-number")[:SHOWN])
    following = [memory, *earlier]
    return [
        {
            "revision": before,
            "then": then.content,
            "changes": differences.changes(before.structure, then.structure, before.tags, then.tags),
        }
        for before, then in zip(earlier, following, strict=False)
    ]


def relations_of(memory: Memory) -> list[dict[str, Any]]:
    """Return the edges to and from this memory with the memory at the other end."""
    edges = Relation.objects.of(memory.team)
    ends = ("source__scope", "source__agent", "target__scope", "target__agent")
    found = edges.filter(Q(source=memory) | Q(target=memory)).select_related(*ends).order_by("kind", "id")[:100]
    sides = [(edge, edge.target if edge.source_id == memory.pk else edge.source) for edge in found]
    both = sorted(((edge, other, other.pk == edge.target_id) for edge, other in sides), key=lambda side: not side[2])
    return [
        {
            "edge": edge,
            "other": other,
            "outgoing": outgoing,
            "contested": edge.kind == RelationKind.CONTRADICTS and edge.settled_at is None,
        }
        for edge, other, outgoing in both
    ]


def uses_of(memory: Memory) -> list[dict[str, Any]]:
    """Return the latest recalls that handed this memory out, and what became of each."""
    told = Feedback.objects.of(memory.team).filter(memory=memory, recall=OuterRef("recall_id"))
    feedback = Subquery(told.values(json=JSONObject(adopted="adopted", success="success")))
    rows = RecallHit.objects.of(memory.team).filter(memory=memory).annotate(feedback=feedback)
    hits = rows.select_related("recall__agent", "recall__token").order_by("-id")[:SHOWN]
    return [{"hit": hit, "recall": hit.recall, "feedback": hit.feedback} for hit in hits]


@require_POST
@team_page(permissions.REVIEW)
def memory_act(request: TeamRequest, memory_id: uuid.UUID, verb: str) -> HttpResponse:
    """Do one of `verbs.VERBS` with a memory; the page that follows offers to undo it."""
    memory = queries.get(request.team, None, memory_id)
    chosen = verbs.VERBS[verb]
    before = governed(memory)
    try:
        chosen.act(team=request.team, by=person(request.user), memory=memory, reason=_reason(request))
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("memory", memory_id)
    _keep_for_undo(request, memory, before)
    messages.success(request, chosen.done, extra_tags=reverse("memory_undo", args=[memory_id]))
    return redirect("memory", memory_id)


def _reason(request: TeamRequest) -> str:
    given = request.POST.get("reason", "")
    return given if given in dict(verbs.REASONS) else ""


@require_POST
@team_page(permissions.REVIEW)
def memory_undo(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Put a memory back to what it was before this person's last act, unless it has changed since."""
    memory = queries.get(request.team, None, memory_id)
    kept = request.session.get("undo", {}).get(str(memory_id))
    if kept is None or kept["changed_at"] != memory.updated_at.isoformat():
        messages.warning(request, "This memory has changed since; it was left as it is.")
        return redirect("memory", memory_id)
    try:
        before = without_the_act(memory, kept["before"], kept["after"])
        actions.put_back(team=request.team, by=person(request.user), memory=memory, before=before)
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("memory", memory_id)
    request.session["undo"] = {key: row for key, row in request.session["undo"].items() if key != str(memory_id)}
    messages.info(request, "Undone: the memory stands as it did before.")
    return redirect("memory", memory_id)


def without_the_act(memory: Memory, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The state before an act, with the feedback that came since: only what the act itself counted goes."""
    alpha = memory.alpha - (after["alpha"] - before["alpha"])
    beta = memory.beta - (after["beta"] - before["beta"])
    return {**before, "alpha": alpha, "beta": beta, "confidence": Belief(alpha, beta).mean}


def _keep_for_undo(request: TeamRequest, memory: Memory, before: dict[str, Any]) -> None:
    """Remember the state before the latest few acts in the person's session."""
    kept = dict(list(request.session.get("undo", {}).items())[-19:])
    kept[str(memory.pk)] = {
        "before": before,
        "after": governed(memory),
        "changed_at": memory.updated_at.isoformat(),
    }
    request.session["undo"] = kept


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.REVIEW)
def memory_edit(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Change what a memory says; the version before stays in its history."""
    memory = queries.get(request.team, None, memory_id)
    if request.method == "GET":
        return render(request, "memories/edit.html", edit_context(memory, memory.content))
    content, revision = request.POST.get("content", "").strip(), request.POST.get("revision", "")
    before = memory.revision
    try:
        actions.revise(
            team=request.team,
            by=person(request.user),
            memory=memory,
            content=content,
            reason=request.POST.get("reason", "").strip()[:300],
            expected_revision=int(revision) if revision.isdecimal() and len(revision) < 10 else 0,
        )
    except Refused as refusal:
        context = edit_context(memory, content) | {"refusal": refusal}
        return render(request, "memories/edit.html", context, status=refusal.status)
    if memory.revision == before:
        messages.info(request, "Nothing was changed.")
    else:
        back = reverse("memory_rollback", args=[memory_id, before])
        messages.success(request, "Saved: agents are told this from now on.", extra_tags=back)
    return redirect("memory", memory_id)


def edit_context(memory: Memory, content: str) -> dict[str, Any]:
    """What is edited, and the quotes to edit it by."""
    quotes = Evidence.objects.of(memory.team).filter(memory=memory, removed_at=None)
    return {"memory": memory, "content": content, "evidence": quotes.order_by("trace_id", "step_sequence", "start")}


@require_POST
@team_page(permissions.REVIEW)
def memory_rollback(request: TeamRequest, memory_id: uuid.UUID, number: int) -> HttpResponse:
    """Say again what an earlier revision said; that is a new revision, and the history keeps both."""
    memory = queries.get(request.team, None, memory_id)
    try:
        actions.rollback(team=request.team, by=person(request.user), memory=memory, to=number)
    except Conflict as refusal:
        messages.error(request, refusal.message)
        return redirect("memory", memory_id)
    messages.success(request, f"It says again what revision {number} said. The text before is in the history below.")
    return redirect("memory", memory_id)


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def memory_forget(request: TeamRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Delete a memory for good, after the word was typed."""
    memory = queries.get(request.team, None, memory_id)
    if request.method == "GET" or request.POST.get("confirm", "").strip().lower() != "forget":
        context = {"memory": memory, "mistyped": request.method == "POST"}
        return render(request, "memories/forget.html", context, status=422 if context["mistyped"] else 200)
    actions.forget(team=request.team, by=person(request.user), memory=memory, reason="page")
    messages.success(request, "Forgotten. Only a tombstone and an audit event are left.")
    return redirect("memory", memory_id)


USAGE_LINES = (
    # Of each quota: its title, and what follows when it is used up.
    ("Live memories", "nothing new is kept until some are archived or forgotten"),
    ("Traces today", "no more are taken today"),
    ("Model tokens this month", "traces are distilled by rules"),
)


@require_safe
@team_page()
def usage_page(request: TeamRequest) -> HttpResponse:
    """What the team uses of what it may."""
    found = usage.of_team(request.team)
    busiest = max((use.requests_today or 0 for use in found.tokens), default=0)
    most = max((use.model_tokens for use in found.months), default=0)
    context = {
        "usage": found,
        "lines": [
            {"title": title, "when_full": when_full, "quota": quota, "width": bar_width(quota.used, quota.limit)}
            for (title, when_full), quota in zip(USAGE_LINES, found.quotas, strict=True)
        ],
        "tokens": [{"use": use, "width": bar_width(use.requests_today or 0, busiest)} for use in found.tokens],
        "months": [{"use": use, "width": bar_width(use.model_tokens, most)} for use in found.months],
    }
    return render(request, "accounts/usage.html", context)


def bar_width(value: int, whole: int) -> float:
    """How much of a bar of 100 is filled; a little is always seen where there is something."""
    return round(min(100, max(0.5, 100 * value / whole)), 2) if value and whole else 0


@require_http_methods(["GET", "HEAD", "POST"])
@team_page(permissions.MANAGE)
def reembed(request: TeamRequest) -> HttpResponse:
    """Say how many memories the present model has no vector of, and have them embedded."""
    if request.method == "POST":
        job = request_reembedding(team=request.team, by=person(request.user), person=request.user)
        return redirect("job", job_id=job.pk)
    model_id = get_embedder().model_id
    context = {"model": model_id, "missing": reembedding.missing(request.team, model_id)}
    return render(request, "jobs/reembed.html", context)
