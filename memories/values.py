"""Whether an attribute has one value at a time, and whether two values differ. Pure."""

from __future__ import annotations

import re

from memories.opposites import are_opposites
from memories.statements import is_number, statement, stem


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


# Predicates of which one subject has many: two objects are two facts.
_MANY = _stems(
    "like likes love loves enjoy enjoys hate dislike dislikes use uses own owns have has know knows speak speaks visit"
    " visited contain contains include includes support supports depend depends read reads watch watches play plays buy"
    " bought member friend friends colleague sells offers knows mentions likes attend attends eat eats want wants need"
    " needs can accept accepts provide provides require requires allow allows recommend recommends relate related"
    " caused cause causes work worked studied said told did made wrote interested hobby hobbies skill skills sibling"
    " child children pet pets tag tags feature features tool tools integrates integrate part"
)
_ZH_MANY = re.compile(r"喜欢|讨厌|爱|使用|用过|拥有|有|会|去过|包含|包括|支持|依赖|认识|朋友|擅长|提供|需要|想要|属于")
_COPULA = frozenset({"", "is", "are", "was", "were", "be", "是", "equals", "isa"})

# Nouns and verbs whose value is one at a time. What follows them in a sentence is that value.
_ATTRIBUTES = _stems(
    "default port host hostname address url endpoint region timezone currency language format color colour branch owner"
    " maintainer manager contact deadline name title location office headquarters capital birthday age price cost fee"
    " limit timeout quota maximum minimum version password-policy status schedule number favourite favorite base"
    " encoding charset level size length width height weight date time day code key extension suffix prefix interval"
    " frequency window retention primary leader lead assignee budget salary rate unit shell editor theme"
)
_VERBS = _stems(
    "is are was lives live located works work called named set defaults moved stored written hosted listens listen runs"
    " run expires expire takes take lasts last costs cost weighs starts start ends end opens open closes close needs"
    " need requires require allows allow returns return holds hold accepts accept caps cap limited rotates rotate"
    " happens happen retries retry wait waits keep keeps kept scheduled due begins begin arrives departs uses use"
    " handles supports serves pays pay charges charge refunds refund wants prefers prefer sends send at every = within"
)
_SETTLES = _stems("lives live located called named defaults moved stored hosted scheduled set prefers prefer only must")
# A number behind one of these names a thing, it is no value of one; so it does behind any noun but an attribute.
_NAMING = _stems("version v python node java error")
_LEADING = "is are was to at of than after least most every within = by about over under for"
_LEADS_TO_NUMBER = frozenset(_LEADING.split())
_DAYS = _stems(
    "monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays saturday saturdays sunday"
    " sundays january february march april june july august september october november december noon midnight"
)
_QUALIFIERS = "for if when per under during with between in on from by like"
_QUALIFYING = frozenset(_QUALIFIERS.split())
_TIME_OR_SIZE = re.compile(r"#[\d.e+]+[sb]$")
_YEAR = re.compile(r"(?:19|20)\d\d$")
_ZH_NAMED_AFTER = re.compile(
    r"(?:默认[^，。]{0,8}(?:是|为)|位于|住在|住|叫做?|设为|设置为|改为|改成"
    r"|(?:地址|端口|时区|负责人|分支|格式|货币|语言|颜色|名称|名字|期限|日期|时间|版本|办公室|总部|地区|区域|主题|编码)(?:是|为|在))$"
)
_ZH_MEASURED = re.compile(
    r"是|为|最多|至少|至多|不超过|默认|超时|等待|每|保留|过期|到期|到账|限制|上限|价格|费用|端口|设|完成|生效|失效|关闭|删除"
)
_ZH_NAMING = re.compile(r"(?:第|版本|步骤|错误码?|房间|号|编号)$")
_ZH_WEEKDAY = re.compile(r"(?:是|截止|定在|改到|安排)[^，。]{0,6}(?:周|星期)$")


def values_differ(a: str, b: str) -> bool:
    """Whether two objects are different values: neither is the other in more words ("Paris", "Paris, France")."""
    first, second = statement(a), statement(b)
    one, other = set(first.words), set(second.words)
    if not one or not other:
        return a.strip().casefold() != b.strip().casefold()
    return first.denied != second.denied or not (one <= other or other <= one)


