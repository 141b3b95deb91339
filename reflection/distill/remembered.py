"""Preferences and facts, only from what a user explicitly asked to be remembered."""

from __future__ import annotations

import re

from memories.enums import Kind, Tier
from reflection.distill.wording import is_chinese, one_line, shorten
from reflection.forms import Candidate, Quote, TraceForm
from reflection.wishes import Wish, wishes

_CONFIDENCE = 0.5
_AT_MOST = 5  # wishes taken from one trace
_LIMIT = 300
_PREFERENCE = re.compile(
    r"\b(?:prefer\w*|like[sd]?|love[sd]?|hate[sd]?|dislike\w*|want[sed]*|favou?rite|rather"
    r"|always|never|don['’]?t|do not|only|avoid"
    r"|please|use|call me|address me|from now on|no more|instead of|allergic|vegan|vegetarian|intolerant)\b"
    r"|喜欢|偏好|偏爱|爱吃|讨厌|不爱|不喜欢|不要|不想|不吃|不喝|习惯|总是|从不|只要|只坐|只用"
    r"|希望|想要|请用|请|都用|以后|今后|从现在|尽量|避免|别|过敏|素食|忌",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"\b(?:always|never|must|hate|only|allergic)\b|从不|总是|必须|一定|只|讨厌|过敏|务必|一律", re.IGNORECASE
)
_IS = re.compile(
    r"^(?P<subject>[^,;，；]{2,60}?)\s+(?P<verb>is|are|was|were|has|have|starts|ends|lives"
    r"|works|needs|uses)\s+(?P<object>.+)$",
    re.I,
)
_IS_ZH = re.compile(r"^(?P<subject>[^，；,;]{1,20}?)(?P<verb>是|在|有|叫|为|需要|用)(?P<object>.+)$")


def remembered(trace: TraceForm) -> tuple[Candidate, ...]:
    """Return one preference or fact per wish that says what to remember, without repeats."""
    zh = is_chinese(trace)
    made = [_candidate(wish.clause, wish, zh) for wish in wishes(trace) if wish.clause is not None]
    return tuple({candidate.content: candidate for candidate in made}.values())[:_AT_MOST]


def _candidate(clause: Quote, wish: Wish, zh: bool) -> Candidate:
    said = shorten(one_line(clause.text), _LIMIT).strip("\"'“” ").rstrip(".。!！?？")
    wanted = _PREFERENCE.search(said) is not None
    content = f"用户要求记住：{said}。" if zh else f"The user asked to remember: {said}."
    return Candidate(
        kind=(Kind.PREFERENCE if wanted else Kind.FACT).value,
        tier=Tier.EPISODIC.value,
        content=content,
        structure=_preference(said) if wanted else _fact(said, zh),
        confidence=_CONFIDENCE,
        quotes=(clause,) if clause == wish.said else (clause, wish.said),
    )


def _preference(said: str) -> dict[str, object]:
    return {"holder": "user", "preference": said, "strength": 0.9 if _STRONG.search(said) else 0.7}


def _fact(said: str, zh: bool) -> dict[str, str]:
    parts = (_IS_ZH if zh else _IS).match(said)
    if parts is None:
        return {"subject": "user", "predicate": "要求记住" if zh else "asked to remember", "object": said}
    return {
        "subject": parts["subject"].strip(),
        "predicate": parts["verb"],
        "object": parts["object"].strip(),
    }
