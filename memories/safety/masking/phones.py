"""Which part of a run of digits is a phone number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .context import Cue, cue_before, inside_code
from .spans import Span, SpanType

_EXTENSION = r"(?:,?\s?(?:x|[Ee]xt\.?|转|轉|\#)\s?\d{1,6}(?!\w))?"

# Shapes that are a phone number by themselves.
_STRONG = re.compile(
    rf"""(?<!\d)(?:
        # Chinese mobile: 3-4-4, with or without the country
        (?:(?:\(?(?:\+|00)?86\)?[ -]?)? 1[3-9]\d [ -]? \d{{4}} [ -]? \d{{4}} )
        # Chinese landline: area code and seven or eight digits
      | (?:(?:\(?(?:\+|00)86\)?[ -]?)? \(?0(?:10|2\d|[3-9]\d\d)\)?[ -]? \d{{3,4}} [ -]? \d{{4}}
                         (?:-\d{{3,5}})? )
        # Anywhere in the world: plus, country, then groups
      | (?:\+ [1-9]\d{{0,2}} (?:[ .()/-]{{0,3}}\d){{7,12}} )
      | (?:00 [1-9]\d{{0,2}} [ .-] (?:[ .()/-]{{0,3}}\d){{7,12}} )
        # North America: 3-3-4
      | (?:(?:1[ .-])? (?: \(\d{{3}}\)[ .-]? \d{{3}}[ .-]\d{{4}}
                         | \d{{3}}(?P<dash>[.-])\d{{3}}(?P=dash)\d{{4}} ) )
        # France: five pairs; Japan and Korea: 0x0-4-4
      | (?:0[1-9](?P<gap>[ .])\d\d(?:(?P=gap)\d\d){{3}}(?!\ \d\d\b) )
      | (?:0\d{{1,3}}-\d{{3,4}}-\d{{4}} )
    ){_EXTENSION}(?!\w)(?![-.]\d)""",
    re.ASCII | re.VERBOSE,
)
_WEAK = re.compile(rf"\(?\d(?:[ .()/-]{{0,3}}\d){{6,14}}{_EXTENSION}(?!\w)(?![-.]\d)", re.ASCII | re.VERBOSE)
_NOT_PERSONAL = re.compile(r"400[ -]?\d{3,4}[ -]?\d{3,4}|800[ -]\d{3}[ -]\d{4}")  # Chinese service numbers
_SERVICE_WORDS = re.compile("热线|客服|服务电话|熱線")
_DATE = re.compile(
    r"(?:19|20)\d\d([-./ ])\d{1,2}\1\d{1,2}(?!\d)|\d{1,2}([-./])\d{1,2}\2(?:19|20)\d\d"
    r"|\d+\.\d+$"
)
_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_SEPARATED = re.compile(r"\d[ .()/-]+\d")


def find_in_run(text: str, start: int, end: int) -> Iterator[Span]:
    """Phone numbers in `text[start:end]`, a run of digits and separators found by the caller."""
    found_strong = False
    for found in _STRONG.finditer(text, start, end):
        if _convinces(text, found):
            found_strong = True
            yield Span(*found.span(), SpanType.PHONE, found[0])
    if not found_strong:
        yield from _by_context(text, start, end)


def _convinces(text: str, found: re.Match[str]) -> bool:
    cue = cue_before(text, found.start())
    announced = cue in (Cue.PHONE, Cue.CALL)
    if inside_code(text, *found.span()) and not (announced and _touches_label(text, found.start())):
        return False
    if _NOT_PERSONAL.match(found[0]) and (
        found[0][:3] == "400" or _SERVICE_WORDS.search(text, max(0, found.start() - 12), found.start())
    ):
        return False
    return announced or cue is not Cue.CODE


def _touches_label(text: str, start: int) -> bool:
    """Whether a label such as `Tel` or `phone-` stands directly before the number."""
    return re.search(r"(?:tel|phone|mobile|fax)[.:_-]?$", text[max(0, start - 8) : start], re.IGNORECASE) is not None


def _by_context(text: str, start: int, end: int) -> Iterator[Span]:
    """A run that only its context makes a phone number."""
    found = _WEAK.match(text, start, end)
    if not found or _DATE.match(found[0]) or inside_code(text, *found.span()):
        return
    if _NOT_PERSONAL.match(found[0]) or _ADDRESS.search(found[0]):
        return
    cue = cue_before(text, start)
    digits = sum(char.isdigit() for char in found[0])
    if cue is Cue.PHONE or (cue is Cue.CALL and (digits >= 10 or _SEPARATED.search(found[0]))):
        yield Span(*found.span(), SpanType.PHONE, found[0])
