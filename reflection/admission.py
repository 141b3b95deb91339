"""The gates: which of a distiller's candidates may become memories, and why the others may not. Pure.

Every refusal keeps its reason and a sentence that a person can check. What needs the database or another
detector (is it known, is it planted, does it hold personal data) is found out by the caller and passed in.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from memories.enums import FailureClass, Kind
from memories.sameness import same_conclusion
from reflection.distill.failures import classify
from reflection.enums import RejectReason
from reflection.forms import Candidate, Quote, TraceForm
from reflection.vagueness import LESSON, STATEMENT, is_vague

__all__ = ["LESSONS", "Admitted", "Refused", "admit", "same_conclusion"]

LESSONS = 3  # from one trace
QUOTE_WEIGHT = 6  # letters and digits, a Chinese character counts as two; less proves nothing
_GENERAL = (
    Kind.EXPERIENCE,
    Kind.FACT,
    Kind.PREFERENCE,
    Kind.RELATION,
)  # kinds that claim to hold beyond the task

# Words spoken by others inside a text do not make the text momentary.
_SPOKEN = re.compile(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|《[^》]*》|\(“[^”]*”[^)]*\)")
_MOMENTARY = re.compile(
    r"\b(?:today(?!['’]s)|tonight|tomorrow|yesterday|right now|at the moment|at present|just now"
    r"|a moment ago|for now|this (?:morning|afternoon|evening|week)"
    r"|currently (?:down|offline|running|waiting|busy|unavailable|working on|in progress|being|processing)"
    r"|(?:is|are) (?:(?:still|now|currently) (?:being )?|being )(?:running|waiting|pending|processed"
    r"|loading|working|prepared|checked)|in progress|in this (?:run|session|conversation|chat)"
    r"|(?:is|are|was) waiting for (?:the user|a reply|confirmation|approval))\b"
    r"|今天(?!性)|明天|昨天|今晚|刚才|刚刚|此刻|眼下|现在正|目前正|正在(?:进行|处理|运行|等待"
    r"|执行)|这次(?:对话|会话|运行)|本次(?:对话|会话|运行)|(?:正|还)在等",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\b(?:is|are|was|were|seems?(?: to be)?|appears?(?: to be)?|keeps?"
    r"|has been)\s+(?:currently |temporarily |often |sometimes |always |still )?"
    r"(?:down|offline|unreachable|overloaded|not responding|unresponsive|timing out"
    r"|rate[- ]limited|throttled|flaky|temporarily unavailable"
    r"|unavailable(?= (?:right now|at the moment|today|due to)|[.!]?$))"
    r"|\b(?:server|service|api|endpoint|network|site|website|host)\b[^.]{0,30}\b(?:is|was|are"
    r"|were) (?:unavailable|not available|slow|broken)\b"
    r"|宕机|挂了|连不上|(?:服务|服务器|接口|网络|网站|系统)[^。，]{0,10}(?:不可用|无法访问"
    r"|繁忙|中断|不稳定)|(?:经常|总是|一直|老是|频繁|容易)超时(?!时间|设置|参数)",
    re.IGNORECASE,
)
# "If the service is down, …" states no outage.
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|while|once|unless|in case|even if)\b[^,.;]*"
    r"|(?:如果|若|当|一旦|万一|只要)[^，。；]*",
    re.IGNORECASE,
)
_ONLY_RETRY = re.compile(
    r"^\W*(?:just |simply |always )?(?:retry|try again|repeat the (?:call|request)"
    r"|wait and (?:retry|try))\b[^.]{0,40}\W*$|^\W*(?:直接)?(?:重试|再试一次"
    r"|稍后再试)[^。]{0,15}\W*$",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|`([^`\n]{2,80})`|(?<![\w/])(?:/[\w.-]+){2,}")
_TYPOGRAPHY = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "‑": "-", "\u00a0": " "})


@dataclass(frozen=True, slots=True)
class Admitted:
    """A candidate that may become a memory; its quotes are verbatim, repaired where that was possible."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that may not, with the gate that refused it and a sentence that says what it saw."""

    reason: str  # enums.RejectReason
    detail: str = ""


def admit(
    candidate: Candidate,
    trace: TraceForm,
    *,
    known: str | Callable[[Candidate], str] = "",
    unsafe: bool | str = False,
    contains_pii: bool | str = False,
    lessons_so_far: int = 0,
) -> Admitted | Refused:
    """Put one candidate through every gate, against the trace its quotes index into.

    `known` is the id of the memory that says the same already, or a function that finds it (called
    last, as it is the dear one). `unsafe` and `contains_pii` are the verdicts of the caller's screening
    and masking, a sentence or a bool; placeholders such as <EMAIL_1> are no personal data.
    `lessons_so_far` counts lessons admitted from this trace before.
    """
    grounded = replace(candidate, quotes=verbatim_quotes(candidate.quotes, trace))
    checks: tuple[tuple[RejectReason, str | None], ...] = (
        (RejectReason.UNSAFE, _said(unsafe, "it reads like an instruction planted in the trace")),
        (RejectReason.CONTAINS_PII, _said(contains_pii, "it holds personal data or a secret")),
        (RejectReason.NOT_GROUNDED, _not_grounded(grounded, trace)),
        (RejectReason.TRANSIENT, _transient(grounded)),
        (RejectReason.NOT_DURABLE, _not_durable(grounded)),
        (RejectReason.TOO_VAGUE, _too_vague(grounded, trace)),
    )
    for reason, detail in checks:
        if detail is not None:
            return Refused(reason.value, detail)
    twin = known(grounded) if callable(known) else known
    if twin:
        return Refused(RejectReason.KNOWN.value, str(twin))
    if candidate.kind == Kind.EXPERIENCE and lessons_so_far >= LESSONS:
        return Refused(RejectReason.OVER_LIMIT.value, f"{LESSONS} lessons were taken from this trace already")
    return Admitted(grounded)


