"""The question's vectors, made beside the keyword search and not waited for beyond the deadline."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from functools import cache

import numpy as np

from memories.embeddings import Embedder, EmbeddingError, embedder_of

from .deadline import Deadline

logger = logging.getLogger(__name__)

THREADS = 32  # questions embedded at once; those of an endpoint that hangs end with its time-out


class Asked:
    """A question being embedded by one or several models."""

    def __init__(self, pending: dict[str, Future[np.ndarray]], failed: list[str]) -> None:
        self._pending = pending
        self.late = failed  # what is missing in the end, in words

    def wait(self, deadline: Deadline) -> dict[str, np.ndarray]:
        """Return model → float32 [dimensions] for what is there by the deadline."""
        vectors: dict[str, np.ndarray] = {}
        for model, future in self._pending.items():
            try:
                vectors[model] = future.result(timeout=deadline.left())
            except Late:
                future.cancel()
                logger.warning("recall without vectors of %s: the embedder is late", model)
                self.late.append("embedder late")
            except EmbeddingError:
                logger.warning("recall without vectors of %s", model, exc_info=True)
                self.late.append("embedder failed")
        return vectors


def ask(text: str, models: Sequence[str]) -> Asked:
    """Begin to embed a question by each of the models."""
    pending: dict[str, Future[np.ndarray]] = {}
    failed: list[str] = []
    for model in models:
        try:
            embedder = embedder_of(model)
        except EmbeddingError:
            logger.warning("recall without vectors of %s: no such embedder is set up", model)
            failed.append("embedder missing")
            continue
        pending[model] = _threads(os.getpid()).submit(_embedded, embedder, text)
    return Asked(pending, failed)


def _embedded(embedder: Embedder, text: str) -> np.ndarray:
    return embedder.embed([text], kind="query")[0]


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Of this process: a fork takes no threads along."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix=f"embed-{process}")
