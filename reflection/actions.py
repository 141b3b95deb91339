"""The only writers of traces, and the way to ask for a reflection. Everything is masked before it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from hindsight_site.accounts import audit, quotas
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.models import Agent, ApiToken, Team
from hindsight_site.queue import enqueue
from hindsight_site.refusals import Conflict
from memories import actions as memory_actions
from memories import scopes
from memories.models import Memory, Scope
from memories.safety.masking import mask_text, mask_value
from reflection import triggers
from reflection.announcing import reflection_ended
from reflection.drafts import StepDraft, TraceDraft, bad, check_instruction, check_room, check_steps, check_trace
from reflection.enums import END_STATES, REFLECTION_OPEN, ReflectionStatus, TraceStatus
from reflection.models import Reflection, Trace
from reflection.normalise import trace_form
from reflection.steps import add_numbered, digest_of, drop_repeats, mask_of, next_number

REFLECT = "reflection.tasks.reflect"
FEWEST_EPISODES = 2


@transaction.atomic
def record_trace(
    *, team: Team, by: Actor, agent: Agent, draft: TraceDraft, token: ApiToken | None = None
) -> tuple[Trace, Reflection | None]:
    """Store a trace, masked; when it has ended, decide whether to look back and wake a worker.

    Nothing waits for the reflection. Raises `Invalid`, `TooLarge` or `OverQuota`, and then stores nothing.
    """
    quotas.check_trace(team)
    check_steps(draft.steps)
    check_trace(draft)
    trace = Trace(
        team=team,
        agent=agent,
        token=token,
        session_id=draft.session_id,
        remember=draft.remember,
        callback_url=draft.callback_url,
    )
    mask = mask_of(trace)
    trace.task, trace.task_type = mask_text(draft.task, mask), mask_text(draft.task_type, mask)
    trace.environment = mask_value(draft.environment, mask)
    trace.metadata, trace.extra = mask_value(draft.metadata, mask), mask_value(draft.extra, mask)
    trace.save(force_insert=True)
    add_numbered(trace, list(enumerate(draft.steps)), mask)
    audit.record(team=team, by=by, verb="trace.recorded", on=trace, detail={"steps": trace.step_count})
    quotas.spend(team, Spent.TRACES, 1)
    if not draft.outcome:
        return trace, None
    return trace, _finish(team, by, trace, draft.outcome, mask_text(draft.result, mask), token)


@transaction.atomic
def append_steps(
    *, team: Team, by: Actor, trace: Trace, steps: Sequence[StepDraft], sequence: int | None = None
) -> int:
    """Add steps to an open trace and return the number of the first.

    Without `sequence` they go to the end; parallel calls take turns and all survive. With it they go
    exactly there: sending the same steps again changes nothing, other steps at the same number are a
    `Conflict`.
    """
    check_steps(steps)
    trace = Trace.objects.of(team).select_for_update().get(pk=trace.pk)
    if trace.status != TraceStatus.OPEN:
        raise Conflict("This trace has ended; start a new one.", code="trace_ended")
    mask = mask_of(trace)
    start = next_number(trace) if sequence is None else sequence
    before = audit.state_of(trace)
    fresh = drop_repeats(trace, steps, start, mask) if sequence is not None else list(enumerate(steps, start))
    check_room(trace, fresh)
    add_numbered(trace, fresh, mask)
    if fresh:
        detail = {"steps": len(fresh)}
        audit.record(team=team, by=by, verb="trace.extended", on=trace, before=before, detail=detail)
    return start


@transaction.atomic
def finish_trace(
    *,
    team: Team,
    by: Actor,
    trace: Trace,
    outcome: str,
    result: str = "",
    remember: bool | None = None,
    token: ApiToken | None = None,
) -> Reflection:
    """End a trace. The same end twice gives the same reflection; another end is a `Conflict`."""
    trace = Trace.objects.of(team).select_for_update().get(pk=trace.pk)
    if trace.status == outcome:
        return Reflection.objects.of(team).filter(trace=trace).order_by("created_at").first()
    if trace.status != TraceStatus.OPEN:
        raise Conflict(f"This trace has ended already: {trace.status}.", code="trace_ended")
    if remember is not None:
        trace.remember = remember
    return _finish(team, by, trace, outcome, mask_text(result, mask_of(trace)), token)


def _finish(team: Team, by: Actor, trace: Trace, outcome: str, result: str, token: ApiToken | None) -> Reflection:
    if outcome not in END_STATES:
        raise bad("outcome", f"must be one of: {', '.join(END_STATES)}.")
    before = audit.state_of(trace)
    trace.status, trace.result, trace.ended_at = outcome, result, timezone.now()
    trace.digest = digest_of(trace)
    trace.save(update_fields=["status", "result", "ended_at", "remember", "digest"])
    audit.record(team=team, by=by, verb="trace.ended", on=trace, before=before, detail={"outcome": outcome})
    trigger = triggers.decide(trace_form(trace))
    if not trigger.reflect:
        now = timezone.now()
        skipped = _new_reflection(
            team, trace, token, status=ReflectionStatus.SKIPPED, reason=trigger.reason, finished_at=now
        )
        reflection_ended(skipped)
        return skipped
    return request_reflection(team=team, by=by, trace=trace, reason=trigger.reason, token=token)


@transaction.atomic
def request_reflection(
    *, team: Team, by: Actor, trace: Trace, reason: str = "asked for", token: ApiToken | None = None
) -> Reflection:
    """Queue a look back at an ended trace. One that is queued or running already is returned as it is."""
    if trace.status == TraceStatus.OPEN:
        raise Conflict("This trace is still open; end it first.", code="trace_open")
    standing = Reflection.objects.of(team).filter(trace=trace, status__in=REFLECTION_OPEN)
    if reflection := standing.first():
        return reflection
    try:
        with transaction.atomic():
            reflection = _new_reflection(team, trace, token, status=ReflectionStatus.QUEUED, reason=reason)
    except IntegrityError:  # another caller was faster; theirs is the one
        return standing.get()
    audit.record(team=team, by=by, verb="reflection.requested", on=reflection)
    enqueue(REFLECT, team.pk, reflection.pk)
    return reflection


@transaction.atomic
def request_consolidation(
    *,
    team: Team,
    by: Actor,
    agent: Agent | None,
    scope: Scope,
    episodes: Sequence[Memory],
    instruction: str = "",
    reason: str = "asked for",
    token: ApiToken | None = None,
) -> Reflection:
    """Queue a look across chosen memories; what it concludes goes to `scope` as candidates.

    The same episodes with the same instruction, queued or running already, are returned as they are. Raises
    `Invalid` for fewer than two episodes or an instruction that is too long.
    """
    if len(episodes) < FEWEST_EPISODES:
        raise bad("episodes", f"must name at least {FEWEST_EPISODES} memories: one alone shows nothing that repeats.")
    check_instruction(instruction)
    ids, wanted = sorted(memory.pk for memory in episodes), mask_text(instruction)
    Scope.objects.of(team).select_for_update(no_key=True).get(pk=scope.pk)  # two equal requests take turns
    open_looks = Reflection.objects.of(team).filter(trace=None, scope=scope, status__in=REFLECTION_OPEN)
    if standing := open_looks.filter(episodes=ids, instruction=wanted).first():
        return standing
    reflection = Reflection.objects.create(
        team=team, trace=None, agent=agent, scope=scope, token=token, episodes=ids, instruction=wanted, reason=reason
    )
    audit.record(team=team, by=by, verb="reflection.requested", on=reflection, detail={"episodes": len(ids)})
    enqueue(REFLECT, team.pk, reflection.pk)
    return reflection


def _new_reflection(team: Team, trace: Trace, token: ApiToken | None, **fields: Any) -> Reflection:
    return Reflection.objects.create(
        team=team,
        trace=trace,
        agent_id=trace.agent_id,
        token=token,
        scope=scopes.private_of(team, trace.agent),
        **fields,
    )


@transaction.atomic
def delete_trace(*, team: Team, by: Actor, trace: Trace) -> None:
    """Delete a trace with its steps and runs. Memories stay; their quotes from it are emptied."""
    # The runs first, as a worker locks them: the two wait for each other instead of crossing.
    list(Reflection.objects.of(team).filter(trace=trace).select_for_update().order_by("pk"))
    quotes = memory_actions.clear_evidence_of_trace(team=team, trace_id=trace.pk)
    before, detail = audit.state_of(trace), {"quotes_cleared": quotes}
    audit.record(team=team, by=by, verb="trace.deleted", on=trace, before=before, after="", detail=detail)
    trace.delete()
