"""How a fix is told: advice that holds for every run, in English and Chinese, beside the error it answers.

An advice names the tool's arguments, forms and settings, and values that the error itself states. The
values of the run stay in the decision's parameters, so that two runs that differ only in those give one
and the same sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reflection.distill.calls import Attempt, command_of
from reflection.distill.commands import CommandFix, code, command_shown, command_told
from reflection.distill.placeholders import generalise, is_setting, stem
from reflection.distill.readings import Fix
from reflection.distill.wording import show

_TYPES = {
    "truth value": ("true or false", "布尔值"),
    "number": ("a number", "数字"),
    "whole number": ("a whole number", "整数"),
    "fraction": ("a fraction", "小数"),
    "list": ("a list", "列表"),
    "object": ("an object", "对象"),
    "string": ("a string", "字符串"),
}
_LISTED = 80  # characters of the allowed values that are named


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do. `always`: it is how the tool is called, error or not; else it answers the error."""

    text: str
    always: bool = False


def advise(fix: Fix, ids: Mapping[str, str], zh: bool) -> Advice | None:
    """Return the advice of a fix, or None when nothing in it holds beyond the run."""
    if fix.command is not None:
        return _command_advice(fix.command, zh)
    if fix.kind == "edited":
        return _edit_advice(fix, ids, zh)
    rule = _rule(fix, zh)
    told = rule or _answer(fix, zh)
    return Advice(told[1] if zh else told[0], always=rule is not None) if told is not None else None


def sentence(tool: str, command: str | None, advice: Advice, pattern: str, zh: bool) -> str:
    """Join an advice and an error to the lesson. `command` is the failing command of a shell-like tool;
    an empty `pattern` leaves the error out."""
    # A script has no short name: there the tool stands for it.
    short = command is not None and "\n" not in command.strip()
    shown = code(command_shown(command)) if command is not None and short else named(tool, zh)
    if zh:
        return _without_gaps(_chinese(named(tool, zh), shown, command is not None, advice, pattern))
    if not advice.always:
        return f"When {shown} {'answers' if command is None else 'fails with'} “{pattern}”, {advice.text}."
    return f"{tool} {advice.text}." + (f" Otherwise it answers “{pattern}”." if pattern else "")


def _chinese(tool: str, shown: str, runs: bool, advice: Advice, pattern: str) -> str:
    if not advice.always:
        return f"{'运行 ' if runs else ''}{shown} 报错“{pattern}”时，{advice.text}。"
    return f"{tool} {advice.text}。" + (f"否则会报错“{pattern}”。" if pattern else "")


def named(name: str, zh: bool) -> str:
    """Return the name of a tool or an argument; a Chinese one in a Chinese sentence stands in brackets."""
    return f"「{name}」" if zh and re.search(r"[\u3400-\u9fff]", name) else name


def _without_gaps(chinese: str) -> str:
    """Leave out the spaces beside bracketed names and between Chinese characters; a Latin word keeps its."""
    return re.sub(r" (?=「)|(?<=」) |(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", chinese)


def prepared(through: Sequence[Attempt], zh: bool) -> Advice:
    """Return the advice to do something first, after which the same call works."""
    commands = [command_of(attempt.tool, attempt.arguments) for attempt in through]
    told = [
        code(command_told(command)) if command is not None else named(attempt.tool, zh)
        for attempt, command in zip(through, commands, strict=True)
    ]
    joined = ("、" if zh else " and ").join(dict.fromkeys(told))
    if commands[0] is not None:
        return Advice(f"先执行 {joined}" if zh else f"run {joined} first")
    return Advice(f"先调用 {joined}，再原样重试" if zh else f"call {joined} first, then repeat the call")


def switched(tool: str, zh: bool) -> Advice:
    """Return the advice to use another tool."""
    return Advice(f"改用 {named(tool, zh)}" if zh else f"use {tool} instead")


def _command_advice(fix: CommandFix, zh: bool) -> Advice:
    words = code(command_told(fix.words))
    if fix.how == "first":
        return Advice(f"先执行 {words}" if zh else f"run {words} first")
    if fix.how == "before":
        return Advice(f"在命令前加上 {words}" if zh else f"put {words} before it")
    if fix.how == "added":
        return Advice(f"加上 {words}" if zh else f"add {words}")
    instead = code(command_told(fix.instead))
    return Advice(f"用 {words} 代替 {instead}" if zh else f"use {words} in place of {instead}")


def _edit_advice(fix: Fix, ids: Mapping[str, str], zh: bool) -> Advice:
    came, gone = (code(generalise(show("; ".join(lines), 100), ids)) for lines in (fix.values, fix.instead))
    if fix.instead:
        return Advice(f"把 {gone} 改为 {came}" if zh else f"replace {gone} with {came}")
    return Advice(f"加上 {came}" if zh else f"add {came}")


