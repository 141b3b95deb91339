"""Recognising that a step reports an error, and which words of it say so.

A result counts as an error when the client flagged it or when its own form says so: an error object,
a non-zero exit code, a traceback, an HTTP status, a refusal at the start. A text that merely speaks
about errors (a search hit, a log that was read, "0 errors") does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from memories.enums import FailureClass
from reflection.distill.failures import classify, denies_failure
from reflection.enums import Role, StepKind
from reflection.forms import Quote, StepForm

MESSAGE_LIMIT = 200  # characters quoted from an error message at most
_SHORT = 300  # a refusal is this short; longer texts need a stronger sign
_HEAD = 400  # characters at the start in which a sign may stand


@dataclass(frozen=True, slots=True)
class ErrorSign:
    """Where a step's text says that it failed: `text[start:end]`, and what sort of failure it is."""

    start: int
    end: int
    failure_class: FailureClass


# What a shell or a code runner prints before the program's own output.
_WRAPPER = re.compile(
    r"\s*(?:exit ?code: ?-?\d+[^\n]*\n)?\s*(?:(?:code output|output|stdout|stderr|result"
    r"|observation)\s*:\s*)?",
    re.IGNORECASE,
)
_EXIT = re.compile(
    r"(?:^|\n)\W{0,3}(?:(?:process|command|script|program)\s+)?"
    r"(?:(?:finished|exited|exits|terminated|failed|returned)\s+(?:with\s+)?(?:a\s+)?(?:non-?zero\s+)?"
    r"(?:exit\s+)?(?:code|status)|(?:non-?zero\s+)?(?:exit|return)[ _-]?(?:code|status))"
    r"(?:\s+(?:code|status))?\s*[:=]?\s*(?P<code>-?\d+)"
    r"|退出(?:码|代码|状态)\s*[:：为]?\s*(?P<zh>-?\d+)",
    re.IGNORECASE,
)
_EXCEPTION_LINE = re.compile(
    r"^(?:E +)?(?P<line>(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Interrupt|Exit"
    r"|Warning)\b(?: \[[^\]]*\])?:.*)$",
    re.MULTILINE,
)
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_FRAME = re.compile(
    r"\s*(?:#\d+\s+0x|at\s|File \"|Stacktrace)|\s*(?:exit|return)\w*[ _-]?(?:code|status)", re.IGNORECASE
)
_NAMED = re.compile(r"\b\w+(?:Error|Exception)\b|\berror:", re.IGNORECASE)
_TRACEBACK = re.compile(r"^\W{0,3}Traceback \(most recent call last\)", re.M)
_LEADING = re.compile(
    r"\W{0,3}(?:"
    r"(?:error|fatal(?: error)?|critical|exception|failure|panic)(?:\s+(?:code\s*)?\d+"
    r"|\s+(?:while|when|in|at|from|calling|during|executing|parsing|reading)\s[^:\n]{1,40})?\s*[:!\]]"
    r"|(?:[A-Za-z_][\w.]*)?(?:Error|Exception)(?:\s*\([^)\n]*\))?\s*:"
    r"|npm ERR!|error\[E\d+\]|unhandled |uncaught |segmentation fault|\[(?:error|fatal)\]"
    r"|FAIL(?:ED|URE)?\b(?! (?:to|safe))|[1-9]\d* (?:tests? )?failed\b|answer is incorrect\b"
    r"|incorrect\b[.!]?\s*$|wrong answer"
    r"|(?:错误|出错|报错|异常|失败)(?:了)?(?:代码|码)?\s*(?:[:：！!，,]|$|\d))",
    re.IGNORECASE,
)
_HTTP = re.compile(
    r"\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?:[ _]?code)?|状态码)\W{0,3}(?:error\s*)?[45]\d\d\b"
    r"|^\W{0,3}[45]\d\d\s+(?:Bad|Unauthori[sz]ed|Payment Required|Forbidden|Not Found"
    r"|Method Not|Not Acceptable"
    r"|Request Time|Conflict|Gone|Payload|Unprocessable|Too Many|Internal Server"
    r"|Not Implemented|Service|Gateway)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W{0,3}(?:(?:sorry|oops|unfortunately)[,.!]?\s+)?(?:(?:I|we|it)\s+)?(?:"
    r"could(?: not|n[’']t) |can(?:not| not|[’']t) |unable to |failed to |no such |invalid "
    r"|illegal |refused\b|denied\b"
    r"|not (?:found|allowed|permitted|authori[sz]ed|supported|implemented)\b|forbidden\b|unauthori[sz]ed\b"
    r"|(?:unknown|unrecogni[sz]ed|unsupported) (?:language|command|option|argument|parameter"
    r"|tool|function|host|column|field|key|user|file)"
    r"|missing (?:required|argument|parameter|field|value|\d+ required)|unexpected (?:token"
    r"|keyword|argument|error|end|character|indent)"
    r"|(?:permission|access) denied|rate limit|too many requests|service unavailable|bad gateway"
    r"|(?:connection|request|operation|read|gateway|network) (?:error|refused|reset|aborted)\b"
    r"|(?:(?:connection|request|operation|read|gateway|network) )?(?:timed out|time-?out)\b"
    r"|(?:ba|z|da)?sh: |[\w./-]+: (?:command not found|no such file|permission denied|cannot )"
    r"|[\w'\"<>-]+(?: [\w'\"<>-]+){0,3} (?:(?:(?:is|was|are) )?not (?:found|allowed|available)\b"
    r"|does not exist\b|(?:is|are) (?:required|invalid)[.!]?\s*$))",
    re.IGNORECASE,
)
_ZH_REFUSAL = re.compile(
    r"\W{0,3}(?:抱歉|对不起)?[，,]?\s*(?:无法|未能|不能|找不到|未找到|没有找到|没有权限"
    r"|权限不足|无权|参数(?:错误|无效|有误|缺失)|不支持|拒绝|请求超时|系统繁忙|网络(?:错误|异常|超时|中断|不可用)"
    r"|服务(?:器)?(?:暂时)?(?:不可用|繁忙|异常|错误|超时))"
    r"|(?:操作|请求|调用|执行|查询|连接|登录|提交|支付|预订|下单|创建|更新|删除|保存|上传|下载"
    r"|解析|编译|安装|启动|运行|验证|校验|获取|发送|测试|退款|取消|修改|写入|读取)"
    r"[^，。；\n]{0,8}(?:失败|出错|报错|超时|异常)(?!处理|率|次数|数|恢复|重试|测试)|(?:错误|异常)(?:码|代码|信息)?\s*[:：]"
    r"|(?:不存在|已失效|已过期|不可用)[。！!]?\s*$",
)
_JSON_ERROR_KEYS = ("error", "errors", "exception", "fault")
_JSON_MESSAGE_KEYS = ("message", "msg", "detail", "details", "reason", "description", "error", "title")
_JSON_START = re.compile(r'\s*\{\s*"(?:error|exception|fault)"\s*:\s*(?!null\b|false\b|""|\[\]|\{\})')
_EMPTY = re.compile(
    r"(?:\[\s*\]|\{\s*\}|null|none|n/a|no (?:results?|matches|data|records|rows"
    r"|items)(?: (?:were |was )?(?:found|returned))?"
    r"|0 (?:results?|matches|rows|items|records)(?: found| returned)?|nothing found|\(no output\)|\(empty\)"
    r"|(?:没有|无|未找到|暂无)(?:相关|匹配|任何|符合条件的)?(?:结果|数据|记录|内容))?[.。]?",
    re.IGNORECASE,
)