def may_have_many(predicate: str, a: str, b: str) -> bool:
    """Whether a subject may well stand in this relation to both objects at once."""
    words = {stem(word) for word in re.findall(r"[a-z]+", predicate.lower())}
    if words & _MANY and not words & _ATTRIBUTES or _ZH_MANY.search(predicate):
        return True
    if predicate.strip().lower() not in _COPULA:
        return False
    # "X is fast", "X is red": only values of one kind exclude each other.
    first, second = statement(a).words, statement(b).words
    both_numbers = any(map(is_number, first)) and any(map(is_number, second))
    return not both_numbers and not are_opposites(first, second, ("x", "x", "x"))


def says_one_value(
    before: tuple[str, ...],
    left: tuple[str, ...],
    right: tuple[str, ...],
    after: tuple[str, ...],
    spoken: tuple[str, ...],
) -> bool:
    """Whether `left` and `right`, in the same place of one sentence, are two values of one attribute.

    `before` and `after` are the stems around the place; `spoken` the whole first sentence, word by word, for the
    small words that stems leave out.
    """
    if not before or _names_a_thing(before, left, right, spoken):
        return False
    if any(not word.isascii() for word in before):
        return _zh_value("".join(before), left, right, "".join(after))
    if _numbers(left) and _numbers(right) or _days(left, right):
        return bool(set(before) & (_VERBS | _ATTRIBUTES) or set(spoken) & {"is", "are", "was", "to", "at", "="})
    if len(left) > 2 or len(right) > 2 or any(map(is_number, (*left, *right))):
        return False
    ends_there = len(after) <= 2
    copula = bool(set(spoken) & {"is", "are", "was", "=", "to"})
    return ends_there and bool(set(before) & _SETTLES or (set(before) & _ATTRIBUTES and copula))


def _numbers(words: tuple[str, ...]) -> bool:
    return all(map(is_number, words))


def _days(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    return len(left) == len(right) == 1 and left[0] in _DAYS and right[0] in _DAYS


def _names_a_thing(
    before: tuple[str, ...], left: tuple[str, ...], right: tuple[str, ...], spoken: tuple[str, ...]
) -> bool:
    """Whether the place says which thing or when, so that two sentences speak of two things."""
    head = _spoken_before(left, spoken)
    bare = all(is_number(words[0]) and words[0][0] != "#" for words in (left, right))
    # "cabinet 3", "step 2", "Python 3.11"; but "port 5432", "is 5", "takes 5 days"
    if bare and head not in _LEADS_TO_NUMBER and stem(head) not in (_ATTRIBUTES | _VERBS) - _NAMING:
        return head.isascii()
    if all(_YEAR.match(words[-1]) for words in (left, right)):
        return True
    if head not in _QUALIFYING:
        return False
    # "lasts for 30 minutes", "on port 8000", "on Tuesdays" are values; "for v2", "in 2023", "on Linux" are not.
    timed = all(_TIME_OR_SIZE.search(words[-1]) for words in (left, right))
    verb = bool(set(before) & _SETTLES)
    return not (timed or _days(left, right) or (verb and head in {"in", "on", "by"}))


def _spoken_before(words: tuple[str, ...], spoken: tuple[str, ...]) -> str:
    places = [i for i, word in enumerate(spoken) if stem(word) == words[0]]
    return spoken[places[-1] - 1] if places and places[-1] > 0 else ""


def _zh_value(before: str, left: tuple[str, ...], right: tuple[str, ...], after: str) -> bool:
    if _numbers(left) and _numbers(right):
        return bool(_ZH_MEASURED.search(before + after)) and not _ZH_NAMING.search(before)
    if all(len(words) == 1 and words[0] in "一二三四五六日" for words in (left, right)):
        return bool(_ZH_WEEKDAY.search(before))
    if any(map(is_number, (*left, *right))) or len(after) > 2 or len(left) > 6 or len(right) > 6:
        return False
    return bool(_ZH_NAMED_AFTER.search(before))
