"""How a lesson is told in a sentence, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reflection.distill.calls import Attempt, is_call
from reflection.distill.changes import Change, edited_lines, fits_gap, offered_by, share_words
from reflection.distill.pairs import Pair
from reflection.distill.wording import either, first_sentence, generalise, shorten, show

_TEXTS = 4  # words from which a value reads as text and not as a setting
_WRITTEN = ("code", "message")  # what a call without arguments was asked in: a script or prose
_AT_MOST = 3  # changes told one by one
_KEPT = 8  # changes kept as data


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a lesson and the decision's parameters as data."""

    sentence: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def tell(pair: Pair, pattern: str, reason: str, ids: Mapping[str, str], zh: bool) -> Phrase | None:
    """Return a lesson's sentence with the parameters of its decision; None when it would not help.

    `pattern` is the error in general words, `reason` what the agent itself said about the fix, or "".
    """
    tool = pair.failed.tool
    opening = f"调用 {tool} 返回“{pattern}”时，" if zh else f"When {tool} answers “{pattern}”, "
    if pair.kind == "switched":
        advice = either(
            zh,
            f"改用 {pair.fixed.tool}；同样的需求用它成功了。",
            f"use {pair.fixed.tool} instead; it worked for the same request.",
        )
        return Phrase(opening + advice, {"instead_of": tool, "use": pair.fixed.tool})
    if pair.kind == "prepared" and pair.through is not None:
        done = _call_shown(pair.through, ids)
        advice = either(
            zh,
            f"先执行 {done}，再原样重试；这样就成功了。",
            f"first run {done}; the same call then works.",
        )
        return Phrase(opening + advice, {"first": done})
    written = any(change.name in _WRITTEN for change in pair.changes) and not is_call(pair.fixed.step)
    phrase = _written_phrase(pair, reason, ids, zh) if written else _change_phrase(pair, ids, zh)
    return None if phrase is None else Phrase(opening + phrase.sentence, phrase.parameters)


def _written_phrase(pair: Pair, reason: str, ids: Mapping[str, str], zh: bool) -> Phrase | None:
    """Word a change of a script: the lines that the error speaks of, or the agent's reason for a rewrite."""
    gone, came = _edit(pair)
    if came and share_words(pair.message, " ".join(came)):
        new, old = (generalise(show("; ".join(lines), 100), ids) for lines in (came, gone))
        if old:
            text = either(
                zh, f"把 `{old}` 改为 `{new}`，之后成功。", f"replace `{old}` with `{new}`; that ran."
            )
        else:
            text = either(zh, f"加上 `{new}`，之后成功。", f"add `{new}`; that ran.")
        return Phrase(text, {"removed": gone, "added": came})
    if not reason:
        return None
    said = generalise(first_sentence(reason, 150), ids).rstrip(".。")
    text = either(zh, f"当时有效的做法：“{said}”。", f"what got past it: “{said}”.")
    return Phrase(text, {"rewritten": "code"})


def _edit(pair: Pair) -> tuple[list[str], list[str]]:
    """Return the lines that went from a script and that came, when they are few enough to tell."""
    for change in pair.changes:
        if change.name == "code" and isinstance(change.old, str) and isinstance(change.new, str):
            gone, came = edited_lines(change.old, change.new)
            if len(came) + len(gone) <= 3 and len("".join(gone + came)) <= 200:
                return gone, came
    return [], []


