"""The episode of a trace: what was wanted, what came of it, what failed and what worked."""

from __future__ import annotations

from collections.abc import Sequence

from memories.enums import FailureClass, Kind, Tier
from reflection.distill.blame import GROUNDS, Blame, blame
from reflection.distill.calls import Attempt, is_note
from reflection.distill.pairs import Findings
from reflection.distill.signs import error_quote, head_quote, is_result
from reflection.distill.telling import (
    ERROR_LIMIT,
    error_told,
    final_result,
    resume_hint,
    tell_episode,
    tools_used,
    where,
)
from reflection.distill.wording import filled, is_chinese, quoted, shorten
from reflection.enums import Role, TraceStatus
from reflection.forms import Candidate, Quote, TraceForm

_AT_MOST = 3  # failures told one by one
_LISTED = 20  # entries of a list in the structure
_CONFIDENCE = {"succeeded": 0.5, "failed_certain": 0.45, "failed_likely": 0.35, "interrupted": 0.45}


def episode(trace: TraceForm, findings: Findings) -> Candidate | None:
    """Return the episode of a trace, or None when no step has a word to quote."""
    zh = is_chinese(trace)
    wrong = blame(trace, findings) if trace.outcome == TraceStatus.FAILED else None
    quotes = _quotes(trace, findings, wrong)
    if not quotes:
        return None
    hint = resume_hint(trace, findings, zh) if trace.outcome == TraceStatus.INTERRUPTED else ""
    failure_class = _failure_class(trace, findings, wrong)
    structure = {
        "task_goal": shorten(trace.task or "?", 500),
        "tools_used": tools_used(findings.attempts)[:_LISTED],
        "success_steps": _success_steps(findings.attempts, zh),
        "failure_steps": _failure_steps(findings, wrong, zh),
        "final_result": final_result(trace, 500),
        "failure_class": failure_class,
        "resume_hint": hint,
    }
    return Candidate(
        kind=Kind.TASK.value,
        tier=Tier.EPISODIC.value,
        content=tell_episode(trace, findings, wrong, hint, zh),
        structure=filled(structure),
        confidence=_confidence(trace, wrong),
        quotes=quotes,
        failure_class=failure_class,
    )


def _success_steps(made: Sequence[Attempt], zh: bool) -> list[str]:
    return [where(a.step, a.tool, zh) for a in made if a.succeeded][:_LISTED]


def _failure_steps(findings: Findings, wrong: Blame | None, zh: bool) -> list[dict[str, str]]:
    """List the failing steps, the one that is blamed first."""
    listed: dict[int, dict[str, str]] = {}
    if wrong is not None:
        reason = GROUNDS[wrong.ground][1 if zh else 0] + (
            f": {shorten(quoted(wrong.detail), ERROR_LIMIT)}" if wrong.detail else ""
        )
        likely = "" if wrong.certain else ("最可能：" if zh else "most likely: ")
        listed[wrong.step.sequence] = {"step": where(wrong.step, wrong.tool, zh), "reason": likely + reason}
    for attempt in findings.attempts:
        if attempt.error is not None and attempt.step.sequence not in listed:
            passing = attempt.error.failure_class == FailureClass.TRANSIENT
            note = ("（暂时性）" if zh else " (transient)") if passing else ""
            reason = error_told(attempt) + note
            listed[attempt.step.sequence] = {"step": where(attempt.step, attempt.tool, zh), "reason": reason}
    return list(listed.values())[:_LISTED]


def _failure_class(trace: TraceForm, findings: Findings, wrong: Blame | None) -> str:
    """The class of the failure that the run ended on; `none` when it succeeded or no error tells."""
    if trace.outcome == TraceStatus.SUCCEEDED:
        return FailureClass.NONE.value
    if wrong is not None:
        return wrong.failure_class.value
    last = findings.attempts[-1] if findings.attempts else None
    return last.error.failure_class.value if last is not None and last.error else FailureClass.NONE.value


def _confidence(trace: TraceForm, wrong: Blame | None) -> float:
    if wrong is not None:
        return _CONFIDENCE["failed_certain" if wrong.certain else "failed_likely"]
    return _CONFIDENCE.get(trace.outcome, 0.35)


def _quotes(trace: TraceForm, findings: Findings, wrong: Blame | None) -> tuple[Quote, ...]:
    """Evidence: the wrong step, the errors, and the words the run ended with."""
    quotes: list[Quote] = []
    if wrong is not None:
        quotes.append(head_quote(wrong.step))
    for attempt in [*findings.unresolved, *(pair.failed for pair in findings.pairs)][:_AT_MOST]:
        if attempt.error is not None and attempt.result is not None:
            quotes.append(error_quote(attempt.result, attempt.error))
    telling = [step for step in trace.steps if step.text.strip() and not is_note(step)]
    ending = [step for step in telling if step.role == Role.ASSISTANT or is_result(step)]
    quotes.extend(head_quote(step) for step in (ending or telling)[-1:])
    return tuple(dict.fromkeys(quote for quote in quotes if quote.text.strip()))
