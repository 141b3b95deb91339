"""Whether two texts state the same conclusion: a guard beside their closeness as vectors.

Vectors do not tell "port 8000" from "port 9000", or "do" from "do not". Two close texts may only be
taken for one when no number, negation, identifier, name or opposite stands in one and not in the other.
The guard never says that two texts mean the same; it says that nothing hard keeps them apart.
"""

from __future__ import annotations

import re
from collections import Counter

_CODE = re.compile(r"`([^`\n]+)`")
_PLACEHOLDER = re.compile(r"<[A-Za-z_][\w-]*>")
_ADDRESS = re.compile(r"https?://[^\s，。；、）)]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# A path or dotted name, snake_case, camelCase, a word with digits in it, capitals, a --flag.
_IDENTIFIER = re.compile(
    r"(?<![\w/.])(?:--?[A-Za-z][\w-]*|(?:\.{0,2}/)?[A-Za-z_][\w-]*(?:[/.\\:][\w-]+)+/?|/[\w.-]+(?:/[\w.-]+)*"
    r"|[A-Za-z]+_\w+|_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}s?"
    r"|(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]+)(?![\w/])",
    re.ASCII,
)
_VERSION = re.compile(r"(?<![\w.])v?\d+(?:\.\d+){2,}(?![\w])", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"(?<![A-Za-z_\d.])[-−]?\d+(?:[,，]\d{3})*(?:\.\d+)?(?:\s*%)?(?![A-Za-z_]*\d)")
_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_TO_TWENTY.split())} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "ninety": "90",
    "hundred": "100",
    "once": "1",
    "twice": "2",
}
_ZH_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_ZH_UNITS = {"十": 10, "百": 100, "千": 1000}
_ZH_NUMBER = re.compile(
    r"(?:第)?([零〇一二两三四五六七八九十百千]+)(?=[个次天周月年日时分秒条件项步人张份元块楼层号倍行列页小种台位岁点遍轮]"
    r"|万|亿|$)"
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|without|neither|nor|cannot|unable|avoid(?:s|ed"
    r"|ing)?|refus(?:e|es|ed|ing)"
    r"|except|unless|stop(?:s|ped)?|forbid(?:s|den)?|prohibit(?:s|ed)?)\b|\b\w+n[’']t\b"
    r"|\b(?:dont|doesnt|cant|wont|isnt)\b",
    re.IGNORECASE,
)
_NOT_ONLY = re.compile(
    r"\bnot (?:only|just|merely)\b|\bno (?:longer than|later than|more than|less than"
    r"|matter)\b",
    re.IGNORECASE,
)
_ZH_NEGATION = re.compile(r"不|没|无|未|勿|别|非|禁止|避免|拒绝|切忌|毋|免")
# Words that hold such a character without denying anything.
_ZH_AFFIRMED = re.compile(
    r"不仅|不但|不只|不光|不过|不断|不同|不管|不论|无论|不妨|差不多|不错|非常|特别|区别|别人"
    r"|别的|分别|级别|类别|性别|识别|别名|个别|辨别"
    r"|除非|并非|未来|未必|无线|无比|没关系|是否|能否|可否|免费|非洲|不得不|不久|不少|不等"
    r"|无数|无限|对不起|不好意思"
)
# Words of which one text must not have one where the other has its opposite.
_OPPOSITES = """
before/after enable/disable enabled/disabled allow/deny allowed/denied on/off open/close
increase/decrease raise/lower add/remove first/last minimum/maximum min/max above/below always/never
required/optional true/false yes/no like/dislike likes/dislikes love/hate success/failure succeeds/fails
succeed/fail works/fails accept/reject accepts/rejects include/exclude include/omit public/private
morning/evening window/aisle light/dark left/right up/down start/end start/stop sync/async tabs/spaces
metric/imperial ascending/descending asc/desc upper/lower uppercase/lowercase more/less fewer/more
greater/smaller older/newer oldest/newest cheapest/dearest tea/coffee email/phone cash/card
upgrade/downgrade encrypt/decrypt push/pull read/write internal/external local/remote manual/automatic
fast/slow early/late with/without all/none valid/invalid safe/unsafe possible/impossible
available/unavailable supported/unsupported stable/unstable
"""
_ZH_OPPOSITES = """
之前/之后 以前/以后 启用/禁用 开启/关闭 打开/关闭 允许/禁止 增加/减少 提高/降低 添加/删除 先/后
最大/最小 最多/最少 至多/至少 总是/从不 喜欢/讨厌 成功/失败 接受/拒绝 包含/排除 公开/私有 早上/晚上
上午/下午 靠窗/靠过道 浅色/深色 左/右 升序/降序 大写/小写 大于/小于 高于/低于 升级/降级 加密/解密
内部/外部 本地/远程 手动/自动 必填/选填 必须/可以 有/无 茶/咖啡 邮件/电话 中文/英文 单人/双人 国内/国际
可用/不可用 安全/危险 升高/下降 上升/下降 快/慢 早/晚 多/少 新/旧 甜/辣 热/冷
"""
_NAME = re.compile(r"(?<![\w'’])[A-Z][a-zà-ÿ]{2,}(?![\w])")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;。！？：；“\"(（]\s*|\n\s*(?:[-*]\s*)?)$")
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?")