def _call_shown(attempt: Attempt, ids: Mapping[str, str]) -> str:
    values = list(attempt.arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return f"{attempt.tool} `{generalise(show(values[0], 80), ids)}`"
    listed = ", ".join(f"{name}={show(value, 30)}" for name, value in attempt.arguments.items())
    return generalise(shorten(f"{attempt.tool}({listed})", 110), ids)


def _change_phrase(pair: Pair, ids: Mapping[str, str], zh: bool) -> Phrase | None:
    """Tell what was changed so that the call went through; None when nothing transferable was."""
    parameters = {
        c.path[:60]: {"from": _kept(c.old, ids), "to": _kept(c.new, ids)} for c in pair.changes[:_KEPT]
    }
    gap = next((change for change in pair.changes if fits_gap(pair.message, change)), None)
    if gap is not None:
        return Phrase(_gap_told(gap, zh), parameters)
    grown = {_top(c.path) for c in pair.changes if "[" in c.path and (c.old is None or c.new is None)}
    single = [change for change in pair.changes if _top(change.path) not in grown]
    if len(pair.changes) == 1 and (special := _special(pair.changes[0], pair.message, zh)):
        return Phrase(special, parameters)
    shown = [_one(change, ids, zh) for change in single[:_AT_MOST]]
    shown += [left_out for top in sorted(grown) if (left_out := _left_out(pair, top, zh))]
    if not shown:
        return None
    joined = "、".join(shown) if zh else _and(shown)
    return Phrase(f"{joined}，之后成功。" if zh else f"{joined}; that call went through.", parameters)


def _gap_told(change: Change, zh: bool) -> str:
    if zh:
        return f"按报错中两个数的差额调整 {change.name} 再调用。"
    return f"adjust {change.name} by the gap between the two numbers in the error and call it again."


def _left_out(pair: Pair, top: str, zh: bool) -> str:
    """Tell that a list lost the entry which the error names; "" when its change has no such reason."""
    after = show(pair.fixed.arguments.get(top), 10_000)
    named = any(
        isinstance(change.old, str)
        and len(change.old) > 2
        and change.old in pair.message
        and change.old not in after
        for change in pair.changes
        if _top(change.path) == top
    )
    if not named:
        return ""
    return f"从 {top} 中去掉报错所指的那一项" if zh else f"leave the entry that the error names out of {top}"


def _special(change: Change, message: str, zh: bool) -> str:
    """Return a wording that says more than "old → new", or "". The example itself is kept as data."""
    name = change.name
    if offered_by(message, change) and isinstance(change.new, str):
        if zh:
            return f"不要改写措辞，直接用报错中列出的候选值作为 {name} 再调用一次。"
        return f"call it again with a value that the error itself lists as {name} instead of rewording it."
    if isinstance(change.old, str) and isinstance(change.new, str):
        before, after = change.old.lower().split(), change.new.lower().split()
        if len(before) > len(after) >= 1 and set(after) <= set(before):
            if zh:
                return f"缩短 {name}，只保留名称本身，再调用一次。"
            return f"shorten {name} to the bare name and call it again."
        if len(after) > len(before) >= 1 and set(before) <= set(after):
            if zh:
                return f"把 {name} 写得更具体（“{show(change.old)}”→“{show(change.new)}”）后成功。"
            return f"make {name} more specific (“{show(change.old)}” → “{show(change.new)}” worked)."
    return ""


def _one(change: Change, ids: Mapping[str, str], zh: bool) -> str:
    """Tell one change of a value."""
    # A date written another way is the point of the change; another date of the same form is not.
    dates = _form(change.old) == _form(change.new)
    old, new = (generalise(show(value), ids, dates=dates) for value in (change.old, change.new))
    if change.old is None:
        return f"补上 {change.path} = {new}" if zh else f"add {change.path} = {new}"
    if change.new is None:
        return f"去掉 {change.path}" if zh else f"leave out {change.path}"
    if old == new:
        return f"换一个 {change.name}" if zh else f"use another {change.name}"
    quoted = _is_text(change.old) or _is_text(change.new)
    old, new = (f"“{old}”", f"“{new}”") if quoted else (old, new)
    return f"把 {change.name} 从 {old} 改为 {new}" if zh else f"change {change.name} from {old} to {new}"


def _top(path: str) -> str:
    return path.split("[", 1)[0]


def _form(value: object) -> str:
    return re.sub(r"\d", "9", show(value))


def _kept(value: object, ids: Mapping[str, str]) -> object:
    """Keep numbers and flags as they are in the structure; texts without this run's ids."""
    if value is None or isinstance(value, (int, float, bool)):
        return value
    return generalise(show(value, 120), ids)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and (" " in value.strip() or len(value.split()) >= _TEXTS)


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
