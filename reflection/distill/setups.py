"""What is done before a call so that it works: recognising a preparation that another run could use."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from reflection.distill.calls import Attempt, command_of
from reflection.distill.changes import share_words, words

# A command that brings something about which others then stand on.
_SETUP = re.compile(
    r"^(?:\w+=\S*\s+|sudo\s+|env\s+)*(?:cd|pushd|source|\.|export|set|use|mkdir|chmod|ssh-add|nvm|pyenv|rustup|corepack)\b"
    r"|\b(?:install|migrate|migrations?|build|compile|init|setup|sync|generate|create|start|up|login|log-in|auth"
    r"|activate|download|fetch|pull|seed|load|make|enable|restore|update|upgrade|bundle|restart|provision|register"
    r"|prepare|bootstrap|collectstatic|alembic)\b",
    re.IGNORECASE,
)
# What throws work away or takes a guard down is never passed on as advice.
_DESTROYS = re.compile(
    r"\b(?:rm|rmdir|shred|kill|pkill|killall|dd|mkfs\S*|drop|truncate|delete|purge|prune)\b|\bchmod\s+(?:-R\s+)?0?777\b"
    r"|\bgit\s+(?:stash|checkout|switch|reset|clean|revert|rebase|push|add|commit)\b|\bsetenforce\b|\biptables\b",
    re.IGNORECASE,
)
_EDITS = re.compile(
    r"\bsed\s+(?:-\w+\s+)*-i|\btee\b|(?<![0-9&>])>>?\s*(?!/dev/)[\w./~$]|\bpatch\b|\bgit apply\b"
    r"|<<-?\s*['\"]?\w+|\bapply_patch\b|\bperl\s+-\w*i",
)
_EDITORS = re.compile(r"edit|write|patch|replace|create_?file|insert|修改文件|写入", re.IGNORECASE)
_SAME = 4  # letters in a row that an error and the name of a tool share when they speak of one thing


def sets_up(command: str, message: str) -> bool:
    """Return whether a command prepares the ground for another one whose error was `message`."""
    if _DESTROYS.search(command) or _EDITS.search(command):
        return False
    return _SETUP.search(command) is not None or share_words(message, command.replace("_", " "))


def mends(attempt: Attempt) -> bool:
    """Return whether an attempt edited files: that mends this one project and says nothing about others."""
    command = command_of(attempt.tool, attempt.arguments)
    return _EDITS.search(command) is not None if command is not None else _EDITORS.search(attempt.tool) is not None


def prepares(done: Attempt, failed: Attempt, message: str) -> bool:
    """Return whether something that was done explains why the call that failed worked afterwards.

    A tool does when a word of its name, apart from those that it shares with the failing call, speaks of
    what the error says: `unlock_order` for "order is locked".
    """
    command = command_of(done.tool, done.arguments)
    if command is not None:
        return sets_up(command, message)
    shared = words(" ".join((failed.tool, *map(str, failed.arguments))).replace("_", " "))
    own = words(done.tool.replace("_", " ")) - shared
    said = words(message) - shared
    return any(_akin(name, word) for name in own for word in said)


def _akin(name: str, word: str) -> bool:
    if not name.isascii() or not word.isascii():
        return name == word
    match = SequenceMatcher(None, name, word, autojunk=False).find_longest_match()
    return match.size >= _SAME
