"""Shell commands, scripts and statements: what was put right between one that failed and one that worked."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass

from reflection.distill.calls import SQL
from reflection.distill.setups import sets_up
from reflection.distill.wording import one_line

_QUOTED = r"\"(?:\\.|[^\"\\])*\"|'[^']*'"
_PIECE = re.compile(rf"{_QUOTED}|&&|[^\"'&;\n]+|.", re.DOTALL)
_NOISE = re.compile(r"(?:echo|printf|pwd|ls|date|whoami|which|cat|head|set -[a-z]+|true)\b|#")
# What makes a command pass without making it work: its failure is hidden, what failed is left out, or a
# guard is taken down.
_HIDES = re.compile(
    r"\|\|\s*(?:true|:|echo|exit 0)|;\s*(?:true|:|echo\b[^;]*|exit 0)\s*$|\bset \+e\b"
    r"|--(?:exit-zero|ignore\S*|deselect\S*|skip\S*|force\S*|no-verify|continue-on\S*|allow-fail\S*|dry-run)\b"
    r"|\b(?:git|rm|ln|mv|cp)\b[^|;&]*\s-f\b|\b(?:pytest|curl)\b[^|;&]*\s-k\b|--maxfail|\bTRY_CAST\b"
    r"|insecure|--no-check-cert\S*|--trusted-host|--disable-(?:ssl|tls|sandbox)|--break-system-packages|--privileged|--allow-root|verify=false",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(r"not found|not recogni[sz]ed|no such|not installed|找不到|未找到|不存在", re.IGNORECASE)
# A pipe hides the exit code of what stands before it; the output may be cut by it.
_TAIL = re.compile(r"\s*(?:2>&1|2>/dev/null|&>\s*\S+|\|\s*(?:tail|head|cat|grep|less|more|wc)\b[^|&;]*)\s*$")
_OWN_OPERAND = re.compile(r"(?=.*[/\\])\S+|\S+\.\w{1,5}(?:::\S+)?|.*\s.*|(?=.*\d)\w{4,}|\d+|\S+@\S+")
_INTERPRETERS = frozenset(["python", "python3", "node", "bash", "sh", "ruby", "perl", "php", "deno", "java"])
_TYPO = 0.8  # of two words, from which one reads as the other misspelt
_LONGEST = 2_000  # characters; a longer command is a script and is not compared word by word
_SHOWN = 80  # characters of a command


@dataclass(frozen=True, slots=True)
class CommandFix:
    """`how` the command was put right: "first" (`words` were run before it), "before" (put in front of
    it), "added" (put into it), or "replaced" (`words` in place of `instead`)."""

    how: str
    words: str
    instead: str = ""


def command_fix(old: str, new: str, message: str) -> CommandFix | None:
    """Return how `new` puts `old` right, whose error was `message`; None when it is another command, or
    one that only hides the failure."""
    if max(len(old), len(new)) > _LONGEST or "<<" in old + new:
        return None
    if _HIDES.search(new) and not _HIDES.search(old):
        return None
    before, after = parts(old), parts(new)
    if not before or not after or before == after:
        return None
    if len(after) > len(before) and after[-len(before) :] == before:
        first = [part for part in after[: -len(before)] if not _NOISE.match(part)]
        fits = first and all(sets_up(part, message) for part in first)
        return CommandFix("first", " && ".join(first)) if fits else None
    if len(before) != len(after):
        return None
    differing = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    return _edited(*differing[0], message) if len(differing) == 1 else None


def parts(command: str) -> list[str]:
    """Split a command at `&&`, `;` and line ends, without the tails that only cut its output."""
    raw = [""]
    for piece in _PIECE.findall(command[:_LONGEST]):
        if piece in ("&&", ";", "\n"):
            raw.append("")
        else:
            raw[-1] += piece
    return [text for part in raw if (text := _without_tail(one_line(part)))]


def _without_tail(text: str) -> str:
    while tail := _TAIL.search(text):
        text = text[: tail.start()]
    return text


def same_command(one: str, other: str) -> bool:
    """Return whether two commands do the same, apart from how much of their output is shown."""
    if max(len(one), len(other)) > _LONGEST:
        return False
    return parts(one) == parts(other) != []


def cuts_output(command: str) -> bool:
    """Return whether the exit code of a command is hidden by what its output is piped into."""
    return re.search(r"\|\s*(?:tail|head|cat|grep|less|more|wc)\b|2>/dev/null", command) is not None


def program(command: str) -> str:
    """Return the program that the last part of a command runs."""
    found = parts(command)
    words = [word for word in found[-1].split() if "=" not in word and word not in ("sudo", "env")] if found else []
    return words[0] if words else ""


def command_shown(command: str) -> str:
    """Return the last part of a command as its kind: files and other operands of this run become "…"."""
    if SQL.match(command):
        return _capped(re.sub(r"'[^']*'|(?<![\w.])\d+(?:\.\d+)?", "…", one_line(command)))
    found = parts(command)
    tokens = _tokens(found[-1]) if found else []
    shown: list[str] = []
    for place, token in enumerate(tokens):
        script = place > 0 and tokens[place - 1] in _INTERPRETERS
        own = place > 0 and not script and not token.startswith("-") and _OWN_OPERAND.fullmatch(token)
        if token.startswith("-") and "=" in token and _OWN_OPERAND.fullmatch(token.split("=", 1)[1]):
            token = token.split("=", 1)[0] + "=…"
        if not own:
            shown.append(token)
        elif shown[-1] != "…":
            shown.append("…")
    return _capped(" ".join(shown))


def command_told(command: str) -> str:
    """Return a command in full, on one line, capped."""
    return _capped(one_line(command))


def code(text: str) -> str:
    """Return a command or a line of code as it is set in a sentence."""
    return f"“{text}”" if "`" in text else f"`{text}`"


def _capped(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    space = text.rfind(" ", _SHOWN // 2, _SHOWN - 1)
    return text[: space if space > 0 else _SHOWN - 1] + " …"


def _edited(old: str, new: str, message: str) -> CommandFix | None:
    """Compare two versions of one part of a command, word by word."""
    before, after = _tokens(old), _tokens(new)
    if len(after) > len(before) and after[-len(before) :] == before:
        front = after[: -len(before)]
        return CommandFix("before", " ".join(front)) if len(front) <= 4 else None
    added = _added(before, after)
    if added:
        is_flag = added[0].startswith("-")
        return CommandFix("added", " ".join(added)) if is_flag and len(added) <= 4 else None
    shared = _same_end(before, after)
    old_words, new_words = before[: len(before) - shared], after[: len(after) - shared]
    if old_words == before[:1] and shared and len(new_words) <= 3 and _lacks(old_words[0], message):
        return CommandFix("replaced", " ".join(new_words), old_words[0])
    if len(before) == len(after):
        differing = [place for place in range(len(before)) if before[place] != after[place]]
        if len(differing) == 1:
            return _replaced(before[differing[0]], after[differing[0]], old, message)
    return None


def _lacks(program: str, message: str) -> bool:
    """Return whether an error says that a program is not there."""
    return program in message and _NO_PROGRAM.search(message) is not None


def _same_end(before: list[str], after: list[str]) -> int:
    """Return how many words at the end are the same."""
    same = 0
    while same < min(len(before), len(after)) and before[-1 - same] == after[-1 - same]:
        same += 1
    return same


def _added(before: list[str], after: list[str]) -> list[str]:
    """Return the words that were put into `before` at one place to make `after`, or none."""
    extra = len(after) - len(before)
    if extra <= 0:
        return []
    start = next((i for i, word in enumerate(before) if word != after[i]), len(before))
    return after[start : start + extra] if after[start + extra :] == before[start:] else []


def _replaced(old: str, new: str, command: str, message: str) -> CommandFix | None:
    """Accept another flag, or the word that the error itself offers."""
    flags = old.startswith("-") and new.startswith("-")
    if not flags and difflib.SequenceMatcher(None, old, new).ratio() >= _TYPO and not SQL.match(command):
        return None  # a slip of the pen teaches nothing
    offered = len(new) >= 3 and re.search(rf"(?<!\w){re.escape(new)}(?!\w)", message) is not None
    return CommandFix("replaced", new, old) if offered or flags else None


def _tokens(part: str) -> list[str]:
    try:
        lexer = shlex.shlex(part, posix=False, punctuation_chars=False)
    except ValueError:
        return part.split()
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return part.split()
