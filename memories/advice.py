"""Whether a text tells to do something, or warns against it. Pure."""

from __future__ import annotations

import re

from memories.contents import sentences

_WARNING = re.compile(
    r"^\W*(?:(?:please|important|warning|caution|note)\W+)*"
    r"(?:do not|don['’]t|never|avoid|stop|refrain from|beware|must not|you (?:must|should) (?:not|never)|no need to)\b"
    r"|^\W*(?:请|警告[：:]|注意[：:])?(?:千万|绝对)?(?:不要|不得|不能|不可|请勿|切勿|严禁|禁止|避免|切忌|勿|别(?![的人名]))",
    re.IGNORECASE,
)
_ADVISING = re.compile(r"\b(?:should|must|always|never|need to|have to|make sure|be sure|prefer to)\b", re.IGNORECASE)
_ZH_ADVISING = re.compile(r"应该|应当|必须|务必|一定要|建议|记得|需要先|要先|先.{1,20}再")
_ORDER = re.compile(
    r"^\W*(?:please |first,? |always )?(?:use|run|set|add|call|check|ask|make|retry|wait|pass|give|send|read|write|open"
    r"|close|keep|try|verify|confirm|install|start|restart|enable|disable|upgrade|commit|deploy|cache|log|skip|store"
    r"|put|take|turn|apply|follow|include|remove|delete|create|update|search|look|prefer|cancel|book|offer|tell|say)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|`[^`]*`|「[^」]*」")
_CLAUSE = re.compile(r"[,;:，；：]")
_CONDITION = re.compile(
    r"^\W*(?:when|whenever|if|before|after|while|once|unless|for|in|with|where|to)\b|^\W*(?:如果|若|当|在)", re.I
)


def is_warning(text: str) -> bool:
    """Whether the text tells what not to do, and nothing to do: "Do not …", "X is refused. Never …", "…，不要…"."""
    if _WARNING.match(text):
        return True
    warned = False
    for sentence in sentences(_QUOTED.sub(" ", text)):
        *led, last = _CLAUSE.split(sentence)
        if _WARNING.match(last) and not any(map(_orders, led)):
            warned = True
        elif _orders(sentence) or _CONDITION.match(sentence):
            return False  # what it tells to do counts, and a condition leads to what is to be done
    return warned


def _orders(text: str) -> bool:
    return bool(_ORDER.match(text) or _ADVISING.search(text) or _ZH_ADVISING.search(text))


def is_advice(text: str) -> bool:
    """Whether the text tells to do something or not to."""
    return bool(is_warning(text) or _ORDER.match(text) or _ADVISING.search(text) or _ZH_ADVISING.search(text))
