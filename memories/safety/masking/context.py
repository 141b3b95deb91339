"""What stands around a number: the folded text, and the nearest word that says what the number is."""

from __future__ import annotations

import re
from enum import StrEnum

from .spans import PLACEHOLDER

# Full-width forms and typographic spaces and dashes, each to the one ASCII character it stands for, so that
# every offset in the folded text is an offset in the original.
_FOLD = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FOLD.update(dict.fromkeys((0x00A0, 0x2002, 0x2003, 0x2007, 0x2009, 0x202F, 0x3000), 0x20))
_FOLD.update(dict.fromkeys((*range(0x2010, 0x2016), 0x2212), 0x2D))
_FOLDABLE = re.compile("[" + "".join(re.escape(chr(code)) for code in _FOLD) + "]")

_WINDOW = 48  # characters of context before a number


class Cue(StrEnum):
    """What the words before a number announce."""

    PHONE = "phone"  # a label: "Phone:", "手机"
    CALL = "call"  # a sentence that leads to a phone number: "call me at"
    CARD = "card"
    ID_CARD = "id_card"
    VERSION = "version"
    CODE = "code"  # some other identifier: an order, a batch, a job


def _table(**words: str) -> dict[str, Cue]:
    return {word: Cue(cue) for cue, listed in words.items() for word in listed.split()}


_WORDS = _table(
    phone="phone phones telephone mobile cell cellphone cellular tel telefon telefono teléfono fax whatsapp"
    " msisdn handy handynummer landline",
    call="call calling called ring text dial reach contact sms message messages otp",
    card="card cards visa mastercard amex",
    id_card="ssn social",
    version="version versions ver release build firmware",
    code="order orders batch job invoice ticket serial isbn imei commit sku tracking timestamp transaction"
    " case part uuid guid issue shipment",
)
# Words that may follow a `call` word and still lead to a phone number: "call me at", "messages to".
_LEADS_ON = frozenset(("me", "us", "him", "her", "them", "back", "at", "on", "to", "the", "my", "your", "our", "his"))
# These count only as the last word before the number: `id: 123`, `v 1.2`, `Desk: 555 0100`.
_LAST_ONLY = _table(code="id ids", version="v", phone="desk")
_PHRASES = _table(
    phone="电话 電話 手机 手機 座机 座機 传真 联系方式 聯絡 携帯 전화 휴대폰",
    call="致电 拨打 联系 短信",
    card="银行卡 卡号 信用卡 储蓄卡 借记卡 账号 帐号 账户 张卡 張卡 行卡",
    id_card="身份证 身份證 证件 證件 公民身份",
    version="版本",
    code="订单 单号 批次 编号 流水 时间戳 序列 运单 工单 坐标 单据",
)
_CARD_LABEL = re.compile(
    r"(?:\bcard(?:\s?(?:number|no\.?|num|\#))?|(?:银行|行|信用|储蓄|储值|借记|贷记|工资|银联|张)卡|卡号|卡號)"
    r"(?:的?(?:号码|账号|卡号|号))?\s?(?:is|是|为|為)?\s?[:=]?\s?\Z",
    re.IGNORECASE,
)
_WORD = re.compile(r"i(?:Phone|Pad)|[A-Z]?[a-zé]+|[A-Z]+(?![a-z])")


def fold(text: str) -> str:
    """The text with full-width and typographic characters as ASCII; the same length, the same offsets."""
    if text.isascii() or not _FOLDABLE.search(text):
        return text
    return text.translate(_FOLD)


def cue_before(text: str, start: int) -> Cue | None:
    """The nearest telling word in the 48 characters before `start`, in the same paragraph."""
    before = text[max(0, start - _WINDOW) : start].rpartition("\n\n")[2]
    if "<" in before:
        before = PLACEHOLDER.sub("", before)
    place, cue = _nearest_word(before)
    if not before.isascii():
        for phrase, phrase_cue in _PHRASES.items():
            found = before.rfind(phrase)
            if found > place:
                place, cue = found, phrase_cue
    return cue


def called_a_card(text: str, start: int) -> bool:
    """Whether the words right before `start` say that a bank card's number follows: "card no. ", "卡号是"."""
    return _CARD_LABEL.search(text[max(0, start - _WINDOW) : start]) is not None


def _nearest_word(before: str) -> tuple[int, Cue | None]:
    following = None
    for found in reversed(list(_WORD.finditer(before))):
        word = found[0].lower()
        cue = _WORDS.get(word) or (_LAST_ONLY.get(word) if following is None else None)
        if cue is Cue.CALL and (following not in (None, *_LEADS_ON) or "\n" in before[found.end() :]):
            cue = None
        if cue:
            return found.start(), cue
        following = word
    return -1, None


def inside_code(text: str, start: int, end: int) -> bool:
    """Whether the characters around a number make it a piece of a longer code, name or decimal."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before and (_is_word(before[-1]) or (before[-1] in "-./" and _is_word(before[0]) and len(before) == 2)):
        return True
    return bool(after) and (_is_word(after[0]) or (after[0] in "-." and len(after) == 2 and after[1].isdigit()))


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())
