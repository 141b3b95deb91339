"""An episode told in a few sentences, English or Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reflection.distill.blame import GROUNDS, Blame
from reflection.distill.calls import Attempt, command_of, is_call, is_note
from reflection.distill.changes import Change
from reflection.distill.commands import code, command_told
from reflection.distill.pairs import Findings, Pair, Passing, error_message
from reflection.distill.patterns import says_nothing
from reflection.distill.signs import find_error, is_result
from reflection.distill.wording import call_told, either, ended, quoted, shorten, show, weight
from reflection.enums import Role, TraceStatus
from reflection.forms import StepForm, TraceForm

ERROR_LIMIT = 120  # characters of an error told
_GOAL_LIMIT = 160
_RESULT_LIMIT = 160
_AT_MOST = 3  # failures told one by one
_TOOLS_TOLD = 6
_WORDLESS = 11  # letters; a closing message this short ("TERMINATE") tells nothing
_STATES = {
    TraceStatus.SUCCEEDED.value: ("Succeeded", "成功"),
    TraceStatus.FAILED.value: ("Failed", "失败"),
    TraceStatus.INTERRUPTED.value: ("Interrupted", "中断"),
}
_PLEASANTRY = re.compile(
    r"\W*(?:you(?:['’]re| are) (?:very |most )?welcome|my pleasure|glad (?:I|to)"
    r"|have a (?:great|nice|good)|thank you for|take care|goodbye"
    r"|不客气|不用谢|很高兴|祝您|祝你|再见)",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\b(?:next|then|now) (?:I|we)(?:['’]ll| will| need to| should)\b|\bI(?:['’]ll| will"
    r"| am going to|['’]m going to) (?:now|next|then)?"
    r"|\bnext step|\bremaining\b|\bstill (?:need|have) to\b|接下来|下一步|还需要|剩下|然后我",
    re.IGNORECASE,
)


def tell_episode(trace: TraceForm, findings: Findings, wrong: Blame | None, hint: str, zh: bool) -> str:
    """Tell the episode in a few sentences."""
    goal = ended(shorten(trace.task, _GOAL_LIMIT))
    parts = [_opening(trace, goal, zh)]
    if wrong is not None:
        parts.append(_wrong_told(wrong, zh))
    parts.extend(_fixed_told(pair, zh) for pair in findings.pairs[:_AT_MOST])
    parts.extend(_others_told(findings, wrong, zh))
    parts.extend(_recovered_told(findings, zh))
    parts.extend(_passing_told(findings, zh))
    parts.append(_worked_told(findings, zh))
    parts.append(_result_told(trace, zh))
    parts.append(hint)
    return ("" if zh else " ").join(part for part in parts if part)


def _opening(trace: TraceForm, goal: str, zh: bool) -> str:
    english, chinese = _STATES.get(trace.outcome, (trace.outcome, trace.outcome))
    return f"任务{chinese}：{goal}" if zh else f"{english}: {goal}"


def error_told(attempt: Attempt, limit: int = ERROR_LIMIT) -> str:
    """Return an attempt's error as it is quoted."""
    return shorten(quoted(error_message(attempt)), limit).rstrip(".。")


def _wrong_told(wrong: Blame, zh: bool) -> str:
    place = where(wrong.step, wrong.call or wrong.tool, zh)
    detail = shorten(quoted(wrong.detail), ERROR_LIMIT).rstrip(".。")
    if wrong.certain:
        return f"{place}失败：“{detail}”。" if zh else f"It failed at {place}: “{detail}”."
    if wrong.ground == "outlived":
        return either(
            zh,
            f"最可能出错的是{place}：报错“{detail}”，之后未能挽回。",
            f"Most likely wrong: {place}; it answered “{detail}”, which was never made good.",
        )
    ground = GROUNDS[wrong.ground][1 if zh else 0]
    said = f"（“{detail}”）" if zh and detail else f" (“{detail}”)" if detail else ""
    return either(zh, f"最可能出错的是{place}：{ground}{said}。", f"Most likely wrong: {place}; {ground}{said}.")


def _fixed_told(pair: Pair, zh: bool) -> str:
    place = where(pair.failed.step, pair.failed.tool, zh)
    error = error_told(pair.failed, 80)
    how = _how(pair, zh)
    if zh:
        return f"{place}报错“{error}”，{how}后在第 {pair.fixed.step.sequence} 步成功。"
    return f"{place[0].upper()}{place[1:]} met “{error}”; {how} worked at step {pair.fixed.step.sequence}."


