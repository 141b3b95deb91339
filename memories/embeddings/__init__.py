"""Texts to vectors. `get_embedder()` gives the one that the settings name."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from .base import Embedder, EmbeddingError, Kind, check
from .local import LocalEmbedder
from .openai import OpenAIEmbedder

__all__ = ["Embedder", "EmbeddingError", "Kind", "check", "embedder_of", "get_embedder", "warm_up"]


@cache
def get_embedder() -> LocalEmbedder | OpenAIEmbedder:
    """Return the embedder of this process, by `settings.EMBEDDING_BACKEND`."""
    match settings.EMBEDDING_BACKEND:
        case "local":
            return LocalEmbedder()
        case "openai":
            return _endpoint(settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS)
        case other:
            raise ImproperlyConfigured(f"EMBEDDING_BACKEND must be 'local' or 'openai', not {other!r}.")


def embedder_of(model_id: str) -> LocalEmbedder | OpenAIEmbedder:
    """Return the embedder that made vectors of `model_id`, which may be another than the settings name.

    Any model of the endpoint can be asked for as `name@dimensions`, the local one by its own id or `local`.
    Raises `EmbeddingError` when no embedder that is set up gives such vectors.
    """
    current = get_embedder()
    return current if model_id == current.model_id else _another(model_id)


@cache
def _another(model_id: str) -> LocalEmbedder | OpenAIEmbedder:
    local = LocalEmbedder()
    if model_id in ("local", local.model_id):
        return local
    name, _, dimensions = model_id.rpartition("@")
    if not name or not dimensions.isdigit() or not (settings.EMBEDDING_BASE_URL or settings.EMBEDDING_API_KEY):
        raise EmbeddingError(f"No embedder that is set up makes vectors of {model_id}.")
    return _endpoint(name, int(dimensions))


def _endpoint(model: str, dimensions: int) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        base_url=settings.EMBEDDING_BASE_URL,
        api_key=settings.EMBEDDING_API_KEY,
        model=model,
        dimensions=dimensions,
        timeout_seconds=settings.EMBEDDING_TIMEOUT_SECONDS,
    )


def warm_up() -> None:
    """Load what the first query would otherwise wait for: the model and the Chinese dictionary."""
    from memories.search.tokens import query_tokens

    get_embedder().warm_up()
    query_tokens("预热 warming up")
