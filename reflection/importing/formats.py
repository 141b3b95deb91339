"""What other memories keep, as items: mem0, Letta agent files, vectorize Hindsight archives, MCP memory. Pure.

Formats, as their sources describe them:

- mem0: the JSON of `get_all`, a list or `{"results": [...]}` of `{id, memory, hash, metadata, created_at,
  updated_at, user_id, agent_id, run_id, categories}`; `relations` of a graph store beside `results`.
- Letta `.af`: `{agents, blocks, files, tools, ...}` with blocks `{id, label, value, description}`; the first
  version was one agent with `core_memory` of such blocks.
- vectorize Hindsight: a ZIP of `manifest.json` (schema_version 1), `documents/NNNNNN.json` with `facts`
  `{text, fact_type, context, occurred_start, mentioned_at, metadata, tags, entities}`, `observations.json`.
- MCP reference memory: JSON Lines of `{type: "entity", name, entityType, observations}` and
  `{type: "relation", from, to, relationType}`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memories.enums import Kind, Tier

MAX_UNPACKED = 128 * 1024 * 1024  # bytes of an archive, so that a small file cannot fill the memory
MAX_TAG = 60
MAX_SESSION = 120


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to remember. `origin` is its id where it came from; `where` says where it stood in the file."""

    content: str
    where: str
    kind: str = Kind.FACT
    tier: str = Tier.SEMANTIC
    origin: str = ""
    structure: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    actor: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One thing that is not taken, and why."""

    kind: str
    reason: str
    where: str


class NotThisFormat(Exception):
    """The file is not of the format it was said or looked to be; the message says what is wrong."""


Parsed = Iterator[Item | LeftOut]


def detect(data: bytes) -> str:
    """The name of the format that a file seems to have. Raises `NotThisFormat`."""
    if data[:4] == b"PK\x03\x04":
        return "vectorize"
    first = _json(data.split(b"\n", 1)[0])
    if isinstance(first, dict) and first.get("type") in ("entity", "relation"):
        return "mcp"
    whole = _json(data)
    if isinstance(whole, dict) and ("agents" in whole and "blocks" in whole or "core_memory" in whole):
        return "letta"
    if isinstance(whole, list) or isinstance(whole, dict) and isinstance(whole.get("results"), list):
        return "mem0"
    raise NotThisFormat(
        "It is none of: our own export, mem0 get_all JSON, a Letta agent file, a vectorize Hindsight archive, "
        "MCP memory JSONL."
    )


def mem0(data: bytes) -> Parsed:
    """Read `get_all`. What belongs to a user, an agent or a run keeps that in `metadata`."""
    whole = _need_json(data)
    rows = whole.get("results") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise NotThisFormat("mem0's get_all has a list of results.")
    for number, row in enumerate(rows):
        where = f"results[{number}]"
        text = row.get("memory") or row.get("text") if isinstance(row, dict) else None
        if not isinstance(text, str) or not text.strip():
            yield LeftOut("memory", "it has no text", where)
            continue
        own = {name: row[name] for name in ("user_id", "agent_id", "app_id") if row.get(name)}
        yield Item(
            content=text.strip(),
            where=where,
            origin=_text(row.get("id")),
            tags=_tags(row.get("categories")),
            metadata={**own, **_object(row.get("metadata"))},
            occurred_at=_time(row.get("updated_at") or row.get("created_at")),
            session_id=_text(row.get("run_id"))[:MAX_SESSION],
        )
    if isinstance(whole, dict):
        yield from _mem0_relations(whole.get("relations"))


def _mem0_relations(rows: Any) -> Parsed:
    for number, row in enumerate(_list(rows)):
        where = f"relations[{number}]"
        ends = [_text(row.get(name)) for name in ("source", "relationship", "target")] if isinstance(row, dict) else []
        if len(ends) == 3 and not ends[2]:
            ends[2] = _text(row.get("destination"))
        yield _relation(*ends, where=where) if len(ends) == 3 else LeftOut("relation", "it has no two ends", where)


def letta(data: bytes) -> Parsed:
    """Read memory blocks. Messages, tools and files are not conclusions and are left out, counted."""
    whole = _need_json(data)
    if not isinstance(whole, dict):
        raise NotThisFormat("A Letta agent file is one JSON object.")
    blocks = whole.get("blocks") if isinstance(whole.get("blocks"), list) else whole.get("core_memory")
    for number, block in enumerate(_list(blocks)):
        where = f"blocks[{number}]"
        value = block.get("value") if isinstance(block, dict) else None
        if not isinstance(value, str) or not value.strip():
            yield LeftOut("memory block", "it is empty", where)
            continue
        label = _text(block.get("label"))
        metadata = {"label": label, "description": _text(block.get("description"))}
        yield Item(
            content=value.strip(),
            where=where,
            origin=_text(block.get("id")) or label,
            tags=_tags([label]),
            metadata={name: told for name, told in metadata.items() if told},
        )
    yield from _not_conclusions(whole)


def _not_conclusions(whole: dict[str, Any]) -> Parsed:
    for place, agent in enumerate(_list(whole.get("agents")) or [whole]):
        messages = agent.get("messages") if isinstance(agent, dict) else None
        for number, _ in enumerate(_list(messages)):
            why = "raw material; send it as a trace to have it looked back at"
            yield LeftOut("message", why, f"agents[{place}].messages[{number}]")
    for name, kind in (("tools", "tool"), ("files", "file"), ("sources", "source"), ("mcp_servers", "MCP server")):
        for number, _ in enumerate(_list(whole.get(name))):
            yield LeftOut(kind, "not a memory", f"{name}[{number}]")


def vectorize(data: bytes) -> Parsed:
    """Read facts and observations of a bank or document archive."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        names = sorted(archive.namelist())
        sizes = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        raise NotThisFormat("The archive is damaged.") from None
    if sizes > MAX_UNPACKED:
        raise NotThisFormat(f"The archive unpacks to more than {MAX_UNPACKED:,} bytes.")
    manifest = _member(archive, "manifest.json") if "manifest.json" in names else None
    if not isinstance(manifest, dict) or manifest.get("schema_version") != 1:
        raise NotThisFormat("The archive has no manifest of version 1.")
    for name in names:
        if name.startswith("documents/") and name.endswith(".json"):
            yield from _document(_member(archive, name), name)
        elif name == "observations.json":
            observations = _member(archive, name)
            for number, row in enumerate(_list(observations)):
                yield _bank_fact(row, f"observations[{number}]", {"proof_count": _object(row).get("proof_count")})
        elif name != "manifest.json" and not name.endswith("/"):
            yield LeftOut("section", "settings of that bank, not memories", name)


