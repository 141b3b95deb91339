"""Texts to vectors. `get_embedder()` gives the one that the settings name."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from .base import Embedder, EmbeddingError, Kind, check
from .local import LocalEmbedder
from .openai import OpenAIEmbedder

__all__ = ["Embedder", "EmbeddingError", "Kind", "check", "get_embedder", "warm_up"]


@cache
def get_embedder() -> LocalEmbedder | OpenAIEmbedder:
    """Return the embedder of this process, by `settings.EMBEDDING_BACKEND`."""
    match settings.EMBEDDING_BACKEND:
        case "local":
            return LocalEmbedder()
        case "openai":
            return OpenAIEmbedder(
                base_url=settings.EMBEDDING_BASE_URL,
                api_key=settings.EMBEDDING_API_KEY,
                model=settings.EMBEDDING_MODEL,
                dimensions=settings.EMBEDDING_DIMENSIONS,
                timeout_seconds=settings.EMBEDDING_TIMEOUT_SECONDS,
            )
        case other:
            raise ImproperlyConfigured(f"EMBEDDING_BACKEND must be 'local' or 'openai', not {other!r}.")


def warm_up() -> None:
    """Load what the first query would otherwise wait for: the model and the Chinese dictionary."""
    from memories.search.tokens import query_tokens

    get_embedder().warm_up()
    query_tokens("预热 warming up")
