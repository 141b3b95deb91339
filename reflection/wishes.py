"""What a user explicitly asked to be remembered, in English and Chinese.

"Remember that I prefer aisle seats" and "请记住：我不吃辣" are wishes; "I can't remember my order number",
"do you remember …?" and "我不记得了" are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reflection.enums import Role
from reflection.forms import Quote, TraceForm

QUOTED = 500  # characters of a wish that are quoted at most
_SENTENCE = re.compile(r"[^.!?。！？；\n]+(?:[.!?。！？；]+|\n|$)")
_LEAD = (
    r"(?:(?:ok(?:ay)?|alright|great|thanks|thank you|hi|hello|hey|also|and|so|but|then|oh|well"
    r"|now|by the way|btw"
    r"|one more thing|next time|for next time|for the future|in (?:the )?future|going forward"
    r"|p\.?s\.?)[,:;]?\s+)*"
)
_ASK = (
    r"(?:(?:please|kindly|just|always|do|and)\s+|(?:can|could|would|will) you (?:please |also |just )?"
    r"|(?:i(?:['’]d| would)? (?:want|like|need) you to|you (?:should|must|need to|have to)"
    r"|make sure (?:to|you)"
    r"|i(?:['’]d| would) appreciate it if you(?: could| would)?)\s+(?:also |always )?)*"
)
# What follows "remember" when it is not a wish: past events, questions, a tick box.
_NOT_AFTER = (
    r"(?!\s+(?:when|the time|that time|that (?:day|night|one time|movie|film|song)|last|how we"
    r"|what (?:i|you|we) (?:said|told)|correctly|right"
    r"|anything|if|seeing|reading|hearing|doing|having|being)\b)(?!\s+me\b(?:\s*(?:[.?!,\"”]"
    r"|$)|\s+(?:box|option|checkbox|feature|button|token|cookie)))"
    r"(?!\s+(?:my|the|your)\s+password)"
)
_ENGLISH = re.compile(
    rf"^[\s\"'“(*-]*{_LEAD}{_ASK}(?:remember{_NOT_AFTER}|(?:don['’]?t|do not|never) forget (?:that|this|:)"
    r"|(?:keep|bear) (?:this |that |it )?in mind(?=\s*[,:]|\s+(?:that|for|in future)\b)"
    r"|(?:make|take) (?:a )?note (?:of|that)\b|note (?:this )?(?:down )?for (?:the future|next time|later)\b"
    r"|(?:save|store|keep|add|put) (?:this|that|it) (?:to|in|into) (?:your "
    r"|the )?(?:long-term )?(?:memory|notes)\b"
    r"|commit (?:this|that|it) to memory|from now on\b)"
    r"|[,;:–—-]\s*(?:and |so |but )?please (?:always )?remember(?: that| this| to|:|,)"
    r"|\bplease (?:always )?remember (?:that|this|my|i|to)\b|\band remember (?:that|this) i\b"
    r"|\bfor future reference\b|\b(?:remember|keep|note) this for (?:next time|later|the future|future)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^\W*(?:(?:and|so|but)\s+)?(?:do|did|don['’]?t|didn['’]?t) (?:you|i"
    r"|we)\b[^?]*\bremember\b|^\W*remember\b[^?]*\?\s*$",
    re.I,
)
_POLITE = re.compile(
    r"\b(?:can|could|would|will) you (?:please |also |just )?remember\b(?P<rest>[^?]*)\?", re.IGNORECASE
)
_POLITE_WISH = re.compile(r"\s+(?:that i|that my|that we|that our|this|to|for next time)\b", re.IGNORECASE)
_CHINESE = re.compile(
    r"(?:请|麻烦|帮我|给我|替我|务必|一定要?|你要?|您要?|希望你|要|，|,|：|:|。|^|\s|也|并"
    r"|还有|另外|下次|以后|今后|顺便)"
    r"(?:你|您|帮我|一定要?|务必|都|也|先|请)*"
    r"(?:记住(?!密码|登录|用户名|我(?:[。！？”\"]|$|的?(?:选项|功能|按钮|复选框)))|记得(?!吗"
    r"|么|不|住|上次|那次|当时|以前|之前|我(?:上次|之前|说过))"
    r"|记下来?|记一下|记好|牢记|(?:别|不要|不许|勿)忘(?:了|记|掉)?(?!带|拿|关)|把(?:这|它"
    r"|以下)[^。！？\n]{0,20}记(?:下来|住|录下来|到记忆))"
    r"|(?:从现在起|从今以后|今后|以后)(?:请|都|一律|务必|不要|别|只)|(?:存|写|保存|记)(?:到|入"
    r"|进)(?:你的?|长期)?记忆"
)
_CHINESE_NOT = re.compile(
    r"(?:不|没|没有|未|记不|忘|怎么|谁|难|好|容易|很难|无法|不能|没能|还|是否|是不是|有没有"
    r"|能不能|我|我们|大家|让人|他|她|勾选|选择|点击)(?:都|也|还|能|会|要|就|已经?|刚)*记(?:住"
    r"|得)|(?:不|没|没有)记下"
    r"|记(?:得|住)(?:了)?(?:吗|么|没|不)|如果没记错|(?:记住|记得)了[。！]?$|“记住(?:我|密码)”"
)
_LINK = (
    r"\s*(?:that\b|this\b|to\b|of\b|for (?:next time|the future|later)\b|一下|这[点个一]*|，|,"
    r"|:|：|;|-|–|—|\s)*\s*"
)
_CLAUSE_START = re.compile(
    rf"(?:remember|forget|in mind|note of|\bnote\b|memory|记住|记得|记下来?|记一下|记好|牢记"
    rf"|忘(?:了|记|掉)?){_LINK}",
    re.IGNORECASE,
)
_CLAUSE_LATER = re.compile(rf"(?:for future reference|next time|later|in future|记忆){_LINK}", re.IGNORECASE)
_STANDING = re.compile(r"^\W*(?:from now on|for future reference|(?:从现在起|从今以后|今后|以后))", re.IGNORECASE)
_SAYS_SOMETHING = re.compile(r"[A-Za-z]{2,}(?:\W+[A-Za-z0-9]+)+|[\u3400-\u9fff]{3,}")
_PRONOUN_ONLY = re.compile(
    r"^(?:it|this|that|these|those|them|the above|everything|all of (?:this|that)|这些?|那些?"
    r"|以上)\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wish:
    """A user's wish to have something remembered; `clause` is what, verbatim, or None if not said there."""

    said: Quote
    clause: Quote | None