def _how(pair: Pair, zh: bool) -> str:
    if pair.kind == "switched":
        return f"改用 {pair.fixed.tool} " if zh else f"{pair.fixed.tool} instead"
    if pair.through:
        done, at = call_told(pair.through[-1], 60), pair.through[-1].step.sequence
        return f"先在第 {at} 步执行 {done} " if zh else f"{done} at step {at}, then the same call,"
    if len(pair.changes) == 1 and pair.changes[0].name not in ("code", "message"):
        command = command_of(pair.fixed.tool, pair.fixed.arguments)
        return _one_change(pair.changes[0], code(command_told(command)) if command else None, zh)
    names = list(dict.fromkeys(change.name for change in pair.changes))[:_AT_MOST]
    joined = ("、" if zh else ", ").join(names)
    return f"修改 {joined} " if zh else f"changing {joined}"


def _one_change(change: Change, command: str | None, zh: bool) -> str:
    if change.new is None:
        return f"去掉 {change.name} " if zh else f"the call without {change.name}"
    if command is not None:
        return f"改为执行 {command} " if zh else command
    new = show(change.new, 70)
    return f"把 {change.name} 改为 {new} " if zh else f"{change.name} = {new}"


def _others_told(findings: Findings, wrong: Blame | None, zh: bool) -> list[str]:
    """Paths ruled out: errors that were never made good, apart from the step already named."""
    named = wrong.step.sequence if wrong is not None else -1
    told = {(wrong.tool, shorten(quoted(wrong.detail), ERROR_LIMIT))} if wrong is not None else set()
    others = []
    for attempt in findings.unresolved:
        said = (attempt.tool, shorten(quoted(error_message(attempt)), ERROR_LIMIT))
        if attempt.step.sequence != named and said not in told:
            others.append(attempt)
            told.add(said)
    if not others:
        return []
    listed = ("；" if zh else "; ").join(
        f"{where(a.step, a.tool, zh)} “{error_told(a, 80)}”" for a in others[:_AT_MOST]
    )
    more = len(others) - _AT_MOST
    rest = (f"，另有 {more} 处" if zh else f", and {more} more") if more > 0 else ""
    return [f"未能解决的报错：{listed}{rest}。" if zh else f"Also without success: {listed}{rest}."]


def _recovered_told(findings: Findings, zh: bool) -> list[str]:
    """Errors after which the same tool worked, although what was changed does not explain it."""
    told: dict[tuple[str, str], str] = {}
    for attempt in findings.recovered:
        place, error = where(attempt.step, attempt.tool, zh), error_told(attempt, 80)
        text = f"{place}报错“{error}”" if zh else f"{place} “{error}”"
        if not says_nothing(error):
            told.setdefault((attempt.tool, error), text)
    if not told:
        return []
    listed = ("；" if zh else "; ").join(list(told.values())[:_AT_MOST])
    return [
        f"途中{listed}，之后另一次调用成功。"
        if zh
        else f"Failed on the way, though other calls of the tool worked later: {listed}."
    ]


def _passing_told(findings: Findings, zh: bool) -> list[str]:
    told: dict[tuple[str, str], Passing] = {}
    for passing in findings.passing:
        told.setdefault((passing.failed.tool, error_told(passing.failed, 80)), passing)
    sentences = []
    for (tool, error), passing in list(told.items())[:_AT_MOST]:
        if passing.again is not None:
            at = passing.again.step.sequence
            again = either(zh, f"第 {at} 步原样重试即成功", f"the same call worked at step {at}")
        else:
            again = either(zh, "没有原样重试成功", "no retry of the same call is on record")
        sentences.append(
            either(
                zh,
                f"暂时性故障：{tool} 报错“{error}”，{again}。",
                f"A passing failure: {tool} answered “{error}”; {again}.",
            )
        )
    return sentences


def _worked_told(findings: Findings, zh: bool) -> str:
    worked = tools_used([attempt for attempt in findings.attempts if attempt.succeeded])
    if not worked:
        return ""
    listed = ("、" if zh else ", ").join(worked[:_TOOLS_TOLD])
    return f"有效的工具：{listed}。" if zh else f"Worked: {listed}."


