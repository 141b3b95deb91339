"""Finds secrets: key files, connection strings, tokens by prefix or randomness, and assigned values."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator

from .assignments import assigned_values
from .spans import Span, SpanType

# A whole PEM block, or, where a log cut it off, its header and the lines of base64 that are left.
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]{3,40})-----")
_PEM_LINES = re.compile(r"(?:(?:\r?\n|\\r|\\n)[ \t>]{0,8}(?:[A-Za-z0-9+/=]{40,}|[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,80}))+")
_LONGEST_PEM = 16 * 1024

_CONNECTION = re.compile(r"(?<=://)[^\s/@:\"'<>]{0,128}:([^\s/@\"'<>]{1,256})(?=@[A-Za-z0-9\[])")

# Token formats that their issuers document, by prefix.
_PREFIXED = re.compile(
    r"""hs_[A-Za-z0-9]{8}_[A-Za-z0-9_-]{43}              # our own
      | sk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{16,} # OpenAI, Anthropic and their kin
      | gh[pousr]_[A-Za-z0-9]{30,} | github_pat_\w{20,}   # GitHub
      | gl(?:pat|dt|rt|ptt|cbt|oas)-[A-Za-z0-9_-]{16,}    # GitLab
      | (?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}               # AWS
      | AIza[A-Za-z0-9_-]{35} | GOCSPX-[A-Za-z0-9_-]{20,} # Google
      | LTAI[A-Za-z0-9]{12,26} | AKID[A-Za-z0-9]{28,40}   # Alibaba, Tencent
      | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{20,}  # Slack
      | [sprw]k_(?:live|test)_[A-Za-z0-9]{16,} | whsec_[A-Za-z0-9]{16,}  # Stripe
      | hf_[A-Za-z0-9]{30,} | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{50,} | dckr_pat_[A-Za-z0-9_-]{20,}
      | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32} | EAAC[A-Za-z0-9]{20,} | sq0[a-z]{3}-[A-Za-z0-9_-]{22,}
      | r8_[A-Za-z0-9]{30,} | gsk_[A-Za-z0-9]{40,} | pplx-[A-Za-z0-9]{40,} | xai-[A-Za-z0-9]{40,}
      | dop_v1_[a-f0-9]{64} | lin_api_[A-Za-z0-9]{30,} | ntn_[A-Za-z0-9]{40,} | secret_[A-Za-z0-9]{40,}
      | AGE-SECRET-KEY-1[A-Z0-9]{50,} | tskey-[A-Za-z0-9-]{20,} | key-[0-9a-f]{32}
    """,
    re.VERBOSE | re.ASCII,
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{16,}")
_DOTTED = (
    (
        "eyJ",
        re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}"),
    ),  # JWT, JWE
    ("SG.", re.compile(r"(?<![A-Za-z0-9_-])SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),  # SendGrid
    ("ya29.", re.compile(r"(?<![A-Za-z0-9_-])ya29\.[A-Za-z0-9_-]{20,}")),  # Google OAuth
    (":AA", re.compile(r"(?<![0-9A-Za-z])\d{8,10}:AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])")),  # Telegram bots
    ("hooks.slack.com", re.compile(r"(?<=hooks\.slack\.com/services/)T\w{6,}/B\w{6,}/\w{16,}")),
)
_RANDOM_LENGTH = range(28, 129)  # shorter is guesswork, longer is data rather than a key
_LEAST_ENTROPY = 3.9  # bits a character; 32 characters of random base62 have about 4.6, words about 3.5
_LEAST_PIECES = 0.36  # words, capitals and numbers per character; 99 % of random base62 has more, names about 0.25
_COMPOSED = re.compile(r"[a-z]{8}|\d{7}")  # a word or a number inside; rare in random base62 of this length
_DIGIT, _UPPER, _LOWER = re.compile(r"[0-9]"), re.compile(r"[A-Z]"), re.compile(r"[a-z]")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def find_secrets(text: str) -> Iterator[Span]:
    """Secrets in a folded text; the finds may overlap."""
    yield from _pem_blocks(text)
    if "://" in text:
        yield from (_span(text, found.span()) for found in _CONNECTION.finditer(text))
    yield from _tokens(text)
    for mark, pattern in _DOTTED:
        if mark in text:
            yield from (_span(text, found.span()) for found in pattern.finditer(text))
    yield from (_span(text, where) for where in assigned_values(text))


def _span(text: str, where: tuple[int, int]) -> Span:
    return Span(*where, SpanType.SECRET, text[slice(*where)])


def _pem_blocks(text: str) -> Iterator[Span]:
    for header in _PEM.finditer(text) if "-----BEGIN " in text else ():
        closing = f"-----END {header[1]}-----"
        end = text.find(closing, header.end(), header.end() + _LONGEST_PEM)
        if end >= 0:
            yield _span(text, (header.start(), end + len(closing)))
        elif lines := _PEM_LINES.match(text, header.end(), header.end() + _LONGEST_PEM):
            yield _span(text, (header.start(), lines.end()))


def _tokens(text: str) -> Iterator[Span]:
    for found in _TOKEN.finditer(text):
        if _PREFIXED.fullmatch(found[0]) or looks_random(found[0]):
            yield _span(text, found.span())


def looks_random(token: str) -> bool:
    """Whether a word of `[A-Za-z0-9_-]` is drawn at random rather than composed, encoded or a plain hash.

    Keys mix upper case, lower case and digits in no order. Names and page addresses hold words and numbers,
    hashes and UUIDs have no upper case, and base64 of a text decodes to it.
    """
    symbols = token.replace("-", "").replace("_", "")
    if len(symbols) not in _RANDOM_LENGTH or _COMPOSED.search(token):
        return False
    if not (_DIGIT.search(token) and _UPPER.search(token) and _LOWER.search(token)):
        return False
    if len(_PIECE.findall(symbols)) < _LEAST_PIECES * len(symbols) or _entropy(symbols) < _LEAST_ENTROPY:
        return False
    return not _is_encoded_text(token)


def _entropy(token: str) -> float:
    """Shannon entropy of the characters, in bits each."""
    size = len(token)
    return -sum(count / size * math.log2(count / size) for count in Counter(token).values())


def _is_encoded_text(token: str) -> bool:
    try:
        decoded = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return decoded.isprintable()
