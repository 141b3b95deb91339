"""Milvus: one collection a model, partitioned by the team."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from memories.search.vectors import VectorHit

from .base import BATCH, Address, EngineError, Point, collection_of, model_of

if TYPE_CHECKING:
    from pymilvus import MilvusClient

PARTITIONS = 64  # teams are spread over them by hash; the filter tells those of one partition apart
UUID_CHARS = 36
HNSW = {"M": 16, "efConstruction": 100}
LEAST_EF = 100  # candidates of a search; at least as many as hits


def connect(address: Address) -> Milvus:
    """Return the engine at `address`; nothing is asked of it yet."""
    import pymilvus  # noqa: F401 - a missing driver is told here

    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs what it also raises
    return Milvus(address)


class Milvus:
    """See `base.Engine`. The primary key is the memory's id."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._made: set[str] = set()
        self._connecting, self._making = threading.Lock(), threading.Lock()
        self._connected: MilvusClient | None = None

    def upsert(self, *, team_id: uuid.UUID, model_id: str, points: Sequence[Point]) -> None:
        if not points:
            return
        name = self._name(model_id)
        with _errors():
            self._make(name, len(points[0].vector))
            for start in range(0, len(points), BATCH):
                rows: list[dict[str, Any]] = [
                    {
                        "id": str(point.memory_id), "team": str(team_id), "scope": str(point.scope_id),
                        "status": str(point.status), "stamp": point.stamp,
                        "vector": np.asarray(point.vector, dtype=np.float32),
                    }
                    for point in points[start : start + BATCH]
                ]  # fmt: skip
                self._client().upsert(name, rows, timeout=self._address.timeout_seconds)

    def delete(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> None:
        for start in range(0, len(memory_ids), BATCH):
            part = memory_ids[start : start + BATCH]
            with _errors():
                if self._is_there(model_id):
                    among = f"{_team(team_id)} and {_in('id', part)}"
                    self._client().delete(self._name(model_id), filter=among, timeout=self._address.timeout_seconds)

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
        with _errors():
            if not self._is_there(model_id):
                return []
            found = self._client().search(
                self._name(model_id),
                data=[np.asarray(embedding, dtype=np.float32)],
                filter=f"{_team(team_id)} and {_in('scope', scope_ids)} and {_in('status', statuses)}",
                limit=limit,
                output_fields=["id"],
                search_params={"metric_type": "COSINE", "params": {"ef": max(LEAST_EF, limit)}},
                consistency_level="Bounded",  # "Strong" would wait for the server's next tick, up to 200 ms
                timeout=self._address.timeout_seconds,
            )
        return [VectorHit(uuid.UUID(hit["id"]), float(hit["distance"])) for hit in found[0]]

    def stamps(self, *, team_id: uuid.UUID, model_id: str, memory_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        held: dict[uuid.UUID, str] = {}
        for start in range(0, len(memory_ids), BATCH):
            part = memory_ids[start : start + BATCH]
            rows = self._rows(model_id, f"{_team(team_id)} and {_in('id', part)}", len(part))
            held |= {uuid.UUID(row["id"]): row["stamp"] for row in rows}
        return held

    def scan(self, *, team_id: uuid.UUID, model_id: str) -> Iterator[list[uuid.UUID]]:
        with _errors():
            if not self._is_there(model_id):
                return
            pages = self._client().query_iterator(
                self._name(model_id),
                filter=_team(team_id),
                output_fields=["id"],
                batch_size=BATCH,
                timeout=self._address.timeout_seconds,
            )
        while True:
            with _errors():
                page = pages.next()
            if not page:
                return
            yield [uuid.UUID(row["id"]) for row in page]

    def models(self) -> list[str]:
        with _errors():
            names = self._client().list_collections(timeout=self._address.timeout_seconds)
        return sorted(model for name in names if (model := model_of(self._address.collection, name)) is not None)

    def forget_team(self, *, team_id: uuid.UUID) -> None:
        for model_id in self.models():
            with _errors():
                self._client().delete(
                    self._name(model_id), filter=_team(team_id), timeout=self._address.timeout_seconds
                )

    def drop(self, *, model_id: str) -> None:
        self._made.discard(self._name(model_id))
        with _errors():
            self._client().drop_collection(self._name(model_id), timeout=self._address.timeout_seconds)

    def _name(self, model_id: str) -> str:
        return collection_of(self._address.collection, model_id)

    def _rows(self, model_id: str, among: str, limit: int) -> list[dict[str, Any]]:
        with _errors():
            if not limit or not self._is_there(model_id):
                return []
            return self._client().query(
                self._name(model_id), filter=among, output_fields=["id", "stamp"], limit=limit,
                timeout=self._address.timeout_seconds,
            )  # fmt: skip

    def _is_there(self, model_id: str) -> bool:
        """Whether the collection is there; asked until it is, as another process may make it."""
        name = self._name(model_id)
        if name not in self._made and self._client().has_collection(name, timeout=self._address.timeout_seconds):
            self._made.add(name)
        return name in self._made

    def _make(self, name: str, dimensions: int) -> None:
        """Make and load the collection. Two makers at once end with one, and two threads with no error."""
        with self._making:
            if name not in self._made:
                self._make_alone(name, dimensions)
                self._made.add(name)

    def _make_alone(self, name: str, dimensions: int) -> None:
        from pymilvus import DataType, MilvusException

        client, wait = self._client(), self._address.timeout_seconds
        if not client.has_collection(name, timeout=wait):
            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=UUID_CHARS)
            schema.add_field("team", DataType.VARCHAR, max_length=UUID_CHARS, is_partition_key=True)
            for field in ("scope", "status", "stamp"):
                schema.add_field(field, DataType.VARCHAR, max_length=UUID_CHARS)
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
            index = client.prepare_index_params()
            index.add_index("vector", index_type="HNSW", metric_type="COSINE", params=HNSW)
            try:
                client.create_collection(
                    name, schema=schema, index_params=index, num_partitions=PARTITIONS,
                    consistency_level="Strong", timeout=wait,
                )  # fmt: skip
            except MilvusException:
                if not client.has_collection(name, timeout=wait):
                    raise

    def _client(self) -> MilvusClient:
        """Connect at the first use: the driver asks the server at once."""
        with self._connecting:
            if self._connected is None:
                from pymilvus import MilvusClient

                secure = {"server_pem_path": self._address.ca_file} if self._address.ca_file else {}
                self._connected = MilvusClient(
                    uri=self._address.url, token=self._address.api_key, timeout=self._address.timeout_seconds, **secure
                )
            return self._connected


def _team(team_id: uuid.UUID) -> str:
    return f'team == "{team_id}"'


def _in(field: str, values: Sequence[Any]) -> str:
    """A condition in Milvus's language; the values are ids and statuses of ours, checked to be nothing else."""
    words = [str(value) for value in values]
    if not all(word.replace("-", "").replace("_", "").isalnum() for word in words):
        raise ValueError(f"{field} takes ids and words only")
    quoted = ", ".join(f'"{word}"' for word in words)
    return f"{field} in [{quoted}]"


@contextmanager
def _errors() -> Iterator[None]:
    """Say what kind of error it was; what the server wrote may hold a vector."""
    import grpc
    from pymilvus import MilvusException

    try:
        yield
    except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, OSError, ValueError) as error:
        raise EngineError(f"Milvus failed: {type(error).__name__}.") from error