def _result_told(trace: TraceForm, zh: bool) -> str:
    """Tell what came of it; the agent's own closing words are given as its words, not as the truth."""
    result = ended(final_result(trace, _RESULT_LIMIT).replace("**", ""))
    if not result or (trace.outcome == TraceStatus.INTERRUPTED and not trace.result):
        return ""
    if trace.result:
        return f"结果：{result}" if zh else f"Result: {result}"
    closing = _closing(trace)
    if closing is not None and is_result(closing):
        return f"最后的返回：{result}" if zh else f"Last result: {result}"
    return f"智能体最后表示：{result}" if zh else f"The agent's last words: {result}"


def final_result(trace: TraceForm, limit: int) -> str:
    """Return what the client said came of it, else the last words of the run that say something."""
    if trace.result:
        return shorten(trace.result, limit)
    closing = _closing(trace)
    return shorten(closing.content, limit) if closing is not None else ""


def _closing(trace: TraceForm) -> StepForm | None:
    """Return the last step that tells how the run ended: a result or what the agent said, not a courtesy."""
    for step in reversed(trace.steps):
        said = step.role == Role.ASSISTANT and not is_call(step) and weight(step.content) > _WORDLESS
        if said and not _PLEASANTRY.match(step.content):
            return step
        if is_result(step) and step.content.strip() and not is_note(step) and find_error(step) is None:
            return step
    return None


def resume_hint(trace: TraceForm, findings: Findings, zh: bool) -> str:
    """Say what is needed to go on: what was done last, what was under way, what was planned."""
    parts = [_done_told(findings, zh), _last_told(findings, zh)]
    if planned := _planned(trace):
        parts.append(either(zh, f"原计划：“{planned}”", f"planned: “{planned}”"))
    told = either(zh, "；", "; ").join(part for part in parts if part)
    return either(zh, f"继续时：{told}。", f"To resume: {told}.") if told else ""


def _done_told(findings: Findings, zh: bool) -> str:
    """What must not be done twice, or else the last step that worked."""
    done = [attempt for attempt in findings.attempts if attempt.succeeded]
    changes = [attempt for attempt in done if attempt.changes_state]
    if changes:
        listed = either(zh, "、", "; ").join(call_told(attempt) for attempt in changes[-3:])
        return either(zh, f"已完成的改动：{listed}，不要重复", f"done already, do not repeat: {listed}")
    if not done:
        return ""
    place = where(done[-1].step, call_told(done[-1]), zh)
    answer = shorten(done[-1].result.content, 80) if done[-1].result is not None else ""
    if not answer:
        return either(zh, f"最后成功的是{place}", f"the last call that worked was {place}")
    return either(
        zh,
        f"最后成功的是{place}，返回 {answer}",
        f"the last call that worked was {place}, which gave {answer}",
    )


def _last_told(findings: Findings, zh: bool) -> str:
    """A call without a result, or the error that the run stopped at."""
    last = findings.attempts[-1] if findings.attempts else None
    if last is not None and last.result is None:
        sent = call_told(last)
        return either(zh, f"已发出但未见结果：{sent}，先核实", f"called without a result, check first: {sent}")
    if last is not None and last.error is not None:
        error = error_told(last, 80)
        return either(zh, f"停在报错：“{error}”", f"stopped at “{error}”")
    return ""


def _planned(trace: TraceForm) -> str:
    for step in reversed(trace.steps):
        if step.role == Role.ASSISTANT and step.content:
            for line in re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n", step.content):
                if _NEXT.search(line):
                    return shorten(line, 120).rstrip(".。")
    return ""


def where(step: StepForm, tool: str, zh: bool) -> str:
    """Name a step by its sequence number, and the tool or the call it made."""
    if not tool:
        return f"第 {step.sequence} 步" if zh else f"step {step.sequence}"
    tool = shorten(tool, 90)
    if zh:
        return f"第 {step.sequence} 步（{tool}）"
    # A call with its arguments has brackets already.
    return f"step {step.sequence}, {tool}" if "(" in tool else f"step {step.sequence} ({tool})"


def tools_used(made: Sequence[Attempt]) -> list[str]:
    """Return the names of the tools called, in order, without repeats."""
    return list(dict.fromkeys(shorten(attempt.tool, 60) for attempt in made))
