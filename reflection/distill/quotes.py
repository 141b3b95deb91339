"""Finding what a model quoted in the steps of the trace: evidence is verbatim or it is none."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from reflection.forms import Quote, StepForm

MAX_QUOTE_CHARS = 500  # a longer quote is cut; what is kept stays verbatim
MIN_QUOTE_WEIGHT = 6  # letters and digits, ideographs count twice; less proves nothing

_WRAPPING = " \t\r\n\"'`“”‘’«»「」『』….[]"
_SAME = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "‑": "-"})


class QuoteFinder:
    """Looks quotes up in the steps of one trace; remembers the normalised texts it has made."""

    def __init__(self, steps: Sequence[StepForm]) -> None:
        self._texts = {step.sequence: step.text for step in steps}
        self._normal: dict[int, tuple[str, list[int]]] = {}

    def find(self, step: int, text: str) -> Quote | None:
        """Return where `text` stands, or None.

        The named step is searched first, then the others from near to far; first letter by letter,
        then with case, white space and typographic variants folded. The quote that is returned holds
        the step's own characters. Texts of less than `MIN_QUOTE_WEIGHT` must be a whole step.
        """
        needle = text.strip()
        for wanted in dict.fromkeys((needle, needle.strip(_WRAPPING))):
            folded = _fold(wanted)[0].strip()
            if not folded:
                continue
            if _weight(folded) < MIN_QUOTE_WEIGHT:
                found = self._whole_step(step, folded)
            else:
                found = self._exactly(step, wanted) or self._folded(step, folded)
            if found:
                return found
        return None

    def _near(self, step: int) -> list[int]:
        return sorted(self._texts, key=lambda sequence: abs(sequence - step))

    def _exactly(self, step: int, text: str) -> Quote | None:
        for sequence in self._near(step):
            start = self._texts[sequence].find(text)
            if start >= 0:
                return self._quote(sequence, start, start + len(text))
        return None

    def _folded(self, step: int, folded: str) -> Quote | None:
        for sequence in self._near(step):
            normal, places = self._normalised(sequence)
            start = normal.find(folded)
            if start >= 0:
                return self._quote(sequence, places[start], places[start + len(folded) - 1] + 1)
        return None

    def _whole_step(self, step: int, folded: str) -> Quote | None:
        text = self._texts.get(step, "").rstrip()
        if not text or self._normalised(step)[0].strip() != folded:
            return None
        return self._quote(step, len(text) - len(text.lstrip()), len(text))

    def _normalised(self, sequence: int) -> tuple[str, list[int]]:
        if sequence not in self._normal:
            self._normal[sequence] = _fold(self._texts[sequence])
        return self._normal[sequence]

    def _quote(self, sequence: int, start: int, end: int) -> Quote:
        end = min(end, start + MAX_QUOTE_CHARS)
        return Quote(sequence, start, end, self._texts[sequence][start:end])


def _weight(folded: str) -> int:
    return sum(2 if ord(char) >= 0x2E80 else 1 for char in folded if char.isalnum())


def _fold(text: str) -> tuple[str, list[int]]:
    """The text with case, compatibility forms and white space folded, and for each of its characters the
    place in `text` that it comes from."""
    folded: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        piece = _fold_char(char)
        if piece == " " and folded and folded[-1] == " ":
            continue
        folded.append(piece)
        places.extend([place] * len(piece))
    return "".join(folded), places


@lru_cache(maxsize=20_000)
def _fold_char(char: str) -> str:
    if char.isspace():
        return " "
    return unicodedata.normalize("NFKC", char.translate(_SAME)).casefold()
