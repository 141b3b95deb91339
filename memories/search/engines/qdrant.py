"""Qdrant: one collection a model, teams as tenants in it, each with a graph of its own."""

from __future__ import annotations

import threading
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from memories.search.vectors import VectorHit

from .base import BATCH, Address, EngineError, Point, collection_of, model_of

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

IN_PROCESS = ":memory:"  # the client's local mode: exact search in Python, for tests and trials


def connect(address: Address) -> Qdrant:
    """Return the engine at `address`; nothing is asked of it yet."""
    from qdrant_client import QdrantClient

    if address.url == IN_PROCESS:
        return Qdrant(QdrantClient(location=IN_PROCESS), address)
    secure: dict[str, Any] = {"verify": address.ca_file} if address.ca_file else {}
    client = QdrantClient(
        url=address.url,
        api_key=address.api_key or None,
        timeout=max(1, round(address.timeout_seconds)),
        check_compatibility=False,  # would ask the server here, and wait
        **secure,
    )
    return Qdrant(client, address)


class Qdrant:
    """See `base.Engine`. The id of a point is the memory's."""

    def __init__(self, client: QdrantClient, address: Address) -> None:
        self._client = client
        self._address = address
        self._made: set[str] = set()
        # The local mode keeps its vectors in arrays that two threads must not grow at once.
        self._turn: AbstractContextManager = threading.Lock() if address.url == IN_PROCESS else nullcontext()

    def upsert(self, *, team_id: uuid.UUID, model_id: str, points: Sequence[Point]) -> None:
        from qdrant_client import models

        if not points:
            return
        name = self._name(model_id)
        with self._asking():
            self._make(name, len(points[0].vector))
            for start in range(0, len(points), BATCH):
                part = points[start : start + BATCH]
                batch = models.Batch(
                    ids=[str(point.memory_id) for point in part],
                    vectors=[point.vector.tolist() for point in part],
                    payloads=[
                        {"team": str(team_id), "scope": str(p.scope_id), "status": p.status, "stamp": p.stamp}
                        for p in part
                    ],
                )
                self._client.upsert(name, points=batch, wait=True)

    def delete(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> None:
        from qdrant_client import models

        if not memory_ids:
            return
        these = models.HasIdCondition(has_id=[str(memory) for memory in memory_ids])
        with self._asking():
            if self._is_there(model_id):
                chosen = models.FilterSelector(filter=models.Filter(must=[_team(team_id), these]))
                self._client.delete(self._name(model_id), points_selector=chosen, wait=True)

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
        from qdrant_client import models

        among = [
            _team(team_id),
            models.FieldCondition(key="scope", match=models.MatchAny(any=[str(scope) for scope in scope_ids])),
            models.FieldCondition(key="status", match=models.MatchAny(any=[str(status) for status in statuses])),
        ]
        with self._asking():
            if not self._is_there(model_id):
                return []
            found = self._client.query_points(
                self._name(model_id),
                query=np.asarray(embedding, dtype=np.float32).tolist(),
                query_filter=models.Filter(must=among),
                limit=limit,
                with_payload=False,
            )
        return [VectorHit(uuid.UUID(str(point.id)), float(point.score)) for point in found.points]

    def stamps(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        ids: list[Any] = [str(memory) for memory in memory_ids]
        with self._asking():
            if not ids or not self._is_there(model_id):
                return {}
            found = self._client.retrieve(self._name(model_id), ids=ids, with_payload=["team", "stamp"])
        payloads = [(point.id, point.payload or {}) for point in found]
        return {uuid.UUID(str(pk)): said["stamp"] for pk, said in payloads if said.get("team") == str(team_id)}

    def scan(self, *, team_id: uuid.UUID, model_id: str) -> Iterator[list[uuid.UUID]]:
        from qdrant_client import models

        offset: Any = None
        while True:
            with self._asking():
                if not self._is_there(model_id):
                    return
                page, offset = self._client.scroll(
                    self._name(model_id),
                    scroll_filter=models.Filter(must=[_team(team_id)]),
                    limit=BATCH,
                    offset=offset,
                    with_payload=False,
                )
            if page:
                yield [uuid.UUID(str(point.id)) for point in page]
            if offset is None:
                return

    def models(self) -> list[str]:
        with self._asking():
            names = [found.name for found in self._client.get_collections().collections]
        return sorted(model for name in names if (model := model_of(self._address.collection, name)) is not None)

    def forget_team(self, *, team_id: uuid.UUID) -> None:
        from qdrant_client import models

        for model_id in self.models():
            chosen = models.FilterSelector(filter=models.Filter(must=[_team(team_id)]))
            with self._asking():
                self._client.delete(self._name(model_id), points_selector=chosen, wait=True)

    def drop(self, *, model_id: str) -> None:
        self._made.discard(self._name(model_id))
        with self._asking():
            if self._client.collection_exists(self._name(model_id)):
                self._client.delete_collection(self._name(model_id))

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Say what kind of error it was; what the server wrote may hold a vector."""
        import httpx
        from qdrant_client.http.exceptions import ApiException

        try:
            with self._turn:
                yield
        except (ApiException, httpx.HTTPError, OSError, ValueError) as error:
            raise EngineError(f"Qdrant failed: {type(error).__name__}.") from error

    def _name(self, model_id: str) -> str:
        return collection_of(self._address.collection, model_id)

    def _is_there(self, model_id: str) -> bool:
        """Whether the collection is there; asked until it is, as another process may make it."""
        name = self._name(model_id)
        if name not in self._made and self._client.collection_exists(name):
            self._made.add(name)
        return name in self._made

    def _make(self, name: str, dimensions: int) -> None:
        """Make the collection and the indexes of its filters. Two makers at once end with one."""
        from qdrant_client import models

        if name in self._made:
            return
        if not self._client.collection_exists(name):
            try:
                self._client.create_collection(
                    name,
                    vectors_config=models.VectorParams(size=dimensions, distance=models.Distance.COSINE),
                    # No graph over all teams, which would be wrong for small ones, but one in each.
                    hnsw_config=models.HnswConfigDiff(m=0, payload_m=16, ef_construct=100),
                )
            except Exception:
                if not self._client.collection_exists(name):
                    raise
        for field in ("team", "scope", "status"):
            schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=field == "team" or None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the local mode has no such indexes
                self._client.create_payload_index(name, field, field_schema=schema, wait=True)
        self._made.add(name)


def _team(team_id: uuid.UUID) -> Any:
    from qdrant_client import models

    return models.FieldCondition(key="team", match=models.MatchValue(value=str(team_id)))