def _document(document: Any, name: str) -> Parsed:
    if not isinstance(document, dict):
        yield LeftOut("document", "not of the form of a document", name)
        return
    facts = document.get("facts")
    for number, fact in enumerate(_list(facts)):
        yield _bank_fact(fact, f"{name} facts[{number}]", {"document": _text(document.get("id"))})
    if document.get("chunks") or document.get("original_text"):
        yield LeftOut("document text", "raw material; its facts are taken", name)


def _bank_fact(fact: Any, where: str, more: dict[str, Any]) -> Item | LeftOut:
    text = fact.get("text") if isinstance(fact, dict) else None
    if not isinstance(text, str) or not text.strip():
        return LeftOut("fact", "it has no text", where)
    told = {
        **more,
        "fact_type": fact.get("fact_type"),
        "context": fact.get("context"),
        "entities": fact.get("entities"),
    }
    moments = (fact.get(name) for name in ("occurred_start", "mentioned_at", "event_date"))
    return Item(
        content=text.strip(),
        where=where,
        origin=_text(fact.get("source_id")),
        # An experience there is what the agent itself did once; here such a thing is an episode's length of life.
        tier=Tier.EPISODIC if fact.get("fact_type") == "experience" else Tier.SEMANTIC,
        tags=_tags(fact.get("tags")),
        metadata={**_object(fact.get("metadata")), **{name: value for name, value in told.items() if value}},
        occurred_at=next((moment for raw in moments if (moment := _time(raw))), None),
    )


def mcp(data: bytes) -> Parsed:
    """Read a knowledge graph: an observation is a fact about its entity, a relation is one."""
    for number, line in enumerate(data.splitlines()):
        if not line.strip():
            continue
        where, row = f"line {number + 1}", _json(line)
        if not isinstance(row, dict):
            yield LeftOut("line", "not JSON", where)
        elif row.get("type") == "entity":
            yield from _entity(row, where)
        elif row.get("type") == "relation":
            yield _relation(_text(row.get("from")), _text(row.get("relationType")), _text(row.get("to")), where=where)
        else:
            yield LeftOut("line", "neither an entity nor a relation", where)


def _entity(row: dict[str, Any], where: str) -> Parsed:
    name, entity_type = _text(row.get("name")), _text(row.get("entityType"))
    observations = row.get("observations")
    if not name or not isinstance(observations, list) or not observations:
        yield LeftOut("entity", "nothing is known of it", where)
        return
    for number, observation in enumerate(observations):
        text = observation.get("content") if isinstance(observation, dict) else observation
        if not isinstance(text, str) or not text.strip():
            yield LeftOut("observation", "it has no text", f"{where} observations[{number}]")
            continue
        yield Item(
            content=f"{_spaced(name)}: {text.strip()}",
            where=f"{where} observations[{number}]",
            origin=f"{name}#{number}",
            tags=_tags([entity_type]),
            metadata={"entity": name, "entity_type": entity_type},
        )


def _relation(source: str, relation: str, target: str, *, where: str) -> Item | LeftOut:
    if not (source and relation and target):
        return LeftOut("relation", "it has no two ends", where)
    words = (_spaced(source)[:300], _spaced(relation)[:300], _spaced(target)[:300])
    return Item(
        content=" ".join(words),
        where=where,
        kind=Kind.RELATION,
        origin=f"{source} {relation} {target}",
        structure={"subject": words[0], "relation": words[1], "object": words[2]},
    )


PARSERS: Mapping[str, Callable[[bytes], Parsed]] = {"mem0": mem0, "letta": letta, "vectorize": vectorize, "mcp": mcp}


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    try:
        return _need_json(archive.read(name))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError):
        raise NotThisFormat(f"{name[:100]} in the archive cannot be read.") from None


def _need_json(data: bytes) -> Any:
    found = _json(data)
    if found is None:
        raise NotThisFormat("It is not JSON in UTF-8.")
    return found


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _tags(value: Any) -> tuple[str, ...]:
    words = [_text(item)[:MAX_TAG] for item in value] if isinstance(value, list) else []
    return tuple(dict.fromkeys(word for word in words if word))


def _time(value: Any) -> datetime | None:
    """A time with its zone; one without is taken as UTC, as these programs write it."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment and (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
