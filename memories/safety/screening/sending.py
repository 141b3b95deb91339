"""Data that is sent away: a verb of sending and, in the same sentence, an address outside.

The addresses are found first and the words before them read backwards; a pattern for both would be quadratic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .rules import regions

_LITERALS = (
    ("<email_", "<phone_", "<iban_", "<bank_card_", "@", "://", "www.", "webhook", "externally", "attacker")
    + (
        "to external ",
        "to an external ",
        "to the external ",
        "to outside ",
        "to an outside ",
        "to the outside ",
    )
    + ("third-part", "third part")
)
_ACCOUNT = re.compile(r"\b[a-z]{2}\d{10}")
# Masked addresses are addresses too: text is masked before it is screened.
_TARGET = re.compile(
    r"""<(?:email|phone|iban|bank_card)_\d+> | (?<=[\w.+-])@[\w-]{1,64}\.\w | https?://[^\s'"<>]{3}
    | \bwww\.[\w-]+\.\w | \bwebhook\b | \bexternally\b | \bto\ (?:an?\ |the\ )?(?:external|outside)\ \w+
    | \bto\ (?:the\ )?attacker | \bthird[\ -]part(?:y|ies)\b
    | \b(?:to|account|transaction\ to)\ [a-z]{2}\d{10}""",
    re.VERBOSE,
)
_BEFORE = 160
_SENTENCE_END = re.compile(r"[!?\n]|\.(?=\s)|\.$")
_SENDS = re.compile(
    r"""\b(?:send|sends|sending|e-?mail|forwards?|post|upload|share|transmit|exfiltrate|leak|transfer|export
            |dump)\b
    (?!\ (?:us|your|at|address|is)\b|\ an?\ (?:e-?mail|message)\ to\b|\s?:)""",
    re.VERBOSE,
)
_TOWARDS = re.compile(r"\b(?:to|with|at|via|on)\b")
_IS_TOWARDS = re.compile(r"to\b|externally|third|webhook")
_MOST_FINDS = 24


def find_sending(text: str) -> Iterator[tuple[str, int, int]]:
    """`send_out` with start and end for every sending in a lower-case text."""
    literals = (*_LITERALS, "to ", "account ") if _ACCOUNT.search(text) else _LITERALS
    targets = (found for start, end in regions(text, literals) for found in _TARGET.finditer(text, start, end))
    left = _MOST_FINDS
    for target in targets:
        before = text[max(0, target.start() - _BEFORE) : target.start()]
        sentence = _SENTENCE_END.split(before)[-1]
        verb = _SENDS.search(sentence)
        if verb and (_IS_TOWARDS.match(target[0]) or _TOWARDS.search(sentence, verb.end())):
            yield "send_out", target.start() - len(sentence) + verb.start(), target.end()
            left -= 1
            if not left:
                return