def is_result(step: StepForm) -> bool:
    """Return whether a step is what came back from a tool or the world."""
    return step.role == Role.TOOL or step.kind in (StepKind.TOOL_RESULT, StepKind.OBSERVATION)


def is_empty(text: str) -> bool:
    """Return whether a result says nothing was found (also under a code runner's header)."""
    return _EMPTY.fullmatch(text[_body(text) :].strip()) is not None


def find_error(step: StepForm) -> ErrorSign | None:
    """Return where a step reports an error, or None. Only results and flagged steps can."""
    if not (step.is_error or is_result(step)):
        return None
    text = step.content
    span = _json_span(text) or _printed_span(text) or _opening_span(text)
    if span is None and step.is_error:
        span = _first_line(text, _body(text)) or _first_line(step.text, 0)
    if span is None:
        return None
    start, end = span
    # A time-out is often named beside the message that is quoted: judge the head as well.
    verdict = classify((text or step.text)[start:end])
    if verdict in (FailureClass.NONE, FailureClass.PERMANENT):
        verdict = max(verdict, classify(text[:_HEAD]), key=_severity)
    return ErrorSign(start, end, FailureClass.PERMANENT if verdict == FailureClass.NONE else verdict)


def error_quote(step: StepForm, sign: ErrorSign) -> Quote:
    """Return the verbatim words of an error as evidence."""
    return Quote(step.sequence, sign.start, sign.end, step.text[sign.start : sign.end])