def same_conclusion(a: str, b: str) -> bool:
    """Return whether nothing hard keeps two texts apart (see the module's text). Symmetric."""
    first, second = _plain(a), _plain(b)
    if first == second:
        return True
    return (
        _identifiers(first) == _identifiers(second)
        and _numbers(first) == _numbers(second)
        and _denials(first) == _denials(second)
        and not _opposed(first, second)
        and not _names_differ(first, second)
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").split()).rstrip(".。!！ ")


def _identifiers(text: str) -> set[str]:
    """Return what names one exact thing: code, placeholders, addresses, paths, names with odd letters."""
    found = {match.strip() for match in _CODE.findall(text)}
    bare = _CODE.sub(" ", text)
    for pattern in (_PLACEHOLDER, _ADDRESS, _VERSION, _IDENTIFIER):
        found.update(match.rstrip(".,;:/") for match in pattern.findall(bare))
        bare = pattern.sub(" ", bare)
    # `code` in one text and the bare word in the other are the same thing.
    return {name for name in found if not (name.isalpha() and (name.islower() or name.istitle()))}


def _numbers(text: str) -> Counter[str]:
    """Return the numbers of a text, words included, each in one form."""
    bare = text
    for pattern in (_PLACEHOLDER, _ADDRESS, _VERSION, _IDENTIFIER):
        bare = pattern.sub(" ", bare)
    found = Counter(_normal_number(match) for match in _NUMBER.findall(bare))
    found.update(_NUMBER_WORDS[word] for word in _WORD.findall(bare.lower()) if word in _NUMBER_WORDS and word != "one")
    found.update(str(_zh_value(match)) for match in _ZH_NUMBER.findall(bare) if match not in ("一", "百", "千", "十"))
    return found


def _normal_number(text: str) -> str:
    percent = "%" if text.endswith("%") else ""
    digits = text.rstrip("% ").replace(",", "").replace("，", "").replace("−", "-")
    return (f"{float(digits):g}" if "." in digits else str(int(digits))) + percent


def _zh_value(text: str) -> int:
    """Return the value of a Chinese numeral below ten thousand."""
    if not any(char in _ZH_UNITS for char in text):
        return int("".join(str(_ZH_DIGITS[char]) for char in text))
    total = digit = 0
    for char in text:
        if char in _ZH_UNITS:
            total += (digit or 1) * _ZH_UNITS[char]
            digit = 0
        else:
            digit = _ZH_DIGITS[char]
    return total + digit


def _denials(text: str) -> int:
    """Return how often a text denies something."""
    english = len(_NEGATION.findall(_NOT_ONLY.sub(" ", text)))
    return english + len(_ZH_NEGATION.findall(_ZH_AFFIRMED.sub("", text)))


def _opposed(a: str, b: str) -> bool:
    """Return whether one text has a word where the other has its opposite."""
    first, second = set(_WORD.findall(a.lower())), set(_WORD.findall(b.lower()))
    for pair in _OPPOSITES.split():
        one, other = pair.split("/")
        if _swapped(one in first, other in first, one in second, other in second):
            return True
    for pair in _ZH_OPPOSITES.split():
        one, other = pair.split("/")
        if _swapped(*((word in text) for text in (a, b) for word in (one, other))):
            return True
    return False


def _swapped(one_in_a: bool, other_in_a: bool, one_in_b: bool, other_in_b: bool) -> bool:
    return (one_in_a, other_in_a) != (one_in_b, other_in_b) and (
        (one_in_a and not other_in_a and other_in_b and not one_in_b)
        or (other_in_a and not one_in_a and one_in_b and not other_in_b)
    )


def _names_differ(a: str, b: str) -> bool:
    """Return whether a proper name stands in one text and not, in any case, in the other.

    A capital at a sentence's start says little: such a word counts only when the rest of the two texts
    is the same ("Alice prefers tea", "Bob prefers tea").
    """
    if _inner_names(a) - _all_words(b) or _inner_names(b) - _all_words(a):
        return True
    first, second = _WORD.findall(a.lower()), _WORD.findall(b.lower())
    started_by_names = _NAME.match(a) is not None and _NAME.match(b) is not None
    return started_by_names and first[:1] != second[:1] and first[1:] == second[1:]


def _inner_names(text: str) -> set[str]:
    return {
        match.group().lower() for match in _NAME.finditer(text) if not _SENTENCE_START.search(text[: match.start()])
    }


def _all_words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-zÀ-ÿ]+", text)}
