"""A sentence taken apart, so that two can be laid beside each other: condition, polarity, words in order. Pure.

English and Chinese. Made for one question only, whether two sentences say the same but for one thing; it
understands nothing else of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|unless|while|once|until|in case|as long as|provided)\b[^,;:，]*"
    r"|(?:如果|若|假如|一旦|只要|除非|每当|当)[^，,；]*|在?[^，,；]{1,20}(?:时候?|的情况下|期间)(?=[，,])",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"[,;(—–-]*\s*\b(?:because|since it|since they|as it|so that|otherwise|or else|in order to|to avoid)\b.*$"
    r"|[，,（]?(?:因为|由于|否则|以免|以防|从而|这样).*$",
    re.IGNORECASE,
)
_NOT_ONLY = re.compile(
    r"\bnot (?:only|just|merely)\b|\bno (?:later|more|less|fewer) than\b|\bno matter\b", re.IGNORECASE
)
_CONTRACTION = re.compile(r"\b(ca|wo|do|does|did|is|are|was|were|should|must|could|would|has|have|had)n[’']t\b", re.I)
_NEGATION_WORDS = """
not never no cannot avoid avoids avoided avoiding without stop stops refuse refuses forbidden prohibited
unable nobody nothing neither nor stopping refusing
"""
_NEGATION = frozenset(_NEGATION_WORDS.split())
_NO_LONGER = re.compile(r"\bno longer\b|\bnot any ?more\b", re.IGNORECASE)
_ZH_NEGATION = re.compile(
    r"绝不要|千万不要|千万别|绝对不要|不要|不能|不可以|不可|不会|不应该|不应|不该|不得|不再|不需要|不用|不必|不允许"
    r"|从不|绝不|并不|没有|无法|无需"
    r"|请勿|切勿|严禁|禁止|避免|切忌|不|没|未|勿|别|无"
)
_ZH_AFFIRMED = re.compile(
    r"不仅|不但|不只|不光|不过|不断|不同|不管|不论|无论|不妨|差不多|不错|特别|区别|别人|别的|分别|级别|类别|性别|识别|别名"
    r"|个别|除非|未来|未必|无线|是否|能否|可否|不得不|不久|不少|不等|无数|无限"
)
_ZH_FILLER = re.compile(r"应该|必须|务必|可以|能够|允许|需要|一定要?|总是|始终|永远|请|会|要|应|能|都|的|了|有|该")
_FILLER_WORDS = """
the a an this that these those your my our its their please always ever do does did be is are was were been
being can could should shall must will would may might has have had it you we they to for any just simply
really so then of also still ought need needs
"""
_FILLER = frozenset(_FILLER_WORDS.split())
_TOKEN = re.compile(
    r"`[^`\n]+`|https?://\S+|\d{4}-\d{2}(?:-\d{2})?|v?\d+(?:\.\d+){2,}|[-−]?\d+(?:,\d{3})*(?:\.\d+)?\s?%?"
    r"|[A-Za-z][\w'-]*|[\u3400-\u9fff]|[=><]",
    re.ASCII,
)
_TOKEN_OR_QUANTITY = re.compile(r"#[\d.e+]+[sb]|" + _TOKEN.pattern, re.ASCII)  # the latter as `_as_base` writes it
_PLAIN_NUMBER = re.compile(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?\s?%?")
_UNITS = {
    "ms": ("s", 0.001), "millisecond": ("s", 0.001), "milliseconds": ("s", 0.001), "毫秒": ("s", 0.001),
    "s": ("s", 1), "sec": ("s", 1), "second": ("s", 1), "seconds": ("s", 1), "秒": ("s", 1), "秒钟": ("s", 1),
    "min": ("s", 60), "minute": ("s", 60), "minutes": ("s", 60), "分钟": ("s", 60),
    "h": ("s", 3600), "hour": ("s", 3600), "hours": ("s", 3600), "小时": ("s", 3600),
    "day": ("s", 86400), "days": ("s", 86400), "天": ("s", 86400), "日": ("s", 86400),
    "week": ("s", 604800), "weeks": ("s", 604800), "周": ("s", 604800),
    "kb": ("b", 1e3), "mb": ("b", 1e6), "gb": ("b", 1e9), "tb": ("b", 1e12),
}  # fmt: skip
_QUANTITY = re.compile(
    r"(?<![A-Za-z0-9_.-])(\d+(?:,\d{3})*(?:\.\d+)?)[\s-]?("
    + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
    + r")(?![A-Za-z])",
    re.IGNORECASE,
)
_TWO_TO_TWELVE = "two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_TWO_TO_TWELVE.split(), start=2)}
_NUMBER_WORDS |= {"once": "1", "twice": "2"}
_ZH_DIGITS = {char: str(value) for value, char in enumerate("零一二三四五六七八九十")} | {"两": "2"}
_ZH_COUNT = re.compile(r"([一二三四五六七八九十两])(?=[个次天周月年日秒分小条项步人张份元层楼倍行页])")


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence. `words` are its telling words in order, stemmed; without negations, which `denied` counts."""

    words: tuple[str, ...]
    spoken: tuple[str, ...]  # every word of the main part in order, unstemmed, fillers too
    condition: tuple[str, ...]
    denied: bool


def sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences; lines and semicolons end one too."""
    return [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]


@lru_cache(maxsize=8192)
def statement(sentence: str) -> Statement:
    """Take one sentence apart."""
    plain = sentence.replace("’", "'").strip().rstrip(".!。！；;")
    conditions = " ".join(match.group() for match in _CONDITION.finditer(plain))
    main = _REASON.sub("", _CONDITION.sub(" ", plain))
    denied, bare = _without_negation(main)
    in_condition, _ = _without_negation(conditions)
    return Statement(
        words=_words(bare),
        spoken=tuple(_tokens(main)),
        condition=(*_words(conditions), *(("not",) if in_condition else ())),
        denied=denied,
    )


def is_number(token: str) -> bool:
    """Whether a token is a number or a quantity."""
    return token[:1].isdigit() or token[:1] in "-−#"


def _without_negation(text: str) -> tuple[bool, str]:
    """Whether a text denies (an odd number of times), and the text without the words that do."""
    text = _CONTRACTION.sub(lambda m: f"{m.group(1)} not", _NO_LONGER.sub("not", _NOT_ONLY.sub(" ", text)))
    words = re.split(r"(\W+)", text)
    kept = [word for word in words if word.lower() not in _NEGATION]
    count = len(words) - len(kept)
    affirmed: list[str] = []

    def keep(match: re.Match[str]) -> str:
        affirmed.append(match.group())
        return f"\ue000{len(affirmed) - 1}\ue001"

    bare = _ZH_AFFIRMED.sub(keep, "".join(kept))
    bare, zh = _ZH_NEGATION.subn("", bare)
    bare = re.sub(r"\ue000(\d+)\ue001", lambda match: affirmed[int(match.group(1))], bare)
    return (count + zh) % 2 == 1, bare


def _words(text: str) -> tuple[str, ...]:
    bare = _ZH_FILLER.sub("", text)
    return tuple(stem(token) for token in _tokens(bare) if token not in _FILLER)


def _tokens(text: str) -> list[str]:
    marked = _QUANTITY.sub(_as_base, _ZH_COUNT.sub(lambda m: _ZH_DIGITS[m.group(1)], text))
    found = _TOKEN_OR_QUANTITY.findall(marked)
    return [_normal(token) for token in found]


def _as_base(match: re.Match[str]) -> str:
    base, factor = _UNITS[match.group(2).lower()]
    return f" #{float(match.group(1).replace(',', '')) * factor:g}{base} "


def _normal(token: str) -> str:
    if token.startswith("`"):
        return token.strip("` ")
    lower = token.lower().rstrip("'-")
    if lower in _NUMBER_WORDS:
        return _NUMBER_WORDS[lower]
    if _PLAIN_NUMBER.fullmatch(lower):
        digits = lower.rstrip("% ").replace(",", "").replace("−", "-")
        return f"{float(digits):g}" + ("%" if "%" in lower else "")
    return lower


def stem(word: str) -> str:
    """Bring an English word near its root, just so that its forms are equal: using, used, uses → us."""
    if not word.isascii() or not word.isalpha() or len(word) < 3:
        return word
    for suffix, least in (("ies", 3), ("ing", 2), ("ed", 2), ("es", 2), ("s", 3)):
        if word.endswith(suffix) and len(word) - len(suffix) >= least and not word.endswith("ss"):
            word = word[: -len(suffix)] + ("y" if suffix == "ies" else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]
    return word.rstrip("e") if len(word) > 2 else word
