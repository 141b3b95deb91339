"""Lessons from error → change → success, worded for a later agent in the language of the trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memories.enums import Kind, Tier
from reflection.distill.blame import INVENTED
from reflection.distill.calls import is_call
from reflection.distill.pairs import Pair
from reflection.distill.patterns import error_pattern, says_nothing
from reflection.distill.phrasing import tell
from reflection.distill.signs import error_quote, head_quote
from reflection.distill.wording import (
    either,
    filled,
    first_sentence,
    generalise,
    is_chinese,
    one_line,
    run_ids,
    settings,
    shorten,
)
from reflection.enums import Role, TraceStatus
from reflection.forms import Candidate, Quote, StepForm, TraceForm

LENGTH = 300  # characters of a lesson at most
_REASON_LIMIT = 300  # characters of the agent's own reason that are quoted
_REMEDY = re.compile(
    r"\b(?:need(?:s|ed)? to|have to|must|should(?: be| have)?|instead|let(?:['’]s| me| us)"
    r"|I(?:['’]ll| will)|properly|correct(?:ly)?|fix)\b"
    r"|需要|应该|必须|改为|改用|应当|换成",
    re.IGNORECASE,
)
_CAUSAL = re.compile(
    r"\b(?:because|since|due to|requires?|required|only accepts|in order to|so that|means that"
    r"|turns out|indicates?)\b"
    r"|因为|由于|所以|原因",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？](?!\S)|[。！？]|\n|$)|[^\n]+")


@dataclass(frozen=True, slots=True)
class _Context:
    trace: TraceForm
    ids: Mapping[str, str]
    zh: bool


def lessons(trace: TraceForm, pairs: tuple[Pair, ...]) -> tuple[Candidate, ...]:
    """Return the lessons of a trace's pairs, the most useful first, without a repeated wording."""
    context = _Context(trace, run_ids(trace), is_chinese(trace))
    ranked = sorted(pairs, key=lambda pair: -_usefulness(pair))
    made = [lesson for pair in ranked if (lesson := _lesson(pair, context)) is not None]
    return tuple({lesson.content: lesson for lesson in made}.values())


def _lesson(pair: Pair, context: _Context) -> Candidate | None:
    """Return one pair as a lesson, or None when it would say nothing that helps."""
    if INVENTED.search(pair.fixed.step.text):
        return None  # the error went away because made-up data took the place of real data
    reason = reasoning(pair, context.trace)
    pattern = error_pattern(pair, context.ids)
    told = tell(pair, pattern, reason[1] if reason else "", context.ids, context.zh)
    if told is None or says_nothing(pattern):
        return None
    content = shorten(told.sentence, LENGTH)
    failed_run = context.trace.outcome != TraceStatus.SUCCEEDED
    structure = {
        "situation": _situation(pair, context),
        "decision": {
            "action": _action(pair),
            "parameters": told.parameters,
            "reasoning": first_sentence(reason[1], 200) if reason else "",
        },
        "outcome": _outcome(pair),
        "lesson": content,
        "applies_when": _applies_when(pair, pattern, context.zh),
        "not_when": _not_when(context.zh, failed_run),
        "failure_class": _failure_class(pair),
    }
    return Candidate(
        kind=Kind.EXPERIENCE.value,
        tier=Tier.EPISODIC.value,
        content=content,
        structure=filled(structure),
        confidence=_confidence(pair, failed_run),
        quotes=_quotes(pair, reason),
        failure_class=_failure_class(pair),
        tags=(shorten(pair.failed.tool, 60),),
    )


def _situation(pair: Pair, context: _Context) -> dict[str, object]:
    return {
        "task_type": shorten(context.trace.task_type, 100),
        "features": _features(pair),
        "environment": settings(context.trace.environment),
        "text": generalise(shorten(context.trace.task, 200), context.ids),
    }


def _outcome(pair: Pair) -> dict[str, object]:
    steps = pair.fixed.ended - pair.failed.ended
    return {"success": True, "metrics": {"failed_calls": pair.failures, "steps_to_fix": steps}}


def reasoning(pair: Pair, trace: TraceForm) -> tuple[Quote, str] | None:
    """Return what the agent itself said about the fix between the error and the success, verbatim."""
    last = pair.fixed.step.sequence
    for step in reversed(trace.steps):
        if step.role != Role.ASSISTANT or not pair.failed.ended < step.sequence <= last:
            continue
        said = _thought(step)
        sentences = [s.strip() for s in _SENTENCES.findall(said) if len(s.strip()) > 15]
        telling = [s for signs in (_REMEDY, _CAUSAL) for s in sentences if signs.search(s)]
        sentence = telling[0][:_REASON_LIMIT] if telling else ""
        at = step.text.find(sentence) if sentence else -1
        if at >= 0:
            return Quote(step.sequence, at, at + len(sentence), sentence), one_line(sentence)
    return None


def _thought(step: StepForm) -> str:
    """Return what a step says in prose: its words before any code, or the thought handed to a think tool."""
    if step.content:
        return step.content.split("```")[0]
    thought = (step.arguments or {}).get("thought") if is_call(step) else None
    return thought if isinstance(thought, str) else ""


def _features(pair: Pair) -> list[str]:
    named = [pair.failed.tool, pair.kind, *(change.name for change in pair.changes)]
    return list(dict.fromkeys(shorten(name, 60) for name in named))[:8]


def _action(pair: Pair) -> str:
    return {
        "changed": f"call {pair.fixed.tool} again with changed arguments",
        "prepared": f"prepare, then repeat {pair.fixed.tool}",
        "switched": f"use {pair.fixed.tool} in place of {pair.failed.tool}",
    }[pair.kind]


def _applies_when(pair: Pair, pattern: str, zh: bool) -> str:
    if zh:
        return f"调用 {pair.failed.tool} 且报错为“{pattern}”"
    return f"{pair.failed.tool} fails with “{pattern}”"


def _not_when(zh: bool, failed_run: bool) -> str:
    passing = "报错只是暂时的（超时、限流）" if zh else "the failure is a passing one (time-out, rate limit)"
    if not failed_run:
        return passing
    doubt = either(
        zh,
        "；该次任务整体并未成功：此改动让调用通过，未必满足任务要求",
        "; that run as a whole did not succeed: the change made the call pass, check that the task wants it",
    )
    return passing + doubt


def _failure_class(pair: Pair) -> str:
    return pair.failed.error.failure_class.value if pair.failed.error else "none"


def _confidence(pair: Pair, failed_run: bool) -> float:
    clear = pair.kind != "switched" and len(pair.changes) <= 2
    return round((0.45 if clear else 0.4) - (0.05 if failed_run else 0.0), 2)


def _usefulness(pair: Pair) -> float:
    """Rank pairs: a fix to a call that changes something first, then few changes, then much repeated ones."""
    acts = 2.0 if pair.fixed.changes_state else 0.0
    small = 1.0 if len(pair.changes) <= 2 else 0.0
    return acts + small + min(pair.failures, 4) * 0.5 + (0.5 if pair.kind == "prepared" else 0.0)


def _quotes(pair: Pair, reason: tuple[Quote, str] | None) -> tuple[Quote, ...]:
    """The error, the call that worked where its text is short enough to show, and the agent's reason."""
    quotes: list[Quote] = []
    if pair.failed.result is not None and pair.failed.error is not None:
        quotes.append(error_quote(pair.failed.result, pair.failed.error))
    for step in (pair.fixed.call, pair.fixed.result):
        if step is not None and step.text:
            quotes.append(head_quote(step))
    if reason is not None:
        quotes.append(reason[0])
    return tuple(dict.fromkeys(quotes))
