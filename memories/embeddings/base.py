"""The interface of an embedder, and the check that every backend's answer passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

Kind = Literal["query", "passage"]
MIN_NORM = 1e-6


class EmbeddingError(RuntimeError):
    """The embedder failed or answered with something that is not a usable vector."""


class Embedder(Protocol):
    """`embed` returns float32 [n, dimensions]; `model_id` is stamped on every stored row."""

    model_id: str
    dimensions: int

    def embed(self, texts: Sequence[str], kind: Kind) -> np.ndarray: ...


def check(vectors: np.ndarray, n: int, dimensions: int) -> np.ndarray:
    """Return `vectors` as float32 [n, dimensions]. Raises `EmbeddingError` on anything else."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.shape != (n, dimensions):
        raise EmbeddingError(f"expected {n} vectors of {dimensions} dimensions, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise EmbeddingError("a vector holds NaN or infinity")
    if n and float(np.linalg.norm(vectors, axis=1).min()) < MIN_NORM:
        raise EmbeddingError("a vector has no length")
    return vectors
