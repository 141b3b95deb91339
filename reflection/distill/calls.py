"""Tool calls matched with their results: what an agent tried, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reflection.distill.signs import ErrorSign, find_error, is_empty, is_result
from reflection.enums import Role, StepKind
from reflection.forms import StepForm, TraceForm

# Written by `prepare` where a result repeats an earlier one.
SAME_RESULT = re.compile(r"\(the same result as step (\d+)\)")
_CODE_BLOCK = re.compile(r"```[\w+-]*\n(.*?)```", re.DOTALL)
_READING_WORDS = """
get read list search find lookup look fetch query show view check describe calculate think browse open
retrieve inspect count compare validate verify explain summarize summarise preview status help ls cat
head tail grep rg pwd echo which wc tree stat ping recall scroll screenshot plan reason log diff pytest
tox test mypy ruff flake8 eslint tsc jest curl printenv env date whoami df du ps jq sort
"""
_READING = frozenset(_READING_WORDS.split())
_CHANGING_WORDS = """
book update cancel modify create delete remove send write edit insert exchange return transfer pay
submit set add post put patch apply deploy install move rename buy order refund reserve register upload
save commit push merge drop alter kill start stop restart enable disable assign escalate schedule
replace mkdir rm mv cp touch chmod pip npm uninstall finish answer complete
"""
_CHANGING = frozenset(_CHANGING_WORDS.split())
_CHANGING_ZH = re.compile(
    r"更新|创建|新建|新增|添加|删除|提交|发送|发布|预订|取消|修改|设置|支付|转账|充值|购买"
    r"|退款|退货|换货|退订|改签|下单|写入|安装|部署|重启|停止|上传|保存|转人工|转接"
)
_SHELLS = re.compile(
    r"(?:^|[_.-])(?:bash|shell|sh|zsh|powershell|terminal|console|commands?|cmd|exec|execute|run|python|ipython"
    r"|node|sql|query|psql|mysql|sqlite)$",
    re.IGNORECASE,
)
_COMMAND_NAMES = ("command", "cmd", "script", "code", "sql", "query", "statement", "input")
SQL = re.compile(
    r"\s*(?:select|with|insert|update|delete|create|alter|drop|show|explain|describe|set|merge)\b",
    re.IGNORECASE,
)
_SQL_READING = re.compile(r"\s*(?:select|with|show|explain|describe)\b", re.IGNORECASE)
# What goes before a program's name; and the second words that only look ("git status", "pip list").
_BEFORE_PROGRAM = re.compile(r"\s*(?:(?:sudo|env|time|nohup|[A-Za-z_]\w*=\S*)\s+)*")
_LOOKING_WORDS = """
status log diff show branch blame grep list ls ps get describe logs images info version freeze
"""
_LOOKS_ON = frozenset(_LOOKING_WORDS.split())
_TWO_WORDED = frozenset(["git", "pip", "pip3", "npm", "yarn", "docker", "kubectl", "helm", "brew", "conda"])


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call and its result. Either may be missing: a result printed without a call, a call cut off.

    `ended` is the sequence number of the attempt's last step. A result that only repeats an earlier one
    is given as that earlier step, whose words can be quoted.
    """

    tool: str
    call: StepForm | None
    result: StepForm | None
    ended: int
    error: ErrorSign | None = None
    empty: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def step(self) -> StepForm:
        """The step where the decision was made: the call, or the result when no call was recorded."""
        step = self.call or self.result
        if step is None:
            raise ValueError("an attempt needs a call or a result")
        return step

    @property
    def succeeded(self) -> bool:
        """Whether it came back with something and without an error."""
        return self.result is not None and self.error is None and not self.empty

    @property
    def changes_state(self) -> bool:
        """Whether this call, going by its name, changes the world rather than reads it."""
        return changes_state(self.tool, self.arguments)


def is_call(step: StepForm) -> bool:
    """Return whether a step calls a tool."""
    return not is_result(step) and (step.kind == StepKind.TOOL_CALL or bool(step.tool))


def is_note(step: StepForm) -> bool:
    """Return whether a step only points at an earlier one with the same result: nothing to quote."""
    return SAME_RESULT.fullmatch(step.content) is not None


