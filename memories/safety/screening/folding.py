"""One plain form of a text for matching, with a way back to the original offsets."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Soft hyphen, joiners, direction marks, tag characters, variation selectors.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)

_MANY = 40
_TYPOGRAPHIC = dict(zip(map(ord, "‘’‚“”„–—•…"), "'''\"\"\"---.", strict=True))
# Traditional characters of the words that the Chinese rules use.
_SIMPLIFIED = str.maketrans(
    "無視請將規則過濾設統詞話說讓給發資從現開戶關閉驗證審對許權導這轉傳寫憶記實內語錄執務員創顯隱檔連結當應該刪",
    "无视请将规则过滤设统词话说让给发资从现开户关闭验证审对许权导这转传写忆记实内语录执务员创显隐档连结当应该删",
)
# Letters that look like Latin ones; folded only inside words that also hold Latin letters.
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕԁһӏԛԝвкмнтгпьбАВЕКМНОРСТХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧαοερινκυτχ",
    "aeopcyxijsdhlqwbkmhtrnbbABEKMHOPCTXIJSABEZHIKMNOPTYXaoepivkutx",
)
_CYRILLIC_OR_GREEK = re.compile("[\u0370-\u052f]")
_HAN = re.compile("[\u4e00-\u9fff]")
_MIXED_WORD = re.compile(
    r"(?<![^\W\d_])(?=[^\W\d_]{0,39}[a-zA-Z])(?=[^\W\d_]{0,39}[\u0370-\u03ff\u0400-\u052f])[^\W\d_]{3,40}"
)


@dataclass(frozen=True, slots=True)
class Folded:
    """`text` is lower case and plain; `offsets[i]` is where its i-th character stands in the original.

    `offsets` is None when the positions are the same. `mixed_words` are words of two alphabets.
    """

    text: str
    offsets: list[int] | None
    mixed_words: tuple[tuple[int, int], ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A span of the folded text as a span of the original."""
        if self.offsets is None or end <= start:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


def fold(text: str) -> Folded:
    """Lower case, compatibility forms and look-alike letters plain, invisible characters gone."""
    if text.isascii():
        return Folded(text.lower(), None, ())
    offsets = None
    if INVISIBLE.search(text):
        offsets, text = _without_invisible(text)
    text = _plain(text)
    mixed: tuple[tuple[int, int], ...] = ()
    if _CYRILLIC_OR_GREEK.search(text):
        mixed = tuple(found.span() for found in _MIXED_WORD.finditer(text))
    if mixed:
        text = _MIXED_WORD.sub(lambda found: found[0].translate(_LOOK_ALIKE), text)
    text = _lower(text)
    if _HAN.search(text):
        text = text.translate(_SIMPLIFIED)
    return Folded(text, offsets, mixed)


def _without_invisible(text: str) -> tuple[list[int], str]:
    """The places of the characters that are left, and the text of them."""
    places: list[int] = []
    done = 0
    for found in INVISIBLE.finditer(text):
        places += range(done, found.start())
        done = found.end()
    places += range(done, len(text))
    return places, INVISIBLE.sub("", text)


def _plain(text: str) -> str:
    """Typographic signs, and compatibility characters that stand for exactly one other, as that one."""
    table: dict[int, str] = {}
    for char in set(text):
        if ord(char) in _TYPOGRAPHIC:
            table[ord(char)] = _TYPOGRAPHIC[ord(char)]
        elif ord(char) > 0x2000:
            plain = unicodedata.normalize("NFKC", char)
            if len(plain) == 1 and plain != char:
                table[ord(char)] = plain
    if len(table) > _MANY:
        return text.translate(table)
    for code, plain in table.items():  # much quicker than translate for a few
        text = text.replace(chr(code), plain)
    return text


def _lower(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