def verbatim_quotes(quotes: tuple[Quote, ...], trace: TraceForm) -> tuple[Quote, ...]:
    """Return the quotes that stand in the trace word for word, at the place where they do.

    One whose place is wrong is repaired when its words occur exactly once, in its step or else in the
    whole trace, white space and typographic quotation marks aside. The others are left out.
    """
    texts = {step.sequence: step.text for step in trace.steps}
    found = [
        _verbatim(quote, texts) for quote in quotes if _weight(quote.text) >= QUOTE_WEIGHT or _is_whole(quote, texts)
    ]
    return tuple(dict.fromkeys(quote for quote in found if quote is not None))


def _verbatim(quote: Quote, texts: Mapping[int, str]) -> Quote | None:
    text = texts.get(quote.step, "")
    if 0 <= quote.start < quote.end <= len(text) and text[quote.start : quote.end] == quote.text:
        return quote
    for places in ({quote.step: text}, texts):
        hits = [
            (step, match.start(), match.end())
            for step, body in places.items()
            for match in _loose(quote.text).finditer(body.translate(_TYPOGRAPHY))
        ]
        if len(hits) == 1:
            step, start, end = hits[0]
            return Quote(step, start, end, texts[step][start:end])
        if hits:
            return None  # which of them was meant cannot be told
    return None


def _loose(text: str) -> re.Pattern[str]:
    """Return a pattern for the words of a quote, whatever white space stands between them."""
    words = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY).split()
    return re.compile(r"\s+".join(re.escape(word) for word in words) or r"(?!)")


def _is_whole(quote: Quote, texts: Mapping[int, str]) -> bool:
    """Return whether a short quote is all that its step says."""
    whole = texts.get(quote.step, "").strip()
    return bool(whole) and quote.text.strip() == whole


def _weight(text: str) -> int:
    return sum(2 if ord(char) >= 0x2E80 else 1 for char in text if char.isalnum())


def _said(verdict: bool | str, default: str) -> str | None:
    return (verdict if isinstance(verdict, str) else default) if verdict else None


def _not_grounded(candidate: Candidate, trace: TraceForm) -> str | None:
    if not candidate.quotes:
        return "none of its quotes stands in the trace"
    unseen = _unseen_names(candidate.content, trace)
    return f"it names {unseen[0]}, which the trace does not" if unseen else None


def _unseen_names(content: str, trace: TraceForm) -> list[str]:
    """Return tools, paths and code that a text names and the trace never does: inventions."""
    said = [trace.task, trace.task_type, trace.result, str(dict(trace.environment))]
    for step in trace.steps:
        said += [step.text, step.tool, *_texts(step.arguments or {})]
    seen = " ".join(" ".join(said).split()).lower()
    named = [match.group(1) or match.group() for match in _IDENTIFIER.finditer(re.sub(r"[\w]*_?<\w+>", " ", content))]
    return [name for name in named if "…" not in name and " ".join(name.split()).lower().strip("/ ") not in seen]


def _texts(value: object) -> Iterator[str]:
    """Return every name and value in a call's arguments, as they were given."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
    else:
        yield str(value)


def _transient(candidate: Candidate) -> str | None:
    """An episode may tell of a passing failure; nothing that claims to hold may rest on one."""
    if candidate.kind not in _GENERAL:
        return None
    if candidate.failure_class == FailureClass.TRANSIENT:
        return "it rests on a failure that passes by itself"
    own = _SPOKEN.sub(" ", candidate.content)
    if _DOWN.search(_CONDITION.sub(" ", own)):
        return "it states a passing outage as if it would last"
    if _ONLY_RETRY.match(own):
        return "it only says to try again"
    errors = [verdict for quote in candidate.quotes if (verdict := classify(quote.text)) != FailureClass.NONE]
    claims = candidate.kind in (Kind.FACT, Kind.EXPERIENCE) and classify(own) == FailureClass.TRANSIENT
    if claims and errors and all(verdict == FailureClass.TRANSIENT for verdict in errors):
        return "its only evidence is a failure that passes by itself"
    return None


def _not_durable(candidate: Candidate) -> str | None:
    """An episode is about one task by its nature; everything else must hold beyond it."""
    if candidate.kind not in _GENERAL:
        return None
    own = _SPOKEN.sub(" ", candidate.content)
    momentary = _MOMENTARY.search(own)
    return f"“{momentary.group().strip()}” ties it to the moment" if momentary else None


def _too_vague(candidate: Candidate, trace: TraceForm) -> str | None:
    if candidate.kind not in _GENERAL:
        return None
    tools = {step.tool for step in trace.steps if step.tool}
    needed = STATEMENT if candidate.kind in (Kind.FACT, Kind.PREFERENCE) else LESSON
    vague = is_vague(candidate.content, tools, needed)
    return "it names nothing that a later agent could act on" if vague else None
