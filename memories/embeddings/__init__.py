"""Texts to vectors, by one of two backends behind one small interface."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from memories.embeddings.base import Embedder, EmbeddingError

__all__ = ["Embedder", "EmbeddingError", "get_embedder", "warm_up"]


@cache
def get_embedder() -> Embedder:
    """Return the process's embedder, chosen by EMBEDDING_BACKEND."""
    if settings.EMBEDDING_BACKEND == "local":
        from memories.embeddings.local import LocalEmbedder

        return LocalEmbedder()
    from memories.embeddings.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        base_url=settings.EMBEDDING_BASE_URL, api_key=settings.EMBEDDING_API_KEY, model=settings.EMBEDDING_MODEL,
        dimensions=settings.EMBEDDING_DIMENSIONS, timeout_seconds=settings.EMBEDDING_TIMEOUT_SECONDS,
    )


def warm_up() -> None:
    """Load the local model before the first caller (and before a fork) pays for it."""
    if settings.EMBEDDING_BACKEND == "local":
        get_embedder().embed(["warm up"], kind="query")
