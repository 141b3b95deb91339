"""What an embedder is, and what its vectors must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

Kind = Literal["query", "passage"]

MIN_NORM = 1e-6


class EmbeddingError(Exception):
    """The model gave no usable vectors: unreachable, too few of them, or not numbers to search with."""


class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from many threads at once.

    `model_id` is stamped on every stored vector: two embedders with the same id give comparable
    vectors, two with different ids never meet in one comparison.
    """

    @property
    def model_id(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str], kind: Kind) -> np.ndarray:
        """Return float32 [len(texts), dimensions], rows of length 1. Raises `EmbeddingError`."""
        ...


def check(vectors: np.ndarray, n: int, dimensions: int) -> np.ndarray:
    """Return `vectors` as float32 [n, dimensions] with rows of length 1.

    Raises `EmbeddingError` for another shape, for a NaN or an infinity, and for a row shorter than
    `MIN_NORM`, which has no direction to compare.
    """
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or array.shape[0] != n:
        raise EmbeddingError(f"{n} texts were embedded, but the result has the shape {array.shape}.")
    if n and array.shape[1] != dimensions:
        raise EmbeddingError(f"Vectors of {dimensions} dimensions are expected, not {array.shape[1]}.")
    if not np.isfinite(array).all():
        raise EmbeddingError("The embedding holds a value that is not a number.")
    norms = np.linalg.norm(array.astype(np.float64), axis=1, keepdims=True)
    if n and float(norms.min()) < MIN_NORM:
        raise EmbeddingError("The embedding holds a vector of length zero.")
    return (array / norms).astype(np.float32) if n else array.reshape(0, dimensions)
