"""One look across episodes, from its claim to its end state. It proposes; it never deletes."""

from __future__ import annotations

from dataclasses import replace

from hindsight_site.accounts.audit import system
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions as memory_actions
from memories.actions import Draft, EvidenceDraft
from memories.actions.governing import may_become_semantic
from memories.enums import Kind, RelationKind, Tier, Trust
from memories.models import Memory
from reflection import admission, distill, ending, model_choice, said
from reflection.consolidation import patterns
from reflection.consolidation.gathering import Gathered, gather
from reflection.consolidation.patterns import INDEPENDENT
from reflection.distill.endpoint import ModelEndpoint
from reflection.enums import RejectReason
from reflection.forms import Candidate, Distilled
from reflection.lease import Claim
from reflection.models import Reflection, ReflectionResult

ACTOR = system("consolidation")
MOST_NEW = 5  # memories that one look may add
MOST_QUOTES = 3  # of each cited episode's evidence
_NOT_TWICE = f"fewer than {INDEPENDENT} independent traces show it"

Refusals = list[dict[str, str]]


def look(claim: Claim, run: Reflection) -> str:
    """Look across the episodes of a claimed run; return the state it ended in.

    Raises `LeaseLost`, `DistillError` or `OverQuota`: the caller ends the run.
    """
    with team_transaction(claim.team):
        gathered = gather(run)
        endpoint = model_choice.endpoint_of(claim.team)
        by_rules = model_choice.must_do_without(claim.team, endpoint)
    distilled = _distil(claim, gathered, None if by_rules else endpoint)
    proposed, refused = judge(gathered, distilled)

    def write(reflection: Reflection) -> list[ReflectionResult]:
        results = [*_propose(reflection, gathered, distilled, proposed), *_make_lasting(reflection, gathered)]
        return ReflectionResult.objects.bulk_create({result.memory_id: result for result in results}.values())

    return ending.finish(claim, distilled, write, refused, by_rules=by_rules)


def _distil(claim: Claim, gathered: Gathered, endpoint: ModelEndpoint | None) -> Distilled:
    if endpoint is None:
        return patterns.distil(gathered.episodes)
    return ending.counted(claim.team, lambda: distill.distil(gathered.form, endpoint=endpoint), endpoint)


def judge(gathered: Gathered, distilled: Distilled) -> tuple[list[Candidate], Refusals]:
    """Put every candidate through the gates: those of a reflection, and two independent traces behind it."""
    refused = [{"content": content, "reason": reason, "detail": ""} for content, reason in distilled.rejected]
    proposed: list[Candidate] = []
    for candidate in distilled.candidates:
        verdict = _admit(gathered, candidate, len(proposed))
        if isinstance(verdict, admission.Refused):
            refused.append({"content": candidate.content, "reason": verdict.reason, "detail": verdict.detail})
        else:
            proposed.append(verdict.candidate)
    return proposed, refused


def _admit(gathered: Gathered, candidate: Candidate, so_far: int) -> admission.Admitted | admission.Refused:
    if candidate.kind == Kind.TASK:
        return admission.Refused(RejectReason.NOT_DURABLE, "an episode is told once, by its own trace")
    verdict = admission.admit(candidate, gathered.form, contains_pii=said.holds_pii(candidate))
    if isinstance(verdict, admission.Refused):
        return verdict
    if len(gathered.traces(quote.step for quote in verdict.candidate.quotes)) < INDEPENDENT:
        return admission.Refused(RejectReason.NOT_GROUNDED, _NOT_TWICE)
    if so_far >= MOST_NEW:
        return admission.Refused(RejectReason.OVER_LIMIT, f"one look proposes {MOST_NEW} at most")
    return admission.Admitted(replace(verdict.candidate, tier=Tier.SEMANTIC.value))


def _propose(
    reflection: Reflection, gathered: Gathered, distilled: Distilled, proposed: list[Candidate]
) -> list[ReflectionResult]:
    """Write the candidates; each is joined to the episodes it was distilled from."""
    if not proposed:
        return []
    remembered = memory_actions.remember_many(
        team=reflection.team,
        by=ACTOR,
        scope=reflection.scope,
        drafts=[_draft(gathered, distilled, candidate) for candidate in proposed],
        agent=reflection.agent,
    )
    results = []
    for candidate, done in zip(proposed, remembered, strict=True):
        for source in gathered.cited(quote.step for quote in candidate.quotes):
            if source.pk != done.memory.pk:
                memory_actions.relate(
                    team=reflection.team, by=ACTOR, source=done.memory, target=source, kind=RelationKind.DISTILLED_FROM
                )
        effect = ReflectionResult.Effect.CONFIRMED if done.merged else ReflectionResult.Effect.CREATED
        results.append(_result(reflection, done.memory, effect))
    return results


def _draft(gathered: Gathered, distilled: Distilled, candidate: Candidate) -> Draft:
    sources = gathered.cited(quote.step for quote in candidate.quotes)
    return Draft(
        content=candidate.content,
        kind=candidate.kind,
        tier=candidate.tier,
        structure=dict(candidate.structure),
        confidence=candidate.confidence,
        # Never trusted above an agent's own word.
        trust=Trust.EXTERNAL if any(source.trust == Trust.EXTERNAL for source in sources) else Trust.AGENT,
        tags=candidate.tags,
        failure_class=candidate.failure_class,
        source="consolidation",
        distiller=distilled.distiller,
        model=distilled.model,
        prompt_version=distilled.prompt_version,
        evidence=tuple(quote for source in sources for quote in _evidence(gathered, source)),
        proposed=True,
        quarantine_reason=said.planted_in(candidate),
    )


def _evidence(gathered: Gathered, source: Memory) -> list[EvidenceDraft]:
    rows = gathered.evidence[source.pk][:MOST_QUOTES]
    return [EvidenceDraft.of(row) for row in rows if row.trace_id and row.step_id]


def _make_lasting(reflection: Reflection, gathered: Gathered) -> list[ReflectionResult]:
    """Lessons that independent traces have confirmed already live on as semantic memories."""
    held = [
        memory
        for memory, episode in zip(gathered.memories, gathered.episodes, strict=True)
        if memory.tier == Tier.EPISODIC and len(episode.traces) >= INDEPENDENT and may_become_semantic(memory)
    ]
    for memory in held:
        memory_actions.make_lasting(team=reflection.team, by=ACTOR, memory=memory)
    return [_result(reflection, memory, ReflectionResult.Effect.CONFIRMED) for memory in held]


def _result(reflection: Reflection, memory: Memory, effect: str) -> ReflectionResult:
    return ReflectionResult(team=reflection.team, reflection=reflection, memory=memory, effect=effect)
