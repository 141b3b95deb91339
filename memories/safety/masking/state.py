"""The numbering of placeholders inside one trace."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field

from .spans import PLACEHOLDER, Span, SpanType

_NOT_ALNUM = re.compile(r"[\W_]+")


@dataclass
class MaskState:
    """Which value has which number, per type. It holds keyed fingerprints, never a value in clear.

    One state serves one trace. To go on numbering when steps are appended later, keep `numbers` (JSON) with
    the trace and give it back with the same `key`, 16 to 64 secret bytes that are not stored beside it.
    """

    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    _highest: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._highest = {kind: max(known.values(), default=0) for kind, known in self.numbers.items()}

    def placeholder(self, span: Span) -> str:
        """`<TYPE_n>`: the number this value already has, or the next free one of its type."""
        known = self.numbers.setdefault(str(span.type), {})
        fingerprint = self._fingerprint(span)
        if fingerprint not in known:
            known[fingerprint] = self._highest[span.type] = self._highest.get(span.type, 0) + 1
        return f"<{span.type}_{known[fingerprint]}>"

    def reserve(self, text: str) -> None:
        """Take the numbers of placeholders that `text` already holds; no new value gets one of them."""
        for found in PLACEHOLDER.finditer(text):
            kind, number = found[1], int(found[2])
            if number > self._highest.get(kind, 0):
                self.numbers.setdefault(kind, {})[found[0]] = self._highest[kind] = number

    def _fingerprint(self, span: Span) -> str:
        canonical = f"{span.type}:{canonical_value(span)}".encode(errors="surrogatepass")
        return hashlib.blake2b(canonical, key=self.key, digest_size=12).hexdigest()


def canonical_value(span: Span) -> str:
    """One spelling of a value: `138-1234-5678` and `+86 13812345678` are the same phone."""
    if span.type is SpanType.EMAIL:
        return span.value.casefold()
    if span.type is SpanType.PHONE:
        digits = re.sub(r"\D", "", span.value)
        return re.sub(r"^(?:00)?86(?=1[3-9]\d{9}$)", "", digits)
    if span.type in (SpanType.ID_CARD, SpanType.BANK_CARD, SpanType.IBAN):
        return _NOT_ALNUM.sub("", span.value).upper()
    return span.value