def wishes(trace: TraceForm) -> tuple[Wish, ...]:
    """Return every remember wish in the user's steps, in order."""
    said = [step for step in trace.steps if step.role == Role.USER]
    return tuple(wish for step in said for wish in _in_text(step.sequence, step.text))


def is_wish(sentence: str) -> bool:
    """Return whether one sentence asks for something to be remembered."""
    polite = _POLITE.search(sentence)
    if polite:
        return _POLITE_WISH.match(polite["rest"]) is not None
    if _QUESTION.search(sentence):
        return False
    if _ENGLISH.search(sentence):
        return True
    return _CHINESE.search(sentence) is not None and _CHINESE_NOT.search(sentence) is None


def _in_text(sequence: int, text: str) -> Iterator[Wish]:
    for match in _SENTENCE.finditer(text):
        if is_wish(match.group()):
            start, end = _trimmed(text, match.start(), match.end())
            yield Wish(Quote(sequence, start, end, text[start:end]), _clause(sequence, text, start, end))


def _clause(sequence: int, text: str, start: int, end: int) -> Quote | None:
    """Return what is to be remembered: the words after the wish, or the sentence beside it."""
    sentence = text[start:end]
    if _STANDING.match(sentence) and not sentence.lower().lstrip().startswith("for future"):
        return Quote(sequence, start, end, sentence)
    found = _CLAUSE_START.search(sentence) or _CLAUSE_LATER.search(sentence)
    if found is None:
        return None
    at, stop = _trimmed(text, start + found.end(), end)
    words = text[at:stop].strip(' .。!！?？,，"”')
    if not _SAYS_SOMETHING.search(words) or _PRONOUN_ONLY.match(words):
        told_after = sentence.rstrip().endswith((":", "："))
        between = (end, len(text)) if told_after else (0, start)
        return _neighbour(sequence, text, *between)
    return Quote(sequence, at, stop, text[at:stop])


def _neighbour(sequence: int, text: str, start: int, end: int) -> Quote | None:
    """Return the statement next to a bare "remember this": the first after it or the last before it."""
    said = [m for m in _SENTENCE.finditer(text, start, end) if _SAYS_SOMETHING.search(m.group())]
    if not said:
        return None
    chosen = said[0] if start else said[-1]
    if chosen.group().rstrip().endswith(("?", "？")):
        return None
    at, stop = _trimmed(text, chosen.start(), chosen.end())
    return Quote(sequence, at, stop, text[at:stop])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out white space at both ends, and what is beyond the limit of a quote."""
    while start < end and text[start].isspace():
        start += 1
    end = min(end, start + QUOTED)
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
