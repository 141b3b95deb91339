"""Lessons from error → change → success, worded for a later agent in the language of the trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memories.enums import Kind, Tier
from reflection.distill.blame import INVENTED
from reflection.distill.calls import Attempt, command_of, is_call
from reflection.distill.changes import Change
from reflection.distill.commands import command_shown
from reflection.distill.pairs import Pair
from reflection.distill.patterns import error_pattern, says_nothing
from reflection.distill.phrasing import Advice, advise, prepared, sentence, switched
from reflection.distill.placeholders import generalise, names_setting, run_ids
from reflection.distill.readings import Fix
from reflection.distill.signs import error_quote, head_quote
from reflection.distill.wording import (
    call_told,
    either,
    filled,
    first_sentence,
    is_chinese,
    leaves,
    one_line,
    settings,
    shorten,
    show,
)
from reflection.enums import Role, TraceStatus
from reflection.forms import Candidate, Quote, StepForm, TraceForm

LENGTH = 300  # characters of a lesson at most
_REASON_LIMIT = 300  # characters of the agent's own reason that are quoted
_KEPT = 8  # changes kept as data
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
class Context:
    """What the lessons of one trace share: the trace, its run's ids and its language."""

    trace: TraceForm
    ids: Mapping[str, str]
    zh: bool

    @property
    def failed_run(self) -> bool:
        """Whether the run as a whole did not succeed."""
        return self.trace.outcome != TraceStatus.SUCCEEDED


def context_of(trace: TraceForm) -> Context:
    """Return what the lessons of a trace share."""
    return Context(trace, run_ids(trace), is_chinese(trace))


def lessons(context: Context, pairs: tuple[Pair, ...]) -> tuple[Candidate, ...]:
    """Return the lessons of a trace's pairs, the most useful first, without a repeated wording."""
    ranked = sorted(pairs, key=lambda pair: -_usefulness(pair))
    made = [lesson for pair in ranked if (lesson := _lesson(pair, context)) is not None]
    return tuple({lesson.content: lesson for lesson in made}.values())


def _lesson(pair: Pair, context: Context) -> Candidate | None:
    """Return one pair as a lesson, or None when it would say nothing that helps."""
    if INVENTED.search(pair.fixed.step.text):
        return None  # the error went away because made-up data took the place of real data
    advice = _advice(pair, context)
    if advice is None:
        return None
    tool, command = shorten(pair.failed.tool, 60), command_of(pair.failed.tool, pair.failed.arguments)
    pattern = pattern_of(pair.failed, pair.message, context, advice.text, pair.fix)
    if says_nothing(pattern):
        if not advice.always:
            return None
        pattern = ""
    reason = reasoning(pair, context.trace)
    content = shorten(sentence(tool, command, advice, pattern, context.zh), LENGTH)
    structure = {
        "situation": situation([tool, pair.kind, *_told_names(pair)], context),
        "decision": {
            "action": _action(pair),
            "parameters": _parameters(pair, context),
            "reasoning": first_sentence(reason[1], 200) if reason else "",
        },
        "outcome": _outcome(pair),
        "lesson": content,
        "applies_when": applies_when(pair.failed, pattern, context.zh),
        "not_when": _not_when(context),
        "failure_class": failure_class(pair.failed),
    }
    return Candidate(
        kind=Kind.EXPERIENCE.value,
        tier=Tier.EPISODIC.value,
        content=content,
        structure=filled(structure),
        confidence=_confidence(pair, context.failed_run),
        quotes=_quotes(pair, reason),
        failure_class=failure_class(pair.failed),
        tags=(tool,),
    )


def _advice(pair: Pair, context: Context) -> Advice | None:
    if pair.kind == "switched":
        return switched(pair.fixed.tool, context.zh)
    if pair.kind == "prepared":
        return prepared(pair.through, context.zh)
    return advise(pair.fix, context.ids, context.zh) if pair.fix is not None else None


def pattern_of(failed: Attempt, message: str, context: Context, kept: str = "", fix: Fix | None = None) -> str:
    """Return the error of a call without the run's own values, save those that `kept` names too."""
    if command_of(failed.tool, failed.arguments) is not None:
        return error_pattern(message, (), kept, context.ids)
    given = [value for path, value in leaves(failed.arguments) if not names_setting(path)]
    # A setting stays where it is part of the situation, and goes where it was the mistake.
    given += [change.old for change in fix.changes] if fix is not None else []
    return error_pattern(message, given, kept, context.ids)


def situation(features: list[str], context: Context) -> dict[str, object]:
    """Return where a lesson was learnt."""
    return {
        "task_type": shorten(context.trace.task_type, 100),
        "features": list(dict.fromkeys(shorten(name, 60) for name in features if name))[:8],
        "environment": settings(context.trace.environment),
        "text": generalise(shorten(context.trace.task, 200), context.ids),
    }


def _told_names(pair: Pair) -> list[str]:
    return [change.name for change in pair.fix.changes] if pair.fix is not None else []


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


def _action(pair: Pair) -> str:
    return {
        "changed": f"call {pair.fixed.tool} again with changed arguments",
        "prepared": f"prepare, then repeat {pair.fixed.tool}",
        "switched": f"use {pair.fixed.tool} in place of {pair.failed.tool}",
    }[pair.kind]


def _parameters(pair: Pair, context: Context) -> dict[str, object]:
    """Return the run's own values, the old beside the new; its ids as placeholders."""
    if pair.kind == "switched":
        return {"instead_of": pair.failed.tool, "use": pair.fixed.tool}
    if pair.kind == "prepared":
        told = "; ".join(call_told(attempt, 120) for attempt in pair.through)
        return {"first": generalise(told, context.ids, dates=False)}
    changes: tuple[Change, ...] = pair.changes[:_KEPT]
    return {
        change.path[:60]: {"from": _kept(change.old, context.ids), "to": _kept(change.new, context.ids)}
        for change in changes
    }


def _kept(value: object, ids: Mapping[str, str]) -> object:
    """Keep numbers and flags as they are in the structure; texts without this run's ids."""
    if value is None or isinstance(value, (int, float, bool)):
        return value
    return generalise(show(value, 120), ids, dates=False)


def applies_when(failed: Attempt, pattern: str, zh: bool) -> str:
    """Return the situation in which a lesson about a failing call helps."""
    command = command_of(failed.tool, failed.arguments)
    what = command_shown(command) if command is not None else shorten(failed.tool, 60)
    if not pattern:
        return f"调用 {what}" if zh else f"{what} is called"
    return f"调用 {what} 且报错为“{pattern}”" if zh else f"{what} fails with “{pattern}”"


def _not_when(context: Context) -> str:
    zh = context.zh
    passing = "报错只是暂时的（超时、限流）" if zh else "the failure is a passing one (time-out, rate limit)"
    if not context.failed_run:
        return passing
    doubt = either(
        zh,
        "；该次任务整体并未成功：此改动让调用通过，未必满足任务要求",
        "; that run as a whole did not succeed: the change made the call pass, check that the task wants it",
    )
    return passing + doubt


def failure_class(failed: Attempt) -> str:
    """Return why a call failed."""
    return failed.error.failure_class.value if failed.error else "none"


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
