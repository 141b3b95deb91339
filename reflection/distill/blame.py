"""Which step of a failed trace went wrong: the step that failed, or the most likely one by evidence.

Every sign below points at steps with a weight; the step with the most weight is named, the earlier one
on a tie, because what follows a wrong step is often wrong only in its wake. Only an error that the run
ended on is called the failing step; everything else is "most likely" and says on what grounds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memories.enums import FailureClass
from reflection.distill.calls import Attempt, is_call, written_code
from reflection.distill.changes import fingerprint
from reflection.distill.pairs import Findings, error_message
from reflection.distill.wording import call_told, one_line
from reflection.enums import Role
from reflection.forms import StepForm, TraceForm


@dataclass(frozen=True, slots=True)
class Blame:
    """The step named as wrong. `certain` when the step itself failed and no other call worked after it."""

    step: StepForm
    tool: str
    ground: str  # a key of GROUNDS
    certain: bool
    detail: str = ""  # the error's words or the user's, verbatim
    call: str = ""  # the call with its arguments, where one was made
    failure_class: FailureClass = FailureClass.NONE


@dataclass(frozen=True, slots=True)
class _Sign:
    sequence: int
    weight: float
    ground: str
    detail: str = ""


# What each sign is worth. Orders of strength, not probabilities: an outcome that was checked and found
# wrong beats an error left standing, which beats a person's correction, which beats looks.
WEIGHTS = {
    "verdict": 3.0,
    "error": 2.2,
    "correction": 2.0,
    "invented": 2.0,
    "unchecked": 2.0,
    "last_change": 1.8,
    "stuck": 1.5,
    "gave_up": 1.2,
    "outlived": 1.0,  # an error left standing after which other calls still worked
    "repeated": 1.0,
    "passed_error": 0.8,
    "first_work": 0.8,
    "said_last": 0.2,
}
BESIDE = 0.5  # of the weight of the steps next to it: a mistake and its first sign often stand side by side
EARLY = 0.6  # weight of standing at the very beginning, falling to 0 at the end

# Grounds in words: (English, Chinese).
GROUNDS = {
    "verdict": ("its result was checked and found wrong", "其结果经检查被判为错误"),
    "error": ("it failed and nothing later made it good", "该步报错且之后未能挽回"),
    "outlived": (
        "it failed and was not made good, though other calls worked later",
        "该步报错且未能挽回，尽管之后的其他调用成功了",
    ),
    "correction": ("the user objected right after it", "用户随后表示不对"),
    "invented": ("it went on with assumed or made-up data", "该步使用了假设或编造的数据"),
    "last_change": (
        "it made the last change, and nothing after it reported an error",
        "它做了最后一次改动，之后没有报错",
    ),
    "gave_up": ("it turned the request down without trying a tool", "该步未尝试工具就回绝了请求"),
    "stuck": ("the agent said after it that it was getting nowhere", "该步之后智能体表示没有进展"),
    "unchecked": (
        "it stated findings with no tool result behind them",
        "该步在没有工具结果支持的情况下下了结论",
    ),
    "repeated": ("it repeated an earlier call unchanged", "该步原样重复了之前的调用"),
    "passed_error": ("it kept failing for a passing reason", "该步因暂时性故障反复失败"),
    "first_work": (
        "all later work rests on it, and no other step shows a clearer mistake",
        "后续工作都以该步为基础，且其他步骤没有更明显的错误",
    ),
    "said_last": (
        "it ended the run, and no other step shows a clearer mistake",
        "该步结束了任务，且其他步骤没有更明显的错误",
    ),
}

_VERDICT = re.compile(
    r"\W{0,3}(?:answer is (?:incorrect|wrong)|incorrect\b|wrong answer|rejected\b"
    r"|assertionerror|\d+ (?:tests? )?failed"
    r"|fail(?:ed|ure)?\b|(?:回答|答案|结果)(?:不正确|错误|有误)|不通过|未通过|测试失败)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"(?:^|[.!?] ?)(?:no|nope|sorry|wait|hold on|actually|hmm)?[,.! ]{0,3}"
    r"(?:that(?:'s|’s| is| was) (?:not (?:what|right|correct|it|the)|wrong|incorrect"
    r"|a mistake)|not what I (?:asked|wanted|meant|said)"
    r"|you(?:'ve| have)? (?:misunderstood|got (?:it|that|this) wrong|made a mistake|forgot|missed|ignored)"
    r"|I (?:asked|said|meant|wanted)\b[^.?!\n]{0,60}\b(?:not|instead|rather)\b"
    r"|no, I (?:meant|asked|said|wanted)"
    r"|there (?:seems to be|must be|is|has been) (?:a|some) (?:mistake|misunderstanding|mix-up"
    r"|confusion|error))"
    r"|不对|错了|不是这个|不是我要的|不是这样|我要的是|我说的是|我的意思是|你(?:搞|弄|理解)错|理解有误|漏了",
    re.IGNORECASE | re.MULTILINE,
)
INVENTED = re.compile(
    r"\b(?:let(?:'s|’s| us) assume|assum(?:e|ing|ed) (?:that |the |we |a |for)|assumed (?:data"
    r"|values|numbers)"
    r"|hypothetical|made-up|mock(?:ed)?[ _-]?(?:data|up|\w*_data)|mock_\w+|dummy"
    r"|placeholders?\b|fake[ _]data|simulat(?:e|ed|ing) (?:the|this|a|data)"
    r"|(?:sample|example) (?:data|values|file|video)|example_\w+|for (?:the sake of"
    r"|demonstration|illustration)"
    r"|your[_ ]api[_ ]key|path[/_]to[/_]|based on (?:my|general|common|historical) knowledge|from memory)"
    r"|假设(?!检验)|虚构|编造|模拟数据|示例数据|凭(?:经验|记忆)|占位",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(
    r"\bunfortunately\b|\bI(?:'m| am) (?:sorry|unable)|\b(?:I )?(?:cannot|can't|am unable to"
    r"|do not have access|don't have access)\b"
    r"|\bnot (?:possible|able)\b|抱歉|无法|不能(?:为您|帮您|提供)|办不到|没有权限",
    re.IGNORECASE,
)
_STUCK = re.compile(
    r"\b(?:in a loop|repeating the same|no (?:further |real )?progress|stalled|replan(?:ning)?|stuck|dead end"
    r"|(?:did|does|has|have|was|were)(?: not|n't|n’t) (?:yield|return|provide|produce|give"
    r"|include|contain|find|locate|work|succeed|able)\w*"
    r"|(?:is|are) still (?:incorrect|not|missing|failing)|same (?:error|issue|problem"
    r"|result)s? (?:again|persists?)|still (?:fails|failing))\b"
    r"|没有进展|卡住|陷入循环|重复同样|仍然(?:失败|报错|不行|没有)|没有(?:返回|找到|得到)",
    re.IGNORECASE,
)
_FINDINGS = re.compile(
    r"\b(?:I have (?:verified|confirmed|reviewed|checked)|(?:is|are|was|were|been) (?:verified"
    r"|confirmed|correct|identified)"
    r"|after (?:reviewing|checking|visiting)|here (?:is|are) the|based on (?:the|my)"
    r"|according to|I found|the (?:final )?answer is"
    r"|(?:we|I) (?:can )?conclude|therefore)\b|经核实|已确认|已核对|可以得出|结论是|答案是|因此",
    re.IGNORECASE,
)


def blame(trace: TraceForm, findings: Findings) -> Blame | None:
    """Return the step that went wrong in a failed trace; None only when it has no step of the agent's."""
    steps = {step.sequence: step for step in trace.steps}
    tools = {attempt.step.sequence: attempt for attempt in findings.attempts}
    signs = [sign for sign in _signs(trace, findings) if sign.sequence in steps]
    if not signs:
        return None
    span = max(len(trace.steps) - 1, 1)
    place = {step.sequence: index for index, step in enumerate(trace.steps)}
    totals: dict[int, float] = defaultdict(float)
    for sign in signs:
        totals[sign.sequence] += sign.weight
    held = {place[seq]: total for seq, total in totals.items()}

    def evidence(seq: int) -> tuple[float, int]:
        at = place[seq]
        beside = held.get(at - 1, 0.0) + held.get(at + 1, 0.0)
        return totals[seq] + BESIDE * beside + EARLY * (1 - at / span), -at

    chosen = max(totals, key=evidence)
    strongest = max((sign for sign in signs if sign.sequence == chosen), key=lambda sign: sign.weight)
    attempt = tools.get(chosen)
    error = attempt.error if attempt and strongest.ground in ("verdict", "error", "outlived") else None
    return Blame(
        step=steps[chosen],
        tool=attempt.tool if attempt else steps[chosen].tool,
        ground=strongest.ground,
        certain=error is not None and strongest.ground != "outlived",
        detail=strongest.detail,
        call=call_told(attempt) if attempt and attempt.call is not None and is_call(attempt.call) else "",
        failure_class=error.failure_class if error else FailureClass.NONE,
    )


