"""The one tokenizer: the same words come out of a memory being written and a question being asked.

Text becomes lexemes of a PostgreSQL `tsvector` by our own rules and never through `to_tsvector`, whose
parser knows no Chinese words and takes identifiers apart wrongly:

- NFKC, case folded, accents stripped;
- every run of word characters and joiners (`utf-8-sig`, `billing/views.py`, `ERR_CONN_4031`) whole **and**
  in parts, camelCase and snake_case pieces included;
- English words also as their stem;
- Chinese as jieba words and as character bigrams, other unspaced scripts as bigrams.

All functions are pure and linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import rjieba

from .identifiers import MAX_LEXEME_CHARS, Kind, run_tokens
from .stopwords import STOP_WORDS

#: Stored beside the tokens of every memory; rows of another version have to be tokenized again.
TOKENS_VERSION = 1

#: How much a query term counts, by kind: a stem repeats its word and a bigram halves of two words. Chosen
#: on LoCoMo, MemoryBank (zh) and BEAM together; recall@10 moves by less than 0.01 within ±50 % of each.
KIND_WEIGHTS: dict[Kind, float] = {
    "identifier": 1.0,
    "number": 1.0,
    "word": 1.0,
    "stem": 0.7,
    "part": 0.5,
    "bigram": 0.25,
}
MAX_QUERY_TERMS = 60  # each is a bit of a bigint in the keyword search

MAX_POSITION = 16_383  # tsvector: 14 bits
MAX_POSITIONS_PER_LEXEME = 255  # tsvector: the server keeps no more
MAX_LEXEME_BYTES = 2_046  # tsvector: 11 bits of length
MAX_VECTOR_BYTES = 900_000  # tsvector: below 1 MB, alignment and positions included

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3005\u3007"
_UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
_HANGUL = "\uac00-\ud7a3"
_SCRIPTS = re.compile(
    f"(?P<han>[{_HAN}]+)|(?P<unspaced>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)"
    f"|(?P<other>[^{_HAN}{_UNSPACED}{_HANGUL}]+)"
)
# Letters, digits and the vowel signs that Python does not count as letters (Hebrew, Arabic, scripts of India).
_WORD = r"[\w\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff]"
_RUN = re.compile(rf"[^\W_]\w*(?:\+\+|#(?!\w))|{_WORD}+(?:(?:[-./:@\\+~]|::|->|://){_WORD}+)*")
_CONTRACTION = re.compile(r"\b[A-Za-z]+n['’]t\b|['’](?:s|re|ve|ll|d|m)\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ACCENTS = re.compile("[\u0300-\u036f]+")


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One lexeme of a question with what it is and how much it counts (0..1)."""

    lexeme: str
    kind: Kind
    weight: float


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """A question as the keyword search sees it. `identifiers` are lexemes of whole runs, each once."""

    terms: tuple[QueryTerm, ...]
    identifiers: tuple[str, ...]

    @property
    def lexemes(self) -> tuple[str, ...]:
        """The lexemes of all terms, in the order of the terms."""
        return tuple(term.lexeme for term in self.terms)


def document_tokens(text: str) -> list[str]:
    """Return the lexemes of a text to be stored, in order and with repeats."""
    return [lexeme for lexeme, _ in _tokens(text)]


def query_tokens(text: str) -> QueryTokens:
    """Return the terms of a question: each lexeme once, under the weightiest kind it occurs as.

    At most `MAX_QUERY_TERMS` are kept, the weightier first.
    """
    kinds: dict[str, Kind] = {}
    for lexeme, kind in _tokens(text):
        known = kinds.get(lexeme)
        if known is None or KIND_WEIGHTS[kind] > KIND_WEIGHTS[known]:
            kinds[lexeme] = kind
    terms = [QueryTerm(lexeme, kind, KIND_WEIGHTS[kind]) for lexeme, kind in kinds.items()]
    if len(terms) > MAX_QUERY_TERMS:
        terms = sorted(terms, key=lambda term: -term.weight)[:MAX_QUERY_TERMS]
    identifiers = tuple(term.lexeme for term in terms if term.kind == "identifier")
    return QueryTokens(tuple(terms), identifiers)


def tsvector_literal(tokens: Iterable[str]) -> str:
    """Return the tokens as the text of a `tsvector` value that PostgreSQL accepts whatever they hold.

    Positions are the places in the list, from 1; what exceeds a limit of the type (length of a lexeme,
    positions, whole size) is left out.
    """
    places: dict[str, list[int]] = {}
    size = 0
    for place, token in enumerate(tokens, start=1):
        lexeme = _storable(token)
        if not lexeme:
            continue
        held = places.get(lexeme)
        cost = 2 if held is not None else len(lexeme.encode()) + 12
        if size + cost > MAX_VECTOR_BYTES:
            continue
        if held is None:
            held = places[lexeme] = []
        elif len(held) >= MAX_POSITIONS_PER_LEXEME or held[-1] >= MAX_POSITION:
            continue
        held.append(min(place, MAX_POSITION))
        size += cost
    return " ".join(f"{_quoted(lexeme)}:{','.join(map(str, at))}" for lexeme, at in places.items())


def tsquery_literal(lexemes: Iterable[str]) -> str:
    """Return the text of a `tsquery` that matches a row with any of the lexemes."""
    return " | ".join(_quoted(lexeme) for lexeme in map(_storable, lexemes) if lexeme)


def _storable(token: str) -> str:
    """Drop what no text column can hold (NUL, lone surrogates) and cut to the length limit of a lexeme."""
    raw = token.replace("\x00", "").encode("utf-8", "ignore")
    return raw[:MAX_LEXEME_BYTES].decode("utf-8", "ignore")


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _tokens(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield (lexeme, kind) in the order of the text."""
    for match in _SCRIPTS.finditer(_normal(text)):
        run = match.group()
        match match.lastgroup:
            case "han":
                yield from _han_tokens(run)
            case "other":
                for found in _RUN.finditer(run):
                    yield from run_tokens(found.group())
            case "hangul":
                yield run[:MAX_LEXEME_CHARS], "word"
                yield from _bigrams(run, skip=run)
            case _:
                yield from _bigrams(run, skip="")


def _normal(text: str) -> str:
    """NFKC without accents, contractions and thousands separators; case is kept for camelCase."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        decomposed = unicodedata.normalize("NFD", text)
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))
    return _THOUSANDS.sub("", _CONTRACTION.sub(" ", text))


def _han_tokens(run: str) -> Iterator[tuple[str, Kind]]:
    """Words of jieba's search mode, and the bigrams of what stands between stop words.

    Search mode gives the short words inside a long one before the long one itself.
    """
    words = rjieba.cut_for_search(run)
    for word in words:
        if word not in STOP_WORDS:
            yield word[:MAX_LEXEME_CHARS], "word" if len(word) > 1 else "bigram"
    known = set(words)
    for stretch in _between_stop_words(run):
        for pair, kind in _bigrams(stretch, skip=stretch):
            if pair not in known:
                yield pair, kind


def _between_stop_words(run: str) -> list[str]:
    stretches = [""]
    for word in rjieba.cut(run):
        if word in STOP_WORDS:
            stretches.append("")
        else:
            stretches[-1] += word
    return stretches


def _bigrams(run: str, *, skip: str) -> Iterator[tuple[str, Kind]]:
    """Adjacent pairs of characters; a run of one character is its own bigram. `skip` is left out."""
    if len(run) == 1 and run != skip:
        yield run, "bigram"
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        if pair != skip:
            yield pair, "bigram"
