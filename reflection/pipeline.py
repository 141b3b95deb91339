"""One reflection from claim to end state: short transactions, model calls outside them.

claim → prepare → screen → distil → admit → memories.actions.remember, then the end state, all of the
writing in one transaction that holds the fence. A crash anywhere leaves nothing or everything.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db.models import Min
from django.utils import timezone

from hindsight_site.accounts.audit import system
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.quotas import OverQuota
from hindsight_site.accounts.tenancy import team_transaction
from memories import indexing
from memories.actions import Draft, EvidenceDraft
from memories.enums import Kind
from memories.models import Memory
from memories.policies import LIVE
from memories.receipt_queries import HandedOut, handed_out
from memories.safety.planted import planted, strings_of
from memories.safety.screening import screen
from reflection import admission, asker, distill, ending, lease, model_choice, operations, prepare, said
from reflection.asker import AskerGone
from reflection.consolidation import looking
from reflection.distill.endpoint import ModelEndpoint
from reflection.distill.errors import DistillError
from reflection.enums import RejectReason
from reflection.forms import Candidate, Distilled, Quote, TraceForm
from reflection.lease import Claim, LeaseLost
from reflection.models import Reflection, ReflectionResult, Trace
from reflection.normalise import trace_form
from reflection.operations import Operated
from reflection.prepare import Prepared

logger = logging.getLogger(__name__)
ACTOR = system("reflection")
RECALLS_BEFORE = timedelta(days=1)  # what was recalled this long before a task may echo in it
LONGEST_TASK = timedelta(days=30)  # a trace that was sent whole says itself when it began; within this it is believed


@dataclass(frozen=True, slots=True)
class Known:
    """A live memory that the model is told of."""

    memory_id: uuid.UUID
    content: str


@dataclass(frozen=True, slots=True)
class Material:
    """What a reflection looks at, read in short transactions."""

    trace: Trace
    prepared: Prepared  # without what we handed out ourselves: that is not to be learnt twice
    known: tuple[Known, ...]  # what is remembered about such tasks already
    lessons_before: int  # written from this trace by earlier reflections
    endpoint: ModelEndpoint | None  # None: the rules distil
    by_rules: bool  # although there is a model: the team has used up its tokens


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate that passed the gates, and why it must wait for a person if it must."""

    candidate: Candidate
    quarantine_reason: str


def reflect(team: Team, reflection_id: uuid.UUID) -> str:
    """Run one reflection to a state the caller can see. Returns that state, or "" when not ours."""
    claim = lease.claim(team, reflection_id)
    if claim is None:
        return ""
    try:
        with lease.kept(claim):
            run = asker.checked(claim)
            if run.trace_id is None:
                return looking.look(claim, run)
            material = _read(claim, run)
            distilled = _distil(claim, material)
            judged, refused = _judge(material, distilled)
            return _finish(claim, material, distilled, judged, refused)
    except LeaseLost:
        logger.warning("lease lost", extra={"reflection": str(reflection_id)})
        return ""
    except DistillError as error:
        return ending.fail(claim, str(error), retryable=error.retryable, wait=error.retry_after, spent=error)
    except OverQuota as error:
        return ending.fail(claim, error.message, retryable=False)
    except AskerGone as error:
        return ending.fail(claim, str(error), retryable=False)
    except Exception as error:
        # The message of an unexpected error can hold trace text: the log gets the stack, the row the name.
        logger.exception("reflection failed", extra={"reflection": str(reflection_id)})
        return ending.fail(claim, f"Unexpected {type(error).__name__}; see the log.", retryable=True)


def _read(claim: Claim, run: Reflection) -> Material:
    with team_transaction(claim.team):
        trace = Trace.objects.of(claim.team).select_related("agent", "token").get(reflections=claim.row_id)
        form = trace_form(trace)
        given = _handed_out(claim.team, trace)
        written = ReflectionResult.objects.of(claim.team).filter(
            reflection__trace=trace, memory__kind=Kind.EXPERIENCE, effect=ReflectionResult.Effect.CREATED
        )
        lessons_before = written.count()
        endpoint = model_choice.endpoint_of(claim.team)
        by_rules = model_choice.must_do_without(claim.team, endpoint)
    # Both may take seconds, so that no transaction is open meanwhile: a long trace, an embedding endpoint.
    prepared = prepare.prepare(form, given.texts, given.recall_ids)
    known = _known(claim.team, run.scope_id, trace) if endpoint is not None and not by_rules else ()
    return Material(trace, prepared, known, lessons_before, endpoint, by_rules)


def _distil(claim: Claim, material: Material) -> Distilled:
    """By the model or by rules."""
    endpoint = None if material.by_rules else material.endpoint
    known = tuple(memory.content for memory in material.known)
    trace = material.prepared.trace
    return ending.counted(claim.team, lambda: distill.distil(trace, known, endpoint=endpoint), endpoint)


def _handed_out(team: Team, trace: Trace) -> HandedOut:
    """What was recalled for this task, and shortly before it began."""
    began = min(filter(None, [trace.created_at, trace.steps.aggregate(first=Min("at"))["first"]]))
    since = max(began, trace.created_at - LONGEST_TASK) - RECALLS_BEFORE
    return handed_out(
        team=team, agent=trace.agent, token_id=trace.token_id, session_id=trace.session_id, since=since,
        until=trace.ended_at or timezone.now(),
    )  # fmt: skip


