"""What every engine can do. Nothing here decides who may see what: PostgreSQL does, after the engine."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memories.search.deadline import Unanswered
from memories.search.vectors import VectorHit

LONGEST_NAME = 255  # of a collection, in the strictest of the engines
BATCH = 500  # points in one request


class EngineError(Unanswered):
    """The engine is down, refuses, or takes too long. Says what, never a vector or an id."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is. `url` with https means TLS, checked against `ca_file` or the system's authorities."""

    url: str
    api_key: str
    collection: str  # what the names of our collections begin with
    ca_file: str
    timeout_seconds: float  # of one request: a search is waited for less long by whoever asks


@dataclass(frozen=True, slots=True)
class Point:
    """One vector of a memory: float32 [dimensions]. `stamp` changes whenever the scope, status or vector does."""

    memory_id: uuid.UUID
    scope_id: uuid.UUID
    status: str
    stamp: str
    vector: np.ndarray


class Engine(Protocol):
    """Vectors by team and model. Each method raises `EngineError`, and may be called again after that.

    A model's vectors have a collection of their own, made at the first write; asking one that is not there
    finds nothing. All methods are safe from several threads.
    """

    def upsert(self, *, team_id: uuid.UUID, model_id: str, points: Sequence[Point]) -> None:
        """Write points, in place of earlier ones of the same memories.

        Later calls see them; a Milvus server's `nearest` within seconds, as it would take longer otherwise.
        """

    def delete(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> None:
        """Remove the points of these memories, as far as they are there and the team's."""

    def nearest(
        self,
        *,
        team_id: uuid.UUID,
        scope_ids: Sequence[uuid.UUID],
        embedding: np.ndarray,
        model_id: str,
        statuses: Sequence[str],
        limit: int,
    ) -> list[VectorHit]:
        """Return the closest points, best first: team, scopes and statuses are filtered before the limit."""

    def stamps(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        """Return the stamps of those of these memories that are there."""

    def scan(self, *, team_id: uuid.UUID, model_id: str) -> Iterator[list[uuid.UUID]]:
        """Go through all points of a team, page by page; those written meanwhile may be missed."""

    def models(self) -> list[str]:
        """Return the models that have a collection."""

    def forget_team(self, *, team_id: uuid.UUID) -> None:
        """Remove every point of a team."""

    def drop(self, *, model_id: str) -> None:
        """Remove the collection of a model with everything in it."""


def collection_of(prefix: str, model_id: str) -> str:
    """Return the name of a model's collection: letters, digits and underscores, which every engine takes.

    >>> collection_of("hindsight", "text-embedding-3-small@1536")
    'hindsight__text_2dembedding_2d3_2dsmall_401536'
    """
    escaped = re.sub(rb"[^A-Za-z0-9]", lambda found: b"_%02x" % found[0][0], model_id.encode()).decode()
    name = f"{prefix}__{escaped}"
    if len(name) > LONGEST_NAME:
        raise EngineError(f"The model's name makes a collection's name of over {LONGEST_NAME} characters.")
    return name


def model_of(prefix: str, collection: str) -> str | None:
    """Return the model of a collection, or None for one that is not ours."""
    before, found, escaped = collection.partition("__")
    if before != prefix or not found:
        return None
    raw = re.sub(rb"_([0-9a-f]{2})", lambda code: bytes([int(code[1], 16)]), escaped.encode())
    try:
        model_id = raw.decode()
    except UnicodeDecodeError:
        return None
    return model_id if escaped and collection_of(prefix, model_id) == collection else None
