"""What a memory may say: limits, the snippet, the fingerprint. Pure but for the settings."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from typing import Any

from django.conf import settings

from hindsight_site.refusals import FieldError, Invalid
from memories import structures

SENTENCE_END = re.compile(r"[.!?。！？…](?=\s|$|[^\x00-\x7f])")


def text_fields(content: str) -> dict[str, str]:
    """Return content, snippet and fingerprint of a text. Raises `Invalid` when empty or over the limit."""
    if not any(character.isprintable() and not character.isspace() for character in content):
        raise _invalid("content", "must not be empty.")
    if len(content) > settings.MAX_CONTENT_CHARS:
        raise _invalid("content", f"is over the limit of {settings.MAX_CONTENT_CHARS:,} characters.")
    return {"content": content, "snippet": snippet(content), "fingerprint": fingerprint(content)}


def snippet(content: str) -> str:
    """The summary of a long content: its first sentences, at most `SNIPPET_CHARS`; short content has none."""
    return cut(content, settings.SNIPPET_CHARS) if len(content) > settings.SNIPPET_CHARS else ""


def cut(text: str, limit: int) -> str:
    """Cut `text` to about `limit` characters, at a sentence end where one lies past the half.

    A quote or bracket that the cut leaves open is closed, in at most a few characters more.
    """
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    ends = [match.end() for match in SENTENCE_END.finditer(head) if match.end() >= limit // 2]
    if ends:
        return closed(head[: ends[-1]])
    space = head.rfind(" ")
    return closed((head[:space] if space >= limit // 2 else head).rstrip() + "…")


def sentences(text: str) -> list[str]:
    """Split at the ends of sentences, a line break counting as one; nothing but white space is lost."""
    found: list[str] = []
    for line in text.splitlines():
        start = 0
        for match in SENTENCE_END.finditer(line):
            if _opened(line[start : match.end()]):
                continue  # the end of a sentence that somebody is quoted with
            found.append(line[start : match.end()].strip())
            start = match.end()
        found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def closed(text: str) -> str:
    """Return the text with what it leaves open (quotes, brackets, code) closed at its end."""
    return text + "".join(reversed(_opened(text)))


def _opened(text: str) -> list[str]:
    """The closing characters that a text still waits for, the outermost first."""
    waiting: list[str] = []
    for at, char in enumerate(text):
        if waiting and char == waiting[-1]:
            waiting.pop()
        elif char in _PAIRS:
            waiting.append(_PAIRS[char])
        elif char in '"`' and (at == 0 or not text[at - 1].isdigit()):  # not 5" of rain
            waiting.append(char)
    return waiting


_PAIRS = dict(zip("“‘「『《〈（(【[{", "”’」』》〉）)】]}", strict=True))


def fingerprint(content: str) -> str:
    """SHA-256 of the text in NFKC, lower case, white space folded: the same words, the same value."""
    normal = " ".join(unicodedata.normalize("NFKC", content).lower().split())
    return hashlib.sha256(normal.encode()).hexdigest()


def check_structure(kind: str, structure: dict[str, Any]) -> dict[str, Any]:
    """Return the structure in its normal form. Raises `Invalid` naming what is wrong."""
    try:
        return structures.validate(kind, structure)
    except structures.StructureError as error:
        errors = tuple(FieldError(f"structure.{field}".rstrip("."), message) for field, message in error.errors)
        raise Invalid(f"{errors[0].field}: {errors[0].message}", errors=errors) from None


def check_json_size(field: str, value: Any) -> None:
    """Raise `Invalid` when a JSON value is over the metadata limit."""
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > settings.MAX_METADATA_BYTES:
        raise _invalid(field, f"is over the limit of {settings.MAX_METADATA_BYTES:,} bytes of JSON.")


def _invalid(field: str, message: str) -> Invalid:
    return Invalid(f"{field} {message}", errors=(FieldError(field, message),))