def _known(team: Team, scope_id: uuid.UUID, trace: Trace) -> tuple[Known, ...]:
    """The live memories nearest to the task: a model is told, so that it does not repeat them."""
    query = indexing.embed_query(trace.task)
    with team_transaction(team):
        nearest = indexing.nearest(team, [scope_id], query, limit=5)
        found = Memory.objects.of(team).in_bulk([hit.memory_id for hit in nearest])
    return tuple(Known(memory.pk, memory.content) for memory in found.values() if memory.status in LIVE)


def _judge(material: Material, distilled: Distilled) -> tuple[list[Judged], list[dict[str, str]]]:
    """Put every candidate through the gates. Returns those admitted, and each refusal with its reason."""
    suspicious = _suspicious_steps(material.prepared.original)
    refused = [{"content": content, "reason": reason, "detail": ""} for content, reason in distilled.rejected]
    judged: list[Judged] = []
    lessons = material.lessons_before
    for candidate in distilled.candidates:
        verdict = _admit(candidate, material.prepared, lessons)
        if isinstance(verdict, admission.Refused):
            refused.append({"content": candidate.content, "reason": verdict.reason, "detail": verdict.detail})
            continue
        lessons += verdict.candidate.kind == Kind.EXPERIENCE
        reason = _quarantine_reason(verdict.candidate, suspicious, material.trace.environment)
        judged.append(Judged(verdict.candidate, reason))
    return judged, refused


def _admit(candidate: Candidate, prepared: Prepared, lessons: int) -> admission.Admitted | admission.Refused:
    verdict = admission.admit(candidate, prepared.trace, contains_pii=said.holds_pii(candidate), lessons_so_far=lessons)
    if isinstance(verdict, admission.Refused):
        return verdict
    # A quote of a note that preparing put in has no place in the trace as it was stored.
    quotes = tuple(filter(None, map(prepared.original_quote, verdict.candidate.quotes)))
    if not quotes:
        return admission.Refused(RejectReason.NOT_GROUNDED, "its quotes are not in the trace as it was sent")
    return admission.Admitted(replace(verdict.candidate, quotes=quotes))


def _suspicious_steps(form: TraceForm) -> dict[int, str]:
    """Which steps look like planted instructions, and why."""
    found = {}
    for step in form.steps:
        text = "\n".join((step.text, *strings_of(step.arguments))) if step.content else step.text
        verdict = screen(text, channel="tool_output" if step.role == "tool" else "user_input")
        if verdict.suspicious:
            found[step.sequence] = verdict.reason
    return found


def _quarantine_reason(candidate: Candidate, suspicious: dict[int, str], environment: Mapping[str, Any]) -> str:
    """Why a candidate must wait for a person: what it says anywhere, what it rests on, or where it was learnt."""
    own = said.planted_in(candidate)
    if own:
        return own
    rests_on = [suspicious[quote.step] for quote in candidate.quotes if quote.step in suspicious]
    if rests_on:
        return f"rests on a suspicious step: {rests_on[0]}"
    return planted({"environment": environment})


def _finish(
    claim: Claim,
    material: Material,
    distilled: Distilled,
    judged: list[Judged],
    refused: list[dict[str, str]],
) -> str:
    def write(reflection: Reflection) -> list[ReflectionResult]:
        return _remember(reflection, material, distilled, judged)

    return ending.finish(claim, distilled, write, refused, by_rules=material.by_rules)


def _remember(
    reflection: Reflection, material: Material, distilled: Distilled, judged: list[Judged]
) -> list[ReflectionResult]:
    steps = {step.sequence: step for step in material.trace.steps.all()}
    operated = [_operated(material, item, _draft(material, distilled, item, steps)) for item in judged]
    results = operations.carry_out(by=ACTOR, reflection=reflection, operated=operated)
    return ReflectionResult.objects.bulk_create(results)


def _operated(material: Material, item: Judged, draft: Draft) -> Operated:
    about = item.candidate.about
    if about is None or about >= len(material.known):
        return Operated(draft)
    return Operated(draft, item.candidate.operation, material.known[about].memory_id)


def _draft(material: Material, distilled: Distilled, item: Judged, steps: dict[int, Any]) -> Draft:
    candidate = item.candidate
    return Draft(
        content=candidate.content,
        kind=candidate.kind,
        tier=candidate.tier,
        structure=dict(candidate.structure),
        confidence=candidate.confidence,
        tags=candidate.tags,
        environment=material.trace.environment,
        failure_class=candidate.failure_class,
        session_id=material.trace.session_id,
        source="reflection",
        occurred_at=material.trace.ended_at,
        distiller=distilled.distiller,
        model=distilled.model,
        prompt_version=distilled.prompt_version,
        quarantine_reason=item.quarantine_reason,
        evidence=tuple(_evidence(material.trace, quote, steps[quote.step]) for quote in candidate.quotes),
    )


def _evidence(trace: Trace, quote: Quote, step: Any) -> EvidenceDraft:
    return EvidenceDraft(
        trace_id=trace.pk,
        step_id=step.pk,
        step_sequence=quote.step,
        role=step.role,
        start=quote.start,
        end=quote.end,
        quote=quote.text,
        trace_digest=trace.digest,
        witness_id=_witness_id(trace),
    )


def _witness_id(trace: Trace) -> uuid.UUID | None:
    """The agent of a trace, when its own token sent it."""
    return trace.agent_id if trace.token and trace.token.agent_id == trace.agent_id else None
