"""One reflection from claim to end state: short transactions, model calls outside them.

claim → prepare → screen → distil → admit → memories.actions.remember, then the end state, all of the
writing in one transaction that holds the fence. A crash anywhere leaves nothing or everything.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from hindsight_site.accounts import quotas
from hindsight_site.accounts.audit import system
from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.quotas import OverQuota
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions as memory_actions
from memories import indexing
from memories.actions import Draft, EvidenceDraft
from memories.enums import Kind
from memories.models import Memory, RecallHit
from memories.safety.masking import find as find_pii
from memories.safety.screening import screen
from reflection import admission, distill, lease, prepare
from reflection.distill import rules
from reflection.distill.errors import DistillError
from reflection.enums import ReflectionStatus, RejectReason
from reflection.forms import Candidate, Distilled, Quote, TraceForm
from reflection.lease import Claim, LeaseLost
from reflection.models import Reflection, ReflectionResult, Trace
from reflection.normalise import trace_form
from reflection.prepare import Prepared

logger = logging.getLogger(__name__)
ACTOR = system("reflection")
RECALLS_BEFORE = timedelta(days=1)  # what was recalled this long before a trace may echo in it
BY_RULES = "by rules, this month's model tokens are used up"
BACKOFF = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=5))


@dataclass(frozen=True, slots=True)
class Material:
    """What a reflection looks at, read in one short transaction."""

    trace: Trace
    prepared: Prepared  # without what we handed out ourselves: that is not to be learnt twice
    known: tuple[str, ...]  # what is remembered about such tasks already
    lessons_before: int  # written from this trace by earlier reflections
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
            material = _read(claim)
            distilled = _distil(claim, material)
            judged, refused = _judge(material, distilled)
            return _finish(claim, material, distilled, judged, refused)
    except LeaseLost:
        logger.warning("lease lost", extra={"reflection": str(reflection_id)})
        return ""
    except DistillError as error:
        return _fail(claim, str(error), retryable=error.retryable, wait=error.retry_after, spent=error)
    except OverQuota as error:
        return _fail(claim, error.message, retryable=False)
    except Exception as error:
        # The message of an unexpected error can hold trace text: the log gets the stack, the row the name.
        logger.exception("reflection failed", extra={"reflection": str(reflection_id)})
        return _fail(claim, f"Unexpected {type(error).__name__}; see the log.", retryable=True)


def _read(claim: Claim) -> Material:
    with team_transaction(claim.team):
        trace = Trace.objects.of(claim.team).select_related("agent").get(reflections=claim.reflection_id)
        prepared = prepare.prepare(trace_form(trace), _recalled_texts(claim.team, trace))
        written = ReflectionResult.objects.of(claim.team).filter(
            reflection__trace=trace, memory__kind=Kind.EXPERIENCE, effect=ReflectionResult.Effect.CREATED
        )
        by_rules = bool(settings.LLM_BASE_URL) and quotas.model_tokens_are_used_up(claim.team)
        known = () if by_rules else _known_texts(claim, trace)
        return Material(trace, prepared, known, written.count(), by_rules)


def _distil(claim: Claim, material: Material) -> Distilled:
    """By the model or by rules. What a model used is counted at once, whatever becomes of its answer."""
    if material.by_rules:
        return rules.distil(material.prepared.trace)
    try:
        distilled = distill.distil(material.prepared.trace, material.known)
    except DistillError as error:
        _count_spent(claim.team, error.tokens_in, error.tokens_out)
        raise
    _count_spent(claim.team, distilled.tokens_in, distilled.tokens_out)
    return distilled


def _count_spent(team: Team, tokens_in: int, tokens_out: int) -> None:
    if not tokens_in + tokens_out:
        return
    # Dollars per million tokens are millionths of a dollar per token.
    cost = round(tokens_in * settings.LLM_PRICE_IN + tokens_out * settings.LLM_PRICE_OUT)
    with team_transaction(team):
        quotas.spend(team, Spent.MODEL_TOKENS, tokens_in + tokens_out)
        quotas.spend(team, Spent.MODEL_COST, cost)


def _recalled_texts(team: Team, trace: Trace) -> tuple[str, ...]:
    hits = RecallHit.objects.of(team).filter(
        recall__agent=trace.agent,
        recall__created_at__gte=trace.created_at - RECALLS_BEFORE,
        recall__created_at__lte=trace.ended_at or timezone.now(),
    )
    return tuple(hits.order_by("-id").values_list("memory__content", flat=True)[:100])


def _known_texts(claim: Claim, trace: Trace) -> tuple[str, ...]:
    """The live memories nearest to the task: a model is told, so that it does not repeat them."""
    if not settings.LLM_BASE_URL:
        return ()
    scope_id = Reflection.objects.of(claim.team).get(pk=claim.reflection_id).scope_id
    query = indexing.embed_query(trace.task)
    nearest = indexing.nearest(claim.team, [scope_id], query, limit=5)
    found = Memory.objects.of(claim.team).in_bulk([hit.memory_id for hit in nearest])
    return tuple(memory.content for memory in found.values())


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
        judged.append(Judged(verdict.candidate, _quarantine_reason(verdict.candidate, suspicious)))
    return judged, refused


def _admit(candidate: Candidate, prepared: Prepared, lessons: int) -> admission.Admitted | admission.Refused:
    verdict = admission.admit(
        candidate, prepared.trace, contains_pii=bool(find_pii(candidate.content)), lessons_so_far=lessons
    )
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
        verdict = screen(step.text, channel="tool_output" if step.role == "tool" else "user_input")
        if verdict.suspicious:
            found[step.sequence] = verdict.reason
    return found


def _quarantine_reason(candidate: Candidate, suspicious: dict[int, str]) -> str:
    own = screen(candidate.content, channel="memory")
    if own.suspicious:
        return own.reason
    rests_on = [suspicious[quote.step] for quote in candidate.quotes if quote.step in suspicious]
    return f"rests on a suspicious step: {rests_on[0]}" if rests_on else ""


def _finish(
    claim: Claim,
    material: Material,
    distilled: Distilled,
    judged: list[Judged],
    refused: list[dict[str, str]],
) -> str:
    """Write the memories and the end state in one transaction that holds the fence."""
    with team_transaction(claim.team):
        reflection = lease.held(claim)
        written = _remember(reflection, material, distilled, judged)
        reflection.status = _end_state(written, refused)
        reflection.distiller, reflection.model = distilled.distiller, distilled.model
        reflection.prompt_version = distilled.prompt_version
        reflection.tokens_in += distilled.tokens_in  # failed attempts before this one cost too
        reflection.tokens_out += distilled.tokens_out
        reflection.cost_usd, reflection.rejected = distilled.cost_usd, refused
        if material.by_rules:
            reflection.reason = f"{reflection.reason}; {BY_RULES}".lstrip("; ")[:300]
        reflection.error, reflection.lease_until, reflection.finished_at = "", None, timezone.now()
        reflection.save()
        return reflection.status


def _remember(
    reflection: Reflection, material: Material, distilled: Distilled, judged: list[Judged]
) -> list[ReflectionResult]:
    steps = {step.sequence: step for step in material.trace.steps.all()}
    drafts = [_draft(material, distilled, item, steps) for item in judged]
    remembered = memory_actions.remember_many(
        team=reflection.team, by=ACTOR, scope=reflection.scope, drafts=drafts, agent=reflection.agent
    )
    results = {
        done.memory.pk: ReflectionResult(
            team=reflection.team, reflection=reflection, memory=done.memory, effect=_effect(done, item)
        )
        for done, item in zip(remembered, judged, strict=True)
    }
    return ReflectionResult.objects.bulk_create(results.values())


def _effect(done: memory_actions.Remembered, item: Judged) -> str:
    if item.quarantine_reason:
        return ReflectionResult.Effect.QUARANTINED
    return ReflectionResult.Effect.CONFIRMED if done.merged else ReflectionResult.Effect.CREATED


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
    )


def _end_state(written: list[ReflectionResult], refused: list[dict[str, str]]) -> str:
    if any(result.effect != ReflectionResult.Effect.CONFIRMED for result in written):
        return ReflectionStatus.STORED
    if written or not refused:
        return ReflectionStatus.NOTHING_NEW
    return ReflectionStatus.REJECTED


def _fail(
    claim: Claim,
    message: str,
    *,
    retryable: bool,
    wait: float | None = None,
    spent: DistillError | None = None,
) -> str:
    """Queue the reflection again after a pause, or end it as failed. The trace stays either way."""
    try:
        with team_transaction(claim.team):
            reflection = lease.held(claim)
            again = retryable and reflection.attempts < settings.REFLECTION_MAX_ATTEMPTS
            pause = timedelta(seconds=wait) if wait else BACKOFF[min(reflection.attempts, len(BACKOFF)) - 1]
            reflection.status = ReflectionStatus.QUEUED if again else ReflectionStatus.FAILED
            reflection.run_after = timezone.now() + pause if again else reflection.run_after
            reflection.finished_at = None if again else timezone.now()
            reflection.error, reflection.lease_until = message[:500], None
            if spent is not None:
                reflection.tokens_in += spent.tokens_in
                reflection.tokens_out += spent.tokens_out
            reflection.save()
            return reflection.status
    except LeaseLost:
        return ""
