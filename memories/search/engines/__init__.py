"""Where the nearest vectors are looked up: in PostgreSQL, or in an engine beside it that the settings name.

An engine holds copies: ids, a scope, a status and a vector, never a text. PostgreSQL keeps every vector too and
decides what comes out (docs/adr/0014). `python manage.py reindex` fills an engine, `memories.vector_outbox` keeps
it in step, `memories.vector_drift` compares.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memories.search import vectors
from memories.search.deadline import Deadline
from memories.search.vectors import VectorHit

from . import pgvector
from .base import Address, Engine, EngineError, Point

__all__ = ["DRIVERS", "Engine", "EngineError", "Point", "current", "has_driver", "is_external", "nearest_within"]

# The engine → what is imported, and what to install for it: the extra of pyproject.toml.
DRIVERS = {
    "milvus": ("pymilvus", "pymilvus>=3.0,<4"),
    "qdrant": ("qdrant_client", "qdrant-client>=1.20,<2"),
    "chroma": ("chromadb", "chromadb-client>=1.5,<2"),
}
NAMES = ("pgvector", *DRIVERS)


def is_external() -> bool:
    """Whether vectors are looked up outside of PostgreSQL."""
    return settings.VECTOR_INDEX != "pgvector"


def has_driver(name: str) -> bool:
    """Whether what the engine is talked to with is installed."""
    return name == "pgvector" or find_spec(DRIVERS[name][0]) is not None


def current() -> Engine:
    """Return the engine that the settings name, connected at its first use in this process."""
    if not is_external():
        return pgvector
    return _connected(
        settings.VECTOR_INDEX,
        Address(
            url=settings.VECTOR_INDEX_URL,
            api_key=settings.VECTOR_INDEX_API_KEY,
            collection=settings.VECTOR_INDEX_COLLECTION,
            ca_file=settings.VECTOR_INDEX_CA_FILE,
            timeout_seconds=settings.VECTOR_INDEX_WRITE_TIMEOUT_SECONDS,
        ),
        os.getpid(),
    )


def nearest_within(deadline: Deadline) -> Callable[..., list[VectorHit]]:
    """Return what finds the nearest vectors in time: `vectors.nearest` itself, or the same over an engine.

    The latter raises `EngineError` when the engine is down, late, or was a moment ago.
    """
    if not is_external():
        return vectors.nearest
    from . import external

    return partial(external.nearest, deadline=deadline)


@cache
def _connected(name: str, address: Address, process: int) -> Engine:
    """Of this process: neither sockets nor the threads of a driver survive a fork."""
    if name not in DRIVERS:
        raise ImproperlyConfigured(f"VECTOR_INDEX must be one of {', '.join(NAMES)}, not {name!r}.")
    if not has_driver(name):
        raise ImproperlyConfigured(f"VECTOR_INDEX={name} needs its driver: pip install '{DRIVERS[name][1]}'.")
    return import_module(f"{__name__}.{name}").connect(address)
