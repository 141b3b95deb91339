"""Runs of word characters and joiners: what they are and which lexemes they give.

A run is what stands between spaces without its outer punctuation: `playing`, `utf-8-sig`,
`billing/views.py`, `getUserName`, `ERR_CONN_4031`, `https://example.org/a`. It is kept whole and taken
apart, so that a question finds it by the whole, by a tail of a path, or by a piece.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import snowballstemmer

from .stopwords import STOP_WORDS

Kind = Literal["identifier", "number", "word", "stem", "part", "bigram"]

MAX_LEXEME_CHARS = 200  # longer wholes are cut, on both sides alike, so that equal ones still meet
MAX_TAILS = 12  # tails of one path or dotted name

_STEMMER = snowballstemmer.stemmer("english")
_STEMMER_LOCK = threading.Lock()  # a stemmer keeps the word it works on in itself

_JOINERS = re.compile(r"(?:[-./:@\\+~_>]|://)+")
_STEPS = re.compile(r"://|::|->|[/\\.:@]")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")

_NUMBER = re.compile(
    r"[0-9]+(?:[./:-][0-9]+)?(?:[a-zA-Z]{1,2}|[0-9]{3}s)?"  # 42, 3.5, 9:30, 1/2, 10am, 2nd, 1990s
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}"
)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_COUNTED = re.compile(r"[0-9]+(?:-[A-Za-z]+)+")  # 4-year-old, 24-hour
_ABBREVIATION = re.compile(r"[A-Za-z](?:\.[A-Za-z])+")  # e.g, U.S
_DOTTED = re.compile(r"\w{2,}(?:\.[a-z0-9_]\w*)+")  # views.py, np.array; not "done.Then"
_CAMEL = re.compile(r"(?<![A-Za-z])[a-z]{2,}[A-Z]|[A-Z][a-z]+[A-Z][a-z]+[A-Z][a-z]+")  # getUser; not YouTube
_RAISED = re.compile(r"[A-Z][a-z]+(?:[A-Z]\w*)?(?:Error|Exception|Warning|Timeout)")


@lru_cache(maxsize=65_536)
def run_tokens(run: str) -> tuple[tuple[str, Kind], ...]:
    """Return the (lexeme, kind) pairs of one run, the whole first."""
    whole = run.casefold()
    if not run.strip("_"):
        return ()
    if run.isalpha() and (whole == run or run.istitle()):
        return tuple(_word(whole, "word"))
    return tuple(_compound(run, whole))


def is_identifier(run: str) -> bool:
    """Whether a run names one exact thing (a file, a code, a symbol, a host) rather than says something."""
    if run.isdigit():
        return len(run) >= 4 and not _YEAR.fullmatch(run)
    if run.isalpha():
        return bool(run.isascii() and (_CAMEL.search(run) or _RAISED.fullmatch(run)))
    if _NUMBER.fullmatch(run) or _COUNTED.fullmatch(run) or _ABBREVIATION.fullmatch(run):
        return False
    inner = run.strip("_")
    has_digit = any(char.isdigit() for char in inner)
    has_letter = any(char.isalpha() for char in inner)
    if "_" in run or "::" in run or "->" in run or "@" in run:
        return True
    if run.count("/") + run.count("\\") == 1 and has_letter:
        return has_digit or "." in run
    if "/" in run or "\\" in run:
        return has_letter
    if has_digit:
        return has_letter or run.count(".") >= 2 or run.count("-") >= 2
    return bool(_DOTTED.fullmatch(run) or _CAMEL.search(run))


def _word(word: str, kind: Kind) -> Iterator[tuple[str, Kind]]:
    """A word and, where it differs, its English stem; nothing for a stop word."""
    if word in STOP_WORDS:
        return
    yield word[:MAX_LEXEME_CHARS], kind
    if kind != "identifier" and word.isascii() and word.isalpha() and 2 < len(word) <= MAX_LEXEME_CHARS:
        with _STEMMER_LOCK:
            stem = _STEMMER.stemWord(word)
        if stem != word:
            yield stem, "stem"


def _compound(run: str, whole: str) -> Iterator[tuple[str, Kind]]:
    """The whole, the tails of a path or dotted name, the form without hyphens, and the pieces."""
    kind: Kind = "identifier" if is_identifier(run) else "word"
    if kind == "word" and any(char.isdigit() for char in run):
        kind = "number"
    seen = {whole}
    yield from _word(whole, kind)
    if len(run) <= MAX_LEXEME_CHARS:
        for tail in _tails(whole):
            if tail not in seen:
                seen.add(tail)
                yield tail, "part"
        if "-" in whole and whole.replace("-", "").isalnum():
            yield whole.replace("-", ""), "part"
    for piece in _pieces(run):
        if piece not in seen and len(piece) > 1:
            seen.add(piece)
            yield from _word(piece, "part")


def _tails(whole: str) -> Iterator[str]:
    """`app/billing/views.py` → `billing/views.py`, `views.py`, `py`; at most `MAX_TAILS`, shortest last."""
    starts = [match.end() for match in _STEPS.finditer(whole)]
    for start in starts[-MAX_TAILS:]:
        tail = whole[start:]
        if len(tail) > 1:
            yield tail


def _pieces(run: str) -> Iterator[str]:
    """The words between joiners, and their camelCase humps and digit groups."""
    for chunk in _JOINERS.split(run):
        if not chunk:
            continue
        yield chunk.casefold()
        if _PLURAL_ACRONYM.fullmatch(chunk) or not chunk.isascii() or len(chunk) > MAX_LEXEME_CHARS:
            continue
        for hump in _HUMPS.findall(chunk):
            yield hump.casefold()
