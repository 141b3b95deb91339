"""Texts inside a text: base64, hex, escapes, ciphers, reversed, spaced-out and leet writing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

_MOST_BLOBS = 12  # per kind
_LONGEST_BLOB = 8192

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])(?:[A-Za-z0-9+/]{20,}={0,2}|[A-Za-z0-9_-]{20,}={0,2})(?![A-Za-z0-9+/=_-])")
_BASE32 = re.compile(r"(?<![A-Z2-7=])[A-Z2-7]{24,}={0,6}(?![A-Z2-7=])")
_HEX = re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{2}[ :]?){12,}(?![0-9a-fA-F])")
_BINARY = re.compile(r"(?<![01])(?:[01]{8}[ ,]?){6,}(?![01])")
_BINARY_LETTERS = ("0110000", "0110010", "0110100", "0111001", "0111010")  # a e i r t: every text has one
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2}[\w.,'-]{0,30}){4,}")
_WORD_BEFORE = re.compile(r"[\w.,'-]{0,30}$")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|&#x?[0-9a-fA-F]{2,5};){6,}")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|&#x([0-9a-fA-F]{2,5});|&#([0-9]{2,5});")
_MORSE = re.compile(r"(?:[.\-]{1,5}[ /|]{1,3}){5,}[.\-]{1,5}")
_SPACED = re.compile(r"(?<!\w)(?:\w([ ·.|｜_*~-]))(?:\w\1{1,2}){4,}\w(?!\w)")
_SPACED_ZH = re.compile(r"[\u4e00-\u9fff](?:[ ·.|｜_*~-][\u4e00-\u9fff]){3,}")
_LEET = dict(zip("0134578", "oieastb", strict=True))
_LEET_INSIDE = re.compile(r"[a-z][0134578][a-z]|\b[0134578][a-z]{2}")
_HYPHENATED = re.compile(r"(?<=[a-z])-\s?(?=[a-z])")

_MORSE_A_TO_M = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. --"
_MORSE_N_TO_Z = "-. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MORSE_LETTERS = dict(zip(f"{_MORSE_A_TO_M} {_MORSE_N_TO_Z}".split(), _ALPHABET, strict=True))

# A disguise is worth undoing where one of these words shows in it.
_TELLTALES = ("ignore", "instruction", "password", "previous", "system prompt")
_SHIFTED = {
    shift: [word.translate(str.maketrans(_ALPHABET, _ALPHABET[shift:] + _ALPHABET[:shift])) for word in _TELLTALES[:2]]
    for shift in (13, *range(1, 13), *range(14, 26))
}


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text read out of another one: how it was hidden, where, and what it says (lower case)."""

    how: str
    start: int
    end: int
    text: str


def hidden_texts(text: str) -> Iterator[Hidden]:
    """What a (visible, unfolded) text hides in encodings and ciphers. One level deep."""
    yield from _blobs(text, "base64", _BASE64, _from_base64)
    yield from _blobs(text, "base32", _BASE32, _from_base32)
    yield from _blobs(text, "hex", _HEX, _from_hex)
    if any(eight in text for eight in _BINARY_LETTERS):
        yield from _blobs(text, "binary", _BINARY, _from_binary)
    if "%" in text:
        yield from _percent(text)
    if "\\" in text or "&#" in text:
        yield from _blobs(text, "escapes", _ESCAPES, _from_escapes)
    if ".-" in text and "-." in text:
        yield from _blobs(text, "morse", _MORSE, _from_morse)
    yield from _blobs(text, "spaced", _SPACED, _from_spaced)
    yield from _blobs(text, "spaced", _SPACED_ZH, _from_spaced)
    yield from _ciphers(text.lower())


def _blobs(text: str, how: str, pattern: re.Pattern[str], decode: Callable[[str], str]) -> Iterator[Hidden]:
    for count, found in enumerate(pattern.finditer(text)):
        if count == _MOST_BLOBS:
            return
        decoded = decode(found[0][:_LONGEST_BLOB])
        if decoded and len(decoded) >= 4 and _is_text(decoded):
            yield Hidden(how, found.start(), found.end(), decoded.lower())


def _percent(text: str) -> Iterator[Hidden]:
    """Percent encoding; the word before the first `%` belongs to it."""
    for hidden in _blobs(text, "percent", _PERCENT, unquote):
        word = _WORD_BEFORE.search(text[max(0, hidden.start - 30) : hidden.start])
        before = word[0] if word else ""
        yield Hidden("percent", hidden.start - len(before), hidden.end, before.lower() + hidden.text)


def _is_text(decoded: str) -> bool:
    letters = sum(char.isalnum() or char.isspace() for char in decoded)
    return letters >= 0.75 * len(decoded) and all(char.isprintable() or char in "\n\r\t" for char in decoded)


def _from_base64(blob: str) -> str:
    body = blob.rstrip("=").replace("-", "+").replace("_", "/")
    return _bytes_to_text(lambda: base64.b64decode(body + "=" * (-len(body) % 4), validate=True))


def _from_base32(blob: str) -> str:
    body = blob.rstrip("=")
    return _bytes_to_text(lambda: base64.b32decode(body + "=" * (-len(body) % 8)))


def _from_hex(blob: str) -> str:
    return _bytes_to_text(lambda: bytes.fromhex(blob.replace(":", " ")))


def _from_binary(blob: str) -> str:
    bits = re.sub("[^01]", "", blob)
    return _bytes_to_text(lambda: bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) - 7, 8)))


def _bytes_to_text(decode: Callable[[], bytes]) -> str:
    try:
        return decode().decode()
    except (ValueError, binascii.Error):
        return ""


def _from_escapes(blob: str) -> str:
    def char(found: re.Match[str]) -> str:
        code = int(found[1] or found[2] or found[3] or "0", 16) or int(found[4] or "0")
        return chr(code) if 0 < code < 0xD800 else "?"

    return _ESCAPE.sub(char, blob)


def _from_morse(blob: str) -> str:
    words = [[_MORSE_LETTERS.get(sign, "") for sign in word.split()] for word in re.split(r"\s?[/|]\s?", blob)]
    return " ".join("".join(word) for word in words)


def _from_spaced(blob: str) -> str:
    """`I g n o r e  a l l` and `忽·略·以·上`: a doubled separator is the gap between words."""
    gap = blob[1]
    return "".join(" " if part == "" else part for part in blob.split(gap))


def _ciphers(lower: str) -> Iterator[Hidden]:
    """Caesar shifts, reversed writing, leet and hyphen-broken words, where a telltale word shows."""
    for shift, words in _SHIFTED.items():
        if any(word in lower for word in words):
            back = str.maketrans(_ALPHABET[shift:] + _ALPHABET[:shift], _ALPHABET)
            yield Hidden("caesar", 0, len(lower), lower.translate(back))
            break
    if any(word[::-1] in lower for word in _TELLTALES):
        yield Hidden("reversed", 0, len(lower), lower[::-1])
    if _LEET_INSIDE.search(lower):
        plain = lower
        for sign, letter in _LEET.items():
            plain = plain.replace(sign, letter)
        if any(word in plain and word not in lower for word in _TELLTALES[:4]):
            yield Hidden("leet", 0, len(lower), plain)
    joined = _HYPHENATED.sub("", lower)
    if any(word in joined and word not in lower for word in _TELLTALES[:4]):
        yield Hidden("hyphens", 0, len(lower), joined)