def attempts(trace: TraceForm) -> tuple[Attempt, ...]:
    """Match calls with results in order; parallel calls by tool name, then first come first served."""
    by_sequence = {step.sequence: step for step in trace.steps}
    made: list[Attempt] = []
    waiting: list[int] = []  # indexes into `made`
    before: StepForm | None = None
    for step in trace.steps:
        if is_call(step):
            waiting.append(len(made))
            made.append(Attempt(step.tool or "tool", step, None, step.sequence, arguments=step.arguments or {}))
        elif is_result(step):
            index = _awaited(step, waiting, made)
            if index is None:
                made.append(_unannounced(step, before, by_sequence))
            else:
                waiting.remove(index)
                made[index] = _answered(made[index], step, by_sequence)
        before = step
    return tuple(made)


def command_of(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the command, script or statement that a shell-like tool was given, or None for other tools.

    Such a tool (bash, python, sql, …) takes one free text; further arguments are settings.
    """
    if not _SHELLS.search(tool):
        return None
    texts = {name: value for name, value in arguments.items() if isinstance(value, str) and value.strip()}
    named = next((texts[name] for name in _COMMAND_NAMES if name in texts), None)
    command = named if named is not None else next(iter(texts.values()), None) if len(texts) == 1 else None
    if command is not None and tool.lower().endswith(("query", "sql")):
        return command if SQL.match(command) else None
    return command


def changes_state(tool: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call changes state, by the verb in its name or in its shell command."""
    if _CHANGING_ZH.search(tool):
        return True
    command = command_of(tool, arguments)
    if command is not None:
        return _command_changes(command)
    words = _words(tool)
    verb = next((word for word in words if word in _READING or word in _CHANGING), "")
    return verb in _CHANGING


def written_code(content: str) -> str:
    """Return the last fenced code block of a message, or ""."""
    blocks = _CODE_BLOCK.findall(content)
    return blocks[-1].strip() if blocks else ""


def _awaited(step: StepForm, waiting: list[int], made: list[Attempt]) -> int | None:
    """Return the index of the attempt that a result answers, or None."""
    named = [index for index in waiting if step.tool and made[index].tool == step.tool]
    if named:
        return named[0]
    unnamed = [index for index in waiting if not step.tool or made[index].tool == "tool"]
    return unnamed[0] if unnamed else None


def _answered(attempt: Attempt, step: StepForm, by_sequence: Mapping[int, StepForm]) -> Attempt:
    repeated = SAME_RESULT.fullmatch(step.content)
    source = by_sequence.get(int(repeated.group(1)), step) if repeated else step
    # A command or a change that prints nothing went well; a search that does found nothing.
    command = command_of(attempt.tool, attempt.arguments)
    acts = attempt.changes_state or (command is not None and not SQL.match(command))
    result = step if source is step else replace(source, is_error=step.is_error or source.is_error)
    return replace(
        attempt,
        result=result,
        ended=step.sequence,
        error=find_error(result),
        empty=is_empty(result.content) and not acts,
    )


def _unannounced(step: StepForm, before: StepForm | None, by_sequence: Mapping[int, StepForm]) -> Attempt:
    """A result without a recorded call: the message just before it asked for it in prose or code."""
    call = before if before is not None and before.role == Role.ASSISTANT and not is_call(before) else None
    arguments: dict[str, Any] = {}
    if call is not None:
        code = written_code(call.content)
        arguments = {"code": code} if code else {"message": call.content}
    return _answered(Attempt(step.tool or "tool", call, None, step.sequence, arguments=arguments), step, by_sequence)


def _command_changes(command: str) -> bool:
    """Return whether some part of a command does more than look."""
    if SQL.match(command):
        return _SQL_READING.match(command) is None
    return any(_part_changes(part) for part in re.split(r"&&|\|\||[;|\n]", command))


def _part_changes(part: str) -> bool:
    before = _BEFORE_PROGRAM.match(part)
    program, *rest = part[before.end() if before else 0 :].split() or [""]
    if not program or program == "cd" or program in _READING or "--version" in rest:
        return False
    return not (program in _TWO_WORDED and bool(rest) and rest[0] in _LOOKS_ON)


def _words(name: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", spaced)]
