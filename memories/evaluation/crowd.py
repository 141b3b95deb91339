"""Made-up memories in any number, for measuring time: words by Zipf's law, some identifiers. Pure.

The text means nothing, but its words are as frequent as words are: that is what keyword search costs.
Vectors are mixed from pairs of embeddings of real sentences, because embedding 100,000 texts takes minutes and
an exact search costs the same whatever the numbers are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np

WORDS = 8_000  # in the vocabulary
MEAN_WORDS = 28  # of a memory
NOISE = 0.25  # length of the random part of a mixed vector of length 1

_SYLLABLES = [c + v + e for c in "bdfgklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "st")]


@dataclass(frozen=True, slots=True)
class Crowd:
    """So many texts, and some questions that share words with one of them each."""

    texts: list[str]
    questions: list[str]


def crowd(memories: int, questions: int, *, seed: int = 1) -> Crowd:
    """Return the same texts and questions for the same numbers."""
    rng = random.Random(seed)  # noqa: S311 - made-up text, not a secret
    texts = [_text(rng) for _ in range(memories)]
    asked = []
    for _ in range(questions):
        words = rng.choice(texts).split()
        asked.append(" ".join(["how", "about", *rng.sample(words, min(6, len(words))), *_words(rng, 2)]) + "?")
    return Crowd(texts, asked)


def mixed(bases: np.ndarray, n: int, *, seed: int = 1) -> np.ndarray:
    """Return n vectors [n, dimensions] of length 1, each between two of `bases` with some noise."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(len(bases), size=(2, n))
    share = rng.random((n, 1), dtype=np.float32)
    rows = share * bases[left] + (1 - share) * bases[right]
    noise = rng.standard_normal(rows.shape, dtype=np.float32)
    rows += NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _text(rng: random.Random) -> str:
    words = _words(rng, max(6, round(rng.gauss(MEAN_WORDS, 8))))
    if rng.random() < 0.1:
        words[rng.randrange(len(words))] = f"ERR_{rng.randrange(10_000)}"
    return " ".join(words).capitalize() + "."


def _words(rng: random.Random, n: int) -> list[str]:
    vocabulary, weights = _vocabulary()
    return rng.choices(vocabulary, cum_weights=weights, k=n)


@cache
def _vocabulary() -> tuple[Sequence[str], Sequence[float]]:
    rng = random.Random(0)  # noqa: S311
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((1, 2, 2, 3, 3))))] = None
    return list(words), list(accumulate(1 / (rank + 10) for rank in range(WORDS)))
