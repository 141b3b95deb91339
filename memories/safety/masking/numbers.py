"""Finds phone numbers, ID cards and bank cards among the runs of digits of a text.

One pass finds every run of digits with the separators people write inside numbers; each run is then judged by
shape, check digit and the nearest telling word before it. Anything not convincing stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import checksums, phones
from .context import Cue, called_a_card, cue_before, inside_code
from .spans import Span, SpanType

_RUN = re.compile(r"[+(]{0,2}\d(?:[ .()/-]{0,3}\d)+(?:,?\s?(?:x|[Ee]xt\.?|转|轉|#)\s?\d{1,6}(?!\w))?[Xx]?", re.ASCII)
_FEWEST_DIGITS = 7

_CN_ID = re.compile(r"(?<!\d)(\d{6})[ -]?(\d{8})[ -]?(\d{3}[\dXx])(?!\w)", re.ASCII)
_CN_ID_OLD = re.compile(r"(?<!\d)\d{15}(?!\w)", re.ASCII)
_SSN = re.compile(r"(?<![\d-])(\d{3})([- ]?)(\d{2})\2(\d{4})(?![-.]?\w)", re.ASCII)
_CARD = re.compile(
    r"""(?<![\d-])(?:
        \d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?   # 4-4-4-4, and up to 19 digits
      | \d{4}([ -])\d{6}\2\d{4,5}                       # American Express, Diners Club
      | \d{6}([ -])\d{10,13}                            # UnionPay as some banks print it
      | \d{12,19}
    )(?!\w)(?!-\d)""",
    re.ASCII | re.VERBOSE,
)
# Issuer prefixes with the lengths that the brand really issues (ISO/IEC 7812, the brands' own ranges).
_BRANDS = re.compile(
    r"""4\d{15}(?:\d{3})?                                              # Visa
      | (?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}  # Mastercard
      | 3[47]\d{13}                                                     # American Express
      | (?:6011|65\d\d|64[4-9]\d)\d{12}                                 # Discover
      | 35(?:2[89]|[3-8]\d)\d{12}                                       # JCB
      | 62\d{14,17}                                                     # UnionPay
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"\D+")


def find_numbers(text: str) -> Iterator[Span]:
    """Phone numbers, ID cards and bank cards in a folded text; the finds may overlap."""
    for run in _RUN.finditer(text):
        digits = _DIGITS.sub("", run[0])
        if len(digits) < _FEWEST_DIGITS:
            continue
        start, end = run.span()
        yield from _id_cards(text, start, end)
        yield from _bank_cards(text, start, end)
        yield from phones.find_in_run(text, start, end)


def _id_cards(text: str, start: int, end: int) -> Iterator[Span]:
    for found in _CN_ID.finditer(text, start, end):
        if checksums.cn_resident_id("".join(found.groups())) and not inside_code(text, *found.span()):
            yield Span(*found.span(), SpanType.ID_CARD, found[0])
    for found in _CN_ID_OLD.finditer(text, start, end):
        if checksums.cn_resident_id_old(found[0]) and cue_before(text, found.start()) is Cue.ID_CARD:
            yield Span(*found.span(), SpanType.ID_CARD, found[0])
    for found in _SSN.finditer(text, start, end):
        if not checksums.us_ssn(found[1] + found[3] + found[4]) or inside_code(text, *found.span()):
            continue
        # Without hyphens nine digits are just nine digits, unless something says what they are.
        if found[2] == "-" or cue_before(text, found.start()) is Cue.ID_CARD:
            yield Span(*found.span(), SpanType.ID_CARD, found[0])


def _bank_cards(text: str, start: int, end: int) -> Iterator[Span]:
    for found in _CARD.finditer(text, start, end):
        digits = _DIGITS.sub("", found[0])
        if inside_code(text, *found.span()):
            continue
        if not checksums.luhn(digits):
            # Mistyped, it still tells whose it is, but only a label right before it can say that it is one.
            if _BRANDS.fullmatch(digits) and called_a_card(text, found.start()):
                yield Span(*found.span(), SpanType.BANK_CARD, found[0])
            continue
        cue = cue_before(text, found.start())
        if cue is Cue.CARD or (cue is not Cue.CODE and _BRANDS.fullmatch(digits)):
            yield Span(*found.span(), SpanType.BANK_CARD, found[0])
