"""An embedder behind any OpenAI-compatible endpoint, such as text-embedding-3-small or bge-m3."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .base import EmbeddingError, Kind, check

if TYPE_CHECKING:
    from openai import OpenAI

BATCH = 96  # texts in one request; below the limit of every endpoint in use
MAX_CHARS = 8_000  # stays below the 8,192 tokens that such models take, whatever the script
MAX_RETRIES = 3  # on 408, 409, 429, 5xx and lost connections, with the client's growing pauses


class OpenAIEmbedder:
    """Embeds over the network. The client library is imported at the first call."""

    def __init__(self, *, base_url: str, api_key: str, model: str, dimensions: int, timeout_seconds: float) -> None:
        self.model_id = f"{model}@{dimensions}"
        self.dimensions = dimensions
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._client: OpenAI | None = None
        self._connecting = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> np.ndarray:
        """Return float32 [len(texts), dimensions], asked for in batches of `BATCH`."""
        rows: list[np.ndarray] = []
        for start in range(0, len(texts), BATCH):
            batch = [text[:MAX_CHARS] or " " for text in texts[start : start + BATCH]]
            rows.append(check(self._ask(batch), len(batch), self.dimensions))
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), dtype=np.float32)

    def warm_up(self) -> None:
        """Build the client; no request is made."""
        self._connected()

    def _ask(self, batch: list[str]) -> np.ndarray:
        """One request. The rows are put in the order of the texts, whatever order they came in."""
        from openai import OpenAIError

        try:
            answer = self._connected().embeddings.create(model=self._model, input=batch, encoding_format="float")
        except OpenAIError as error:
            raise EmbeddingError(f"The embedding endpoint failed: {type(error).__name__}.") from error
        items = {item.index: item.embedding for item in answer.data or []}
        if sorted(items) != list(range(len(batch))):
            raise EmbeddingError(f"{len(batch)} texts were sent, but {len(items)} vectors came back.")
        try:
            return np.asarray([items[at] for at in range(len(batch))], dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise EmbeddingError("The embedding endpoint did not answer with vectors of numbers.") from error

    def _connected(self) -> OpenAI:
        if self._client is None:
            with self._connecting:
                if self._client is None:
                    from openai import OpenAI

                    self._client = OpenAI(
                        base_url=self._base_url or None,
                        api_key=self._api_key or "none",  # local endpoints need no key, the client does
                        timeout=self._timeout_seconds,
                        max_retries=MAX_RETRIES,
                    )
        return self._client
