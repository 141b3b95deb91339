"""Chroma: one collection a model, the team among what is known of a point."""

from __future__ import annotations

import ssl
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from memories.search.vectors import VectorHit

from .base import BATCH, Address, EngineError, Point, collection_of, model_of

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ClientAPI

HNSW = {"space": "cosine", "max_neighbors": 16, "ef_construction": 100, "ef_search": 100}


def connect(address: Address) -> Chroma:
    """Return the engine at `address`; nothing is asked of it yet."""
    return Chroma(address)


class Chroma:
    """See `base.Engine`. The id of a point is the memory's."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._made: dict[str, Collection] = {}
        self._connecting = threading.Lock()
        self._connected: ClientAPI | None = None

    def upsert(self, *, team_id: uuid.UUID, model_id: str, points: Sequence[Point]) -> None:
        name = self._name(model_id)
        for start in range(0, len(points), BATCH):
            part = points[start : start + BATCH]
            with self._errors(name):
                self._make(name).upsert(
                    ids=[str(point.memory_id) for point in part],
                    embeddings=[np.asarray(point.vector, dtype=np.float32) for point in part],
                    metadatas=[
                        {"team": str(team_id), "scope": str(p.scope_id), "status": str(p.status), "stamp": p.stamp}
                        for p in part
                    ],
                )

    def delete(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> None:
        for start in range(0, len(memory_ids), BATCH):
            ids = [str(memory) for memory in memory_ids[start : start + BATCH]]
            with self._errors(self._name(model_id)):
                if (collection := self._of(model_id)) is not None:
                    collection.delete(ids=ids, where=_team(team_id))

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
        scopes, states = [str(scope) for scope in scope_ids], [str(status) for status in statuses]
        among: Any = {"$and": [_team(team_id), {"scope": {"$in": scopes}}, {"status": {"$in": states}}]}
        with self._errors(self._name(model_id)):
            if (collection := self._of(model_id)) is None:
                return []
            found = collection.query(
                query_embeddings=[np.asarray(embedding, dtype=np.float32)],
                n_results=limit,
                where=among,
                include=["distances"],
            )
        distances = (found["distances"] or [[]])[0]
        pairs = zip(found["ids"][0], distances, strict=True)
        return [VectorHit(uuid.UUID(pk), 1 - float(distance)) for pk, distance in pairs]

    def stamps(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        held: dict[uuid.UUID, str] = {}
        for start in range(0, len(memory_ids), BATCH):
            ids = [str(memory) for memory in memory_ids[start : start + BATCH]]
            with self._errors(self._name(model_id)):
                if (collection := self._of(model_id)) is None:
                    return {}
                found = collection.get(ids=ids, where=_team(team_id), include=["metadatas"])
            said = zip(found["ids"], found["metadatas"] or [], strict=True)
            held |= {uuid.UUID(pk): str(metadata["stamp"]) for pk, metadata in said}
        return held

    def scan(self, *, team_id: uuid.UUID, model_id: str) -> Iterator[list[uuid.UUID]]:
        done = 0
        while True:
            with self._errors(self._name(model_id)):
                if (collection := self._of(model_id)) is None:
                    return
                page = collection.get(where=_team(team_id), limit=BATCH, offset=done, include=[])["ids"]
            if not page:
                return
            done += len(page)
            yield [uuid.UUID(pk) for pk in page]

    def models(self) -> list[str]:
        with self._errors():
            names = [collection.name for collection in self._client().list_collections(limit=1_000)]
        return sorted(model for name in names if (model := model_of(self._address.collection, name)) is not None)

    def forget_team(self, *, team_id: uuid.UUID) -> None:
        for model_id in self.models():
            # In batches: one request that removes a large team would outlast its time-out.
            while page := next(self.scan(team_id=team_id, model_id=model_id), None):
                self.delete(team_id=team_id, model_id=model_id, memory_ids=page)

    def drop(self, *, model_id: str) -> None:
        from chromadb.errors import NotFoundError

        name = self._name(model_id)
        self._made.pop(name, None)
        with self._errors():
            try:
                self._client().delete_collection(name)
            except NotFoundError:
                return

    def _name(self, model_id: str) -> str:
        return collection_of(self._address.collection, model_id)

    def _of(self, model_id: str) -> Collection | None:
        """The collection, or None; asked until it is there, as another process may make it."""
        from chromadb.errors import NotFoundError

        name = self._name(model_id)
        if name not in self._made:
            try:
                self._made[name] = self._client().get_collection(name, embedding_function=None)
            except NotFoundError:
                return None
        return self._made[name]

    def _make(self, name: str) -> Collection:
        if name not in self._made:
            self._made[name] = self._client().get_or_create_collection(
                name, embedding_function=None, configuration={"hnsw": HNSW}
            )
        return self._made[name]

    def _client(self) -> ClientAPI:
        """Connect at the first use: the driver asks the server at once, and waits for ever unless told otherwise."""
        with self._connecting:
            if self._connected is None:
                import chromadb
                import httpx
                from chromadb.config import Settings

                url, timeout = urlsplit(self._address.url), self._address.timeout_seconds
                key, trusted = self._address.api_key, self._address.ca_file or True
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                # Whether anybody answers at all is found out with a time-out of our own.
                heartbeat = f"{self._address.url.rstrip('/')}/api/v2/heartbeat"
                httpx.get(heartbeat, timeout=timeout, headers=headers, verify=_tls(trusted))
                settings = Settings(anonymized_telemetry=False, chroma_server_ssl_verify=trusted)
                client = chromadb.HttpClient(
                    host=url.hostname or "",
                    port=url.port or (443 if url.scheme == "https" else 80),
                    ssl=url.scheme == "https",
                    headers=headers,
                    settings=settings,
                )
                client._server._session.timeout = httpx.Timeout(timeout)  # type: ignore[attr-defined] # noqa: SLF001
                self._connected = client
            return self._connected

    @contextmanager
    def _errors(self, name: str = "") -> Iterator[None]:
        """Say what kind of error it was; what the server wrote may hold a vector.

        A collection that was dropped behind our back has another id when it is made again.
        """
        import httpx
        from chromadb.errors import ChromaError, NotFoundError

        try:
            yield
        except NotFoundError as error:
            self._made.pop(name, None)
            raise EngineError("Chroma failed: the collection is gone.") from error
        except (ChromaError, httpx.HTTPError, OSError, ValueError) as error:
            raise EngineError(f"Chroma failed: {type(error).__name__}.") from error


def _tls(trusted: str | bool) -> ssl.SSLContext | bool:
    return ssl.create_default_context(cafile=trusted) if isinstance(trusted, str) else trusted


def _team(team_id: uuid.UUID) -> Any:
    return {"team": str(team_id)}
