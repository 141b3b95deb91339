"""Signals that are no phrases: invisible characters, mixed alphabets, hidden markup, repetition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from operator import eq

from .folding import INVISIBLE, Folded

_ZERO_WIDTH = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
# Joiners are part of the spelling in these scripts and in emoji.
_USES_JOINERS = re.compile("[\u0600-\u06ff\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\U0001f000-\U0001faff\u2600-\u27bf]")
_BIDI = re.compile("[\u202d\u202e\u2066-\u2068]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_TAGS = re.compile("[\U000e0020-\U000e007f]{8,}")  # the flags of regions need at most seven
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_HIDING_STYLE = re.compile(
    r"style\s*=\s*['\"][^'\">]{0,160}?(?:font-size\s*:\s*[01](?:\.\d+)?(?:px|pt|em)?\b|color\s*:\s*(?:#fff(?:fff)?\b|white\b|transparent)|display\s*:\s*none"
    r"|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0\d*)?\b)",
    re.IGNORECASE,
)
_MOST_COMMENTS, _LONGEST_COMMENT = 24, 600
_SENTENCE_WORDS = 8  # a remark about code is shorter
_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile(r"\S+")
_LEAST_REPEATS = 8
_ANSWER = re.compile(r"\bA\s?[:：]")
_QUESTION = re.compile(r"(?:^|\s)Q\s?[:：]")


def structure_signals(text: str, folded: Folded) -> Iterator[tuple[str, int, int]]:
    """Name, start and end, in the original text."""
    if not text.isascii():
        if INVISIBLE.search(text):
            yield from _invisible(text)
        if len(folded.mixed_words) >= 2:
            yield "mixed_scripts", *folded.span(*folded.mixed_words[0])
    yield from _comments(text)
    if "style" in text:
        yield from (("hiding_style", *found.span()) for found in _HIDING_STYLE.finditer(text))
    yield from _repetition(text)
    yield from _question_list(text)


def _comments(text: str) -> Iterator[tuple[str, int, int]]:
    """HTML comments that hold a sentence rather than a remark about code."""
    start = text.find("<!--")
    for _ in range(_MOST_COMMENTS):
        if start < 0:
            return
        end = text.find("-->", start, start + _LONGEST_COMMENT)
        end = end if end >= 0 else min(len(text), start + _LONGEST_COMMENT)
        inside = text[start + 4 : end]
        if len(inside.split()) >= _SENTENCE_WORDS or len(_HAN.findall(inside)) >= _SENTENCE_WORDS:
            yield "html_comment", start, end
        start = text.find("<!--", end)


def _invisible(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _TAGS.finditer(text):
        yield "tag_characters", *found.span()
    for found in _SELECTORS.finditer(text):
        yield "variation_selectors", *found.span()
    bidi = _BIDI.search(text)
    if bidi and not _RIGHT_TO_LEFT.search(text):
        yield "bidi_override", *bidi.span()
    inside = [
        found.start()
        for found in _ZERO_WIDTH.finditer(text)
        if text[found.start() - 1 : found.start()].isalnum() and text[found.end() : found.end() + 1].isalnum()
    ]
    if len(inside) >= 3 and not _USES_JOINERS.search(text):
        yield "zero_width", inside[0], inside[-1] + 1


def _repetition(text: str) -> Iterator[tuple[str, int, int]]:
    """One to three words said eight times and more in a row."""
    words = text.casefold().split()
    for period in (1, 2, 3):
        if sum(map(eq, words[period:], words)) < _LEAST_REPEATS * period:
            continue
        run = 0
        for place, (word, before) in enumerate(zip(words[period:], words, strict=False)):
            run = run + 1 if word == before else 0
            if run == _LEAST_REPEATS * period and word.isalnum():
                said = [found.span() for found in islice(_WORD.finditer(text), place + period + 1)]
                yield "repetition", said[place + period - run][0], said[-1][1]
                return


def _question_list(text: str) -> Iterator[tuple[str, int, int]]:
    """Question-and-answer pairs that end in an unanswered question: the shape of a few-shot prompt."""
    if "Q" not in text:
        return
    questions = list(_QUESTION.finditer(text))
    if len(questions) < 2 or not _ANSWER.search(text, questions[0].end(), questions[-1].start()):
        return
    if not _ANSWER.search(text, questions[-1].end()):
        yield "open_question_list", questions[-1].start(), len(text)
