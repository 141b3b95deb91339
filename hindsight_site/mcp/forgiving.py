"""Arguments as models send them: near enough is good enough, as long as the meaning is plain.

Numbers, booleans, lists and objects may come as strings, a list of one as the one, null for absent, and names
in another case. What a tool does not know is left out and told. Nothing is guessed: a value that fits in no
plain way stays as it is, and the form that checks it afterwards says what is wrong. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

YES, NO = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


def read(
    arguments: Mapping[str, Any], schema: Mapping[str, Any], aliases: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that a tool's input schema knows, mended, and the names of those it does not.

    `aliases` are other names that models use for an argument; its own name goes before them.
    """
    known = schema["properties"]
    named = {name: value for name, value in arguments.items() if name in known}
    ignored = []
    for name, value in arguments.items():
        if name in known:
            continue
        meant = aliases.get(name)
        if meant is not None and named.get(meant) is None:
            named[meant] = value
        else:
            ignored.append(name)
    mended = {name: mend(value, known[name]) for name, value in named.items() if not _absent(value, known[name])}
    return mended, sorted(ignored)


def _absent(value: Any, schema: Mapping[str, Any]) -> bool:
    """Null, or an empty string where only certain words make sense."""
    return value is None or (value == "" and "enum" in schema)


def mend(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return `value` in the type that `schema` asks for where that is plain, else as it is."""
    match schema.get("type"):
        case "integer":
            return _whole(value)
        case "number":
            return _number(value)
        case "boolean":
            return _truth(value)
        case "array":
            return _many(value, schema.get("items", {}))
        case "object":
            return _object(value, schema.get("properties", {}))
        case "string":
            return _text(value, schema.get("enum", ()))
    return value


def _whole(value: Any) -> Any:
    number = _number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return value
    return number if abs(number) < float("inf") else value  # not NaN either


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in YES else False if word in NO else value
    return bool(value) if value in (0, 1) else value


def _many(value: Any, items: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        value = _listed(value, items)
    elif isinstance(value, Mapping):
        value = [value]
    return [mend(item, items) for item in value] if isinstance(value, list) else value


def _listed(text: str, items: Mapping[str, Any]) -> Any:
    """A list in a string: as JSON, or (of words) with commas between."""
    parsed = _json(text)
    if isinstance(parsed, list | dict):
        return parsed if isinstance(parsed, list) else [parsed]
    if items.get("type") != "string":
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _object(value: Any, properties: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        parsed = _json(value)
        value = parsed if isinstance(parsed, dict) else value
    if not isinstance(value, Mapping):
        return value
    return {
        name: mend(part, properties[name]) if name in properties and part is not None else part
        for name, part in value.items()
    }


def _text(value: Any, words: tuple[str, ...] | list[str]) -> Any:
    if isinstance(value, bool | int | float | dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if words and isinstance(value, str) and value not in words:
        plain = value.strip().lower().replace(" ", "_").replace("-", "_")
        return plain if plain in words else value
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