def head_quote(step: StepForm, limit: int = 160) -> Quote:
    """Quote the beginning of a step, verbatim."""
    start = len(step.text) - len(step.text.lstrip())
    end = min(len(step.text.rstrip()), start + limit)
    return Quote(step.sequence, start, end, step.text[start:end])


def _severity(verdict: FailureClass) -> int:
    """Order verdicts by how much they excuse the call, so that the head may only excuse more."""
    order = (FailureClass.NONE, FailureClass.PERMANENT, FailureClass.IMPOSSIBLE, FailureClass.USER_ERROR)
    return order.index(verdict) if verdict in order else len(order)


def _json_span(text: str) -> tuple[int, int] | None:
    """Return the message of an error object, or None when the text is not one."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        body = json.loads(text)
    except ValueError:
        return _first_line(text, len(text) - len(text.lstrip())) if _JSON_START.match(text) else None
    if not isinstance(body, Mapping) or not _is_error_object(body):
        return None
    message = _json_message(body)
    for form in (message, json.dumps(message, ensure_ascii=False)[1:-1], json.dumps(message)[1:-1]):
        at = text.rfind(form) if form else -1
        if at >= 0:
            return at, at + min(len(form), MESSAGE_LIMIT)
    return _first_line(text, 0)


def _is_error_object(body: Mapping[str, object]) -> bool:
    if any(body.get(key) not in (None, False, "", 0, [], {}, "null", "none") for key in _JSON_ERROR_KEYS):
        return True
    if body.get("isError") is True or body.get("is_error") is True:
        return True
    if body.get("success") is False or body.get("ok") is False:
        return True
    state = str(body.get("status", "")).lower()
    if state in ("error", "failed", "failure", "fail", "失败", "错误"):
        return True
    codes = [body.get(key) for key in ("code", "status", "status_code", "statusCode")]
    return any(isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 for code in codes)


def _json_message(body: Mapping[str, object]) -> str:
    for key in _JSON_ERROR_KEYS:
        inner = body.get(key)
        if isinstance(inner, Mapping):
            return _json_message(inner)
        if isinstance(inner, str) and inner:
            return inner
    return next((value for key in _JSON_MESSAGE_KEYS if isinstance(value := body.get(key), str) and value), "")


def _printed_span(text: str) -> tuple[int, int] | None:
    """Return the telling line of a program that failed: a non-zero exit code or a traceback."""
    exits = [int(match["code"] or match["zh"]) for match in _EXIT.finditer(text)]
    body = _body(text)
    trace = _TRACEBACK.search(text)
    exceptions = list(_EXCEPTION_LINE.finditer(text))
    ends_in_one = exceptions and not text[exceptions[-1].end() :].strip()
    if not any(exits) and not (trace and (trace.start() <= body or ends_in_one)):
        return None
    if exceptions:
        return _capped(text, exceptions[-1].start("line"), exceptions[-1].end())
    lines = [line for line in _LINE.finditer(text, body) if not _FRAME.match(line.group())]
    named = [line for line in lines if _NAMED.search(line.group())]
    telling = named or [line for line in lines if classify(line.group()) != FailureClass.NONE] or lines[-1:]
    return _capped(text, telling[0].start(), telling[0].end()) if telling else _first_line(text, 0)


def _opening_span(text: str) -> tuple[int, int] | None:
    """Return the first line when it opens with an error's words."""
    body = _body(text)
    first = _first_line(text, body)
    if first is None or denies_failure(text[first[0] : first[1]]):
        return None
    line = text[first[0] : first[1]]
    short = len(text) - body <= _SHORT
    opened = _LEADING.match(line) or _HTTP.search(line[:120])
    refused = _REFUSAL.match(line) or (short and _ZH_REFUSAL.search(line))
    if opened or (refused and (short or "[" in line)):
        return first
    return None


def _body(text: str) -> int:
    """Return where a program's own output begins behind what a shell or a code runner prints first."""
    wrapper = _WRAPPER.match(text)
    return wrapper.end() if wrapper else 0


def _first_line(text: str, start: int) -> tuple[int, int] | None:
    match = _LINE.search(text, start)
    return _capped(text, match.start(), match.end()) if match else None


def _capped(text: str, start: int, end: int) -> tuple[int, int]:
    """Trim white space and cut to the quote limit at a word's end."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end - start > MESSAGE_LIMIT:
        cut = text.rfind(" ", start + MESSAGE_LIMIT // 2, start + MESSAGE_LIMIT)
        end = cut if cut > 0 else start + MESSAGE_LIMIT
    return start, end
