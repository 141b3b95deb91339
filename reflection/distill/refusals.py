"""Warnings: what a tool refuses by a rule that it states, learnt from a refusal that was never overcome."""

from __future__ import annotations

import re

from memories.enums import FailureClass, Kind, Tier
from reflection.distill.calls import Attempt, command_of
from reflection.distill.lessons import LENGTH, Context, applies_when, failure_class, pattern_of, situation
from reflection.distill.pairs import Findings, error_message
from reflection.distill.phrasing import named
from reflection.distill.signs import error_quote, head_quote
from reflection.distill.stated import states_rule
from reflection.distill.wording import either, filled, shorten
from reflection.forms import Candidate

_CONFIDENCE = 0.35
_LASTING = (FailureClass.PERMANENT, FailureClass.IMPOSSIBLE)
# A program that broke states no rule of a tool.
_CRASH = re.compile(
    r"\b(?:Type|Name|Attribute|Key|Index|Syntax|Indentation|Import|ModuleNotFound|ZeroDivision|Assertion|Reference"
    r"|Range|Runtime|Unicode\w+|NullPointer)(?:Error|Exception)\b|\btraceback\b|\bnull pointer\b"
    r"|\bundefined\b"
)
# "refunds above 500.00 need approval": what is refused, and what it takes.
_BOUND = re.compile(
    r"(?P<what>[A-Za-z][\w -]*? (?:above|over|below|under|exceeding|of (?:more|less) than|more than|less than"
    r"|beyond|older than|later than) [^,;:.]*?\d[\d.,]*(?: ?[%\w]{1,12})?)"
    r" (?P<rest>(?P<verb>needs?|requires?|must|are|is|can ?not|can['’]t|may not)\b[^;:]*)",
)


def warnings(context: Context, findings: Findings) -> tuple[Candidate, ...]:
    """Return one warning for each rule that a tool stated when it refused, and that no later call met."""
    overcome = {(pair.failed.tool, pair.message) for pair in findings.pairs}
    refused = [
        attempt
        for attempt in sorted((*findings.unresolved, *findings.recovered), key=lambda attempt: attempt.ended)
        if (attempt.tool, error_message(attempt)) not in overcome
    ]
    made = [warning for attempt in refused if (warning := _warning(attempt, context)) is not None]
    return tuple({warning.content: warning for warning in made}.values())


def _warning(failed: Attempt, context: Context) -> Candidate | None:
    message = error_message(failed)
    if failed.error is None or failed.result is None or failed.error.failure_class not in _LASTING:
        return None
    if command_of(failed.tool, failed.arguments) is not None or failed.call is None or not failed.call.tool:
        return None  # what a program prints is no rule of the shell that ran it
    if _CRASH.search(message) or not states_rule(message):
        return None
    tool, pattern = shorten(failed.tool, 60), pattern_of(failed, message, context)
    content = shorten(_told(tool, pattern, context.zh), LENGTH)
    structure = {
        "situation": situation([tool, "refused"], context),
        "decision": {
            "action": either(context.zh, f"不要违反此规则调用 {tool}", f"do not call {tool} against the rule it states")
        },
        "outcome": {"success": False},
        "lesson": content,
        "applies_when": applies_when(failed, pattern, context.zh),
        "not_when": either(context.zh, "规则所要求的条件已经满足", "what the rule asks for has been met"),
        "failure_class": failure_class(failed),
    }
    step = (head_quote(failed.call),) if failed.call.text else ()
    return Candidate(
        kind=Kind.EXPERIENCE.value,
        tier=Tier.EPISODIC.value,
        content=content,
        structure=filled(structure),
        confidence=_CONFIDENCE,
        quotes=(error_quote(failed.result, failed.error), *step),
        failure_class=failure_class(failed),
        tags=(tool, "warning"),
    )


def _told(tool: str, pattern: str, zh: bool) -> str:
    """Word the warning: what is refused and what it takes, or else the rule in the tool's own words."""
    if zh:
        return f"{named(tool, zh)} 有一条规则：“{pattern}”。不满足时会被拒绝，不要原样重试。"
    bound = _BOUND.fullmatch(pattern)
    if bound is None:
        return f"{tool} enforces a rule: “{pattern}”. Do not retry what breaks it."
    one = bound["verb"] in ("needs", "requires", "is")
    what = bound["what"] if bound["what"][1:2].isupper() else bound["what"][0].lower() + bound["what"][1:]
    return f"{tool} refuses {what}: {'it' if one else 'they'} {bound['rest']}. Do not retry unchanged."