def _signs(trace: TraceForm, findings: Findings) -> Iterator[_Sign]:
    yield from _from_errors(findings)
    yield from _from_changes(findings)
    yield from _from_user(trace, findings.attempts)
    yield from _from_messages(trace, findings)
    yield from _from_repeats(findings.attempts)
    yield from _from_stuck(trace, findings.attempts)


def _from_errors(findings: Findings) -> Iterator[_Sign]:
    last = findings.attempts[-1] if findings.attempts else None
    last_success = max((a.ended for a in findings.attempts if a.succeeded), default=-1)
    for attempt in findings.unresolved:
        message = error_message(attempt)
        judged = attempt is last and attempt.result is not None and _VERDICT.match(attempt.result.content)
        ground = "verdict" if judged else "error"
        ground = "outlived" if attempt.ended < last_success else ground
        yield _Sign(attempt.step.sequence, WEIGHTS[ground], ground, message)
    for passing in findings.passing:
        if passing.again is None:
            yield _Sign(
                passing.failed.step.sequence,
                WEIGHTS["passed_error"],
                "passed_error",
                error_message(passing.failed),
            )


def _from_changes(findings: Findings) -> Iterator[_Sign]:
    changes = [a for a in findings.attempts if a.changes_state and a.error is None and a.call is not None]
    if changes:
        yield _Sign(changes[-1].step.sequence, WEIGHTS["last_change"], "last_change")