def _rule(fix: Fix, zh: bool) -> tuple[str, str] | None:
    """Return how the tool is called, in English and in Chinese; None for a fix that answers its error only."""
    name = named(fix.changes[0].name, zh)
    match fix.kind:
        case "shaped":
            return _shape_told(name, fix)
        case "typed":
            to, was = (_TYPES[value] for value in fix.values)
            return f"takes {name} as {to[0]}, not as {was[0]}", f"的 {name} 要传{to[1]}，不能传{was[1]}"
        case "respelt":
            return f"takes {name} {fix.values[0]}", f"的 {name} 要{fix.values[1]}"
        case "allowed" if len("".join(fix.values)) > _LISTED:
            return f"takes only the values it lists as {name}", f"的 {name} 只能取它列出的值"
        case "allowed":
            allowed = _and(fix.values, "or")
            return f"takes only {allowed} as {name}", f"的 {name} 只能是 {' 或 '.join(fix.values)}"
        case "needed":
            return f"needs {_and(_names(fix, zh))}", f"必须带上 {'、'.join(_names(fix, zh))}"
        case "refused":
            return f"does not take {_and(_names(fix, zh))}", f"不接受 {'、'.join(_names(fix, zh))}"
        case "renamed":
            now = named(fix.changes[1].name, zh)
            return f"takes {now}, not {name}", f"的参数叫 {now}，不叫 {name}"
    return None


def _shape_told(name: str, fix: Fix) -> tuple[str, str] | None:
    if fix.shapes is None:
        return None
    old, new = fix.shapes
    instead = f", not as {old.english}" if old is not None else ""
    zh_instead = f"，不能写成{_spaced(old.chinese)}" if old is not None else ""
    return f"takes {name} as {new.english}{instead}", f"的 {name} 要写成{_spaced(new.chinese)}{zh_instead}"


def _answer(fix: Fix, zh: bool) -> tuple[str, str] | None:
    """Return what answers the error, in English and in Chinese; None for an unknown kind."""
    change = fix.changes[0]
    name, lookup = named(change.name, zh), named(fix.lookup, zh)
    listed, zh_listed = _and(_names(fix, zh)), "、".join(_names(fix, zh))
    old, new = _setting_shown(change.old), _setting_shown(change.new)
    # What a suggestion takes the place of is told when it is a setting too, not when it is data.
    told = is_setting(change.old, change.name)
    from_old, zh_from_old = (f" from {old}", f"从 {old} ") if told else ("", "")
    return {
        "added": (f"add {listed}", f"补上 {zh_listed}"),
        "dropped": (f"leave out {listed}", f"去掉 {zh_listed}"),
        "suggested": (f"change {name}{from_old} to {new}", f"把 {name} {zh_from_old}改为 {new}"),
        "listed": (f"take {name} from the values that the error lists", f"从报错列出的候选值中选一个作为 {name}"),
        "told": (f"take {name} from the error", f"用报错给出的值作为 {name}"),
        "looked_up": (f"look {name} up with {lookup} first", f"先用 {lookup} 查到 {name} 再调用"),
        "gap": (f"change {name} by the difference of the two numbers", f"按报错中两个数的差额调整 {name}"),
        "strict": (f"give {name} the way it asks for", f"按它的要求填写 {name}"),
        "limited": (f"keep {name} within that limit", f"让 {name} 不超出该限制"),
        "smaller": (f"use a smaller {name}", f"把 {name} 调小"),
        "larger": (f"use a larger {name}", f"把 {name} 调大"),
        "swapped": (f"use {new} as {name}, not {old}", f"{name} 用 {new}，不要用 {old}"),
        "shortened": (f"shorten {name} to the bare name", f"把 {name} 缩短为名称本身"),
    }.get(fix.kind)


def _names(fix: Fix, zh: bool) -> list[str]:
    """Return the arguments that a fix is about; a switch with its position, other values are the run's own."""
    told = [
        f"{named(each.name, zh)} = {show(each.new)}" if isinstance(each.new, bool) else named(each.name, zh)
        for each in fix.changes
    ]
    return list(dict.fromkeys(told))


def _setting_shown(value: object) -> str:
    """Return a setting as it is, an id as its sort ("gift_card_…")."""
    return f"{stem(value)}_…" if stem(value) else show(value)


def _spaced(chinese: str) -> str:
    """Set a space between Chinese and a Latin word that follows."""
    return f" {chinese}" if chinese[:1].isascii() else chinese


def _and(parts: Sequence[str], joint: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joint} {parts[-1]}"
