"""Pieces of the tools' JSON Schemas.

Input schemas say what is best sent; what is taken is wider (`forgiving`). Types are plain single types, since
some model providers refuse unions. Output schemas name what a caller may rely on and leave room for more.
"""

from __future__ import annotations

import uuid
from typing import Any

from hindsight_site.mcp.tool import Schema
from hindsight_site.refusals import FieldError, Invalid
from memories.enums import Kind, Status, Tier

IGNORED = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Arguments that this tool does not know; they had no effect.",
}
CUT = {"type": "boolean", "description": "True when long texts or lists were shortened to fit; ids never are."}


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def whole(description: str, low: int, high: int, **more: Any) -> Schema:
    return {"type": "integer", "description": description, "minimum": low, "maximum": high, **more}


def share(description: str) -> Schema:
    return {"type": "number", "description": description, "minimum": 0, "maximum": 1}


def truth(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def words(description: str, choices: list[str] | None = None) -> Schema:
    item: Schema = {"type": "string", **({"enum": choices} if choices else {})}
    return {"type": "array", "description": description, "items": item}


def thing(description: str) -> Schema:
    return {"type": "object", "description": description}


def arguments(properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An input schema."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def result(properties: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    """An output schema, with what any result may say about itself."""
    known = {**properties, "ignored_arguments": IGNORED, "cut": CUT}
    return {"type": "object", "properties": known, "required": list(required)}


def maybe(schema: Schema) -> Schema:
    """The same, or null. For results only."""
    return {**schema, "type": [schema["type"], "null"]}


KINDS = [str(kind) for kind in Kind]
TIERS = [str(tier) for tier in Tier]
AGENT = text("Only with a token of the whole team: the short name of the agent that you are.")
SESSION = text("Your name for the session or conversation that this belongs to.")
ENVIRONMENT = thing('Where you work, such as {"os": "linux", "python": "3.12"}. Lessons from elsewhere are left out.')
KEY = text("Any text that is new for each call. For a day the same call with the same key does nothing more.")
MEMORY_ID = text("The id of a memory, as hindsight_recall gives it.")
ID = {"type": "string", "format": "uuid"}
STATUS = {"type": "string", "enum": [str(status) for status in Status]}


def ident(value: Any, name: str) -> uuid.UUID:
    """Return the id in an argument: as it is, or the end of one of our addresses. Raises `Invalid`."""
    plain = str(value or "").strip().rpartition("/")[2].strip("<>{}\"'` ")
    try:
        return uuid.UUID(plain)
    except ValueError:
        message = "is needed." if not plain else "must be an id as another tool gave it, like 0199a3b2-5d21-7b0a-…"
        raise Invalid(f"{name} {message}", errors=(FieldError(name, message),)) from None
