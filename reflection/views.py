"""Pages of traces: the list, and one trace as a readable timeline with what was made of it."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Prefetch, Q
from django.db.models.functions import Length
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from hindsight_site import cursors
from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from memories.models import Evidence
from reflection import actions, progress, timeline
from reflection.enums import REFLECTION_OPEN, ReflectionStatus, RejectReason, TraceStatus
from reflection.models import Reflection, ReflectionResult, Step, Trace

STEPS_SHOWN = 200  # steps on one page of a long trace
RUNS_SHOWN = 20
DEAD_SHOWN = 50
LOOK_AGAIN_SECONDS = 2


@require_safe
@team_page()
def trace_list(request: TeamRequest) -> HttpResponse:
    """The team's traces, newest first, each with the state of its latest reflection."""
    chosen = {name: request.GET.get(name, "").strip() for name in ("q", "agent", "status", "reflection")}
    traces = narrow(request.team, Trace.objects.of(request.team), chosen).select_related("agent")
    page = cursors.newest_first(traces.prefetch_related(_runs(request.team)), request.GET)
    context = {
        "page": page,
        "batch": progress.batch(request.team, None),
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "agents": Agent.objects.of(request.team).order_by("name").values_list("slug", "name")[:500],
        "statuses": TraceStatus.choices,
        "reflection_statuses": ReflectionStatus.choices,
    }
    return render(request, "reflection/traces.html", context)


@require_safe
@team_page()
def trace_progress(request: TeamRequest) -> HttpResponse:
    """How far looking back is. While something is open the page looks again by itself."""
    batch = progress.batch(request.team, None)
    dead = Reflection.objects.of(request.team).filter(status=ReflectionStatus.FAILED).select_related("trace")
    context = {
        "batch": batch,
        "dead": dead.filter(created_at__gte=batch.begun_at, trace__isnull=False).order_by("-created_at")[:DEAD_SHOWN]
        if batch.dead
        else [],
        "again": LOOK_AGAIN_SECONDS if batch.open else 0,
    }
    return render(request, "reflection/progress.html", context)


def narrow(team: Team, traces: Any, chosen: dict[str, str]) -> Any:
    """Apply the list's filters; what is not one of the choices finds nothing."""
    if chosen["q"]:
        traces = traces.filter(Q(task__icontains=chosen["q"]) | Q(result__icontains=chosen["q"]))
    if chosen["agent"]:
        traces = traces.filter(agent__slug=chosen["agent"])
    if chosen["status"]:
        traces = traces.filter(status=chosen["status"])
    if chosen["reflection"]:
        runs = Reflection.objects.of(team).filter(status=chosen["reflection"], trace__isnull=False)
        traces = traces.filter(pk__in=runs.values("trace_id"))
    return traces


def _runs(team: Team) -> Prefetch:
    results = ReflectionResult.objects.of(team).select_related("memory").order_by("id")
    runs = Reflection.objects.of(team).order_by("-created_at", "-id")
    return Prefetch("reflections", runs.prefetch_related(Prefetch("results", results)), to_attr="runs")


@require_safe
@team_page()
def trace_detail(request: TeamRequest, trace_id: uuid.UUID) -> HttpResponse:
    """One trace: what was asked, every step, which became evidence, and each time it was looked back at."""
    trace = _get(request.team, trace_id, _runs(request.team))
    wanted = request.GET.get("step", "")
    first = int(wanted[:9]) // STEPS_SHOWN * STEPS_SHOWN if wanted.isdecimal() else 0
    quotes = quotes_of(trace)
    runs: list[Reflection] = trace.runs  # type: ignore[attr-defined]  # prefetched by _runs
    sizes = list(
        Step.objects.of(request.team)
        .filter(trace=trace)
        .order_by("sequence")
        .values_list("sequence", "kind", "is_error", Length("content"))
    )
    context = {
        "trace": trace,
        "moments": moments_of(trace, first, quotes),
        "strip": timeline.strip(sizes, set(quotes)),
        "quoted_steps": len(quotes),
        "runs": [Run.of(reflection) for reflection in runs[:RUNS_SHOWN]],
        "running": any(reflection.status in REFLECTION_OPEN for reflection in runs),
        "earlier": max(first - STEPS_SHOWN, 0) if first else None,
        "later": first + STEPS_SHOWN if sizes and sizes[-1][0] >= first + STEPS_SHOWN else None,
        "took": (trace.ended_at - trace.created_at).total_seconds() if trace.ended_at else None,
    }
    return render(request, "reflection/trace.html", context)