def _from_user(trace: TraceForm, made: Sequence[Attempt]) -> Iterator[_Sign]:
    """A user's objection points at what was changed since their last words, else at the agent's reply."""
    changed = {attempt.step.sequence for attempt in made if attempt.changes_state}
    before: StepForm | None = None
    for step in trace.steps:
        if step.role == Role.USER:
            objection = _CORRECTION.search(one_line(step.content)) if before is not None else None
            if before is not None and objection is not None:
                said = one_line(step.content)[objection.start() :].lstrip(".!? ")
                yield _Sign(before.sequence, WEIGHTS["correction"], "correction", said)
            before = None
        elif step.role == Role.ASSISTANT and not (before is not None and before.sequence in changed):
            before = step


def _from_messages(trace: TraceForm, findings: Findings) -> Iterator[_Sign]:
    changed = any(attempt.changes_state and attempt.succeeded for attempt in findings.attempts)
    spoken = [step for step in trace.steps if _is_own(step)]
    gave_up = worked = False
    before: StepForm | None = None
    for step in trace.steps:
        if _is_own(step):
            if INVENTED.search(step.content):
                yield _Sign(step.sequence, WEIGHTS["invented"], "invented")
            if not changed and not gave_up and not is_call(step) and _GAVE_UP.search(step.content):
                gave_up = True
                yield _Sign(step.sequence, WEIGHTS["gave_up"], "gave_up")
            unbacked = before is None or _is_own(before)
            if not changed and unbacked and not is_call(step) and _FINDINGS.search(step.content):
                yield _Sign(step.sequence, WEIGHTS["unchecked"], "unchecked")
            if not worked and (written_code(step.content) or is_call(step)):
                worked = True
                yield _Sign(step.sequence, WEIGHTS["first_work"], "first_work")
        before = step
    if spoken:
        yield _Sign(spoken[-1].sequence, WEIGHTS["said_last"], "said_last")


def _from_stuck(trace: TraceForm, made: Sequence[Attempt]) -> Iterator[_Sign]:
    """The first time the agent says it is getting nowhere, the attempt before it is what led there."""
    for step in trace.steps:
        if _is_own(step) and _STUCK.search(step.content):
            before = [attempt for attempt in made if attempt.ended < step.sequence]
            if before:
                yield _Sign(before[-1].step.sequence, WEIGHTS["stuck"], "stuck")
                return


def _from_repeats(made: Sequence[Attempt]) -> Iterator[_Sign]:
    """A call made again just as it was, although it had worked."""
    worked: set[tuple[str, str]] = set()
    for attempt in made:
        if attempt.call is None or not is_call(attempt.call) or not attempt.arguments:
            continue
        key = (attempt.tool, fingerprint(attempt.arguments))
        if key in worked:
            yield _Sign(attempt.step.sequence, WEIGHTS["repeated"], "repeated")
        if attempt.error is None:
            worked.add(key)


def _is_own(step: StepForm) -> bool:
    """Return whether the agent itself speaks or acts in a step."""
    return step.role == Role.ASSISTANT and bool(step.text.strip())