def _get(team: Team, trace_id: uuid.UUID, *prefetches: Prefetch) -> Trace:
    found = Trace.objects.of(team).select_related("agent").prefetch_related(*prefetches)
    trace = found.filter(pk=trace_id).first()
    if trace is None:
        raise Http404
    return trace


def quotes_of(trace: Trace) -> dict[int, list[Evidence]]:
    """Return the evidence that memories took from this trace, by step."""
    rows = Evidence.objects.of(trace.team).filter(trace_id=trace.pk).select_related("memory").order_by("id")
    by_step: dict[int, list[Evidence]] = defaultdict(list)
    for row in rows[:1000]:
        by_step[row.step_sequence].append(row)
    return by_step


@dataclass(frozen=True)
class Moment:
    """A step as the timeline shows it; `short` stands in for `parts` of a long text."""

    step: Step
    parts: list[timeline.Part]
    short: list[timeline.Part] | None
    quotes: list[Evidence]
    said: bool
    arguments: str

    @property
    def length(self) -> int:
        """Characters of the whole text."""
        return sum(len(part.text) for part in self.parts)

    @property
    def memories(self) -> list[Any]:
        """The memories that rest on this step, each once."""
        return list({quote.memory_id: quote.memory for quote in self.quotes}.values())


def moments_of(trace: Trace, first: int, quotes: dict[int, list[Evidence]]) -> list[Moment]:
    """Return one page of steps from number `first` on."""
    window = Step.objects.of(trace.team).filter(trace=trace, sequence__gte=first, sequence__lt=first + STEPS_SHOWN)
    return [moment_of(step, quotes.get(step.sequence, [])) for step in window.order_by("sequence")]


def moment_of(step: Step, quotes: list[Evidence]) -> Moment:
    spans = [timeline.Span(quote.start, quote.end) for quote in quotes if quote.step_id == step.pk]
    # Quotes are counted in `step.text`; a call without them reads better as its arguments.
    bare_call = not step.content and not spans and step.arguments
    cut = [] if bare_call else timeline.parts(step.text.rstrip(), spans)
    # A call's own words were said; its bare form `tool({…})` was not.
    said = timeline.is_said(step.kind) and bool(step.content)
    return Moment(
        step=step,
        parts=cut,
        short=timeline.folded(cut, said=said),
        quotes=quotes,
        said=said,
        arguments=json.dumps(step.arguments, ensure_ascii=False, indent=2) if step.arguments and not spans else "",
    )


@dataclass(frozen=True)
class Run:
    """One reflection with its refusals in words."""

    reflection: Reflection
    rejected: list[dict[str, str]]
    seconds: float | None

    @classmethod
    def of(cls, reflection: Reflection) -> Run:
        """Put the refusals' reasons into words; unknown ones stay as they are."""
        words = dict(RejectReason.choices)
        rejected = [
            {
                "content": row.get("content", ""),
                "reason": words.get(row.get("reason", ""), row.get("reason", "")),
                "detail": row.get("detail", ""),
            }
            for row in reflection.rejected
        ]
        begun, ended = reflection.started_at, reflection.finished_at
        seconds = (ended - begun).total_seconds() if begun and ended else None
        return cls(reflection, rejected, seconds)


@require_POST
@team_page(permissions.REVIEW)
def trace_reflect(request: TeamRequest, trace_id: uuid.UUID) -> HttpResponse:
    """Ask for another look back at a trace; one that is waiting or running already is not doubled."""
    trace = _get(request.team, trace_id)
    try:
        actions.request_reflection(
            team=request.team, by=person(request.user), trace=trace, reason=f"asked for by {request.user}"
        )
    except Refused as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, "Queued. Reload this page to see what comes of it.")
    return redirect("trace", trace_id)
