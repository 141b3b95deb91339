"""The structure stored beside a memory's content, one model per kind, and their validation.

Used for what callers send (unknown fields are refused by name) and for what a model answered
(unknown fields are dropped). Pure: no ORM, no settings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from memories.enums import FailureClass, Kind

MAX_STRUCTURE_BYTES = 16 * 1024  # as UTF-8 JSON, after normalisation
MAX_DEPTH = 6  # objects and lists inside one another
MAX_NAME_CHARS = 60  # of a key in environment, parameters or metrics
MAX_ITEMS = 50  # in any list or free object
MAX_INTEGER = 2**63 - 1

#: Objects whose names are the caller's own; nothing inside them is tidied away.
FREE_OBJECTS = frozenset({"environment", "parameters", "metrics"})


class StructureError(ValueError):
    """A structure that cannot be stored. `errors` holds (field, message) pairs, field as `a.b.0.c`."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {message}" if field else message for field, message in errors))
        self.errors = errors


def _scalar_as_text(value: Any) -> Any:
    """The object of a fact may arrive as a number or a boolean; it is kept as text, as JSON writes it."""
    return json.dumps(value) if isinstance(value, (bool, int, float)) else value


def _utc_text(value: Any) -> Any:
    """An aware ISO 8601 time as UTC text; times without a zone are refused."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
    except (AttributeError, ValueError) as error:
        raise ValueError("must be an ISO 8601 time with a time zone, such as 2026-01-31T09:00:00Z") from error
    if moment.tzinfo is None:
        raise ValueError("needs a time zone, such as 2026-01-31T09:00:00Z")
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise ValueError("is out of range") from error


def _after_start(valid_until: str | None, info: ValidationInfo) -> str | None:
    valid_from = info.data.get("valid_from")
    if valid_from and valid_until and datetime.fromisoformat(valid_until) <= datetime.fromisoformat(valid_from):
        raise ValueError("must be later than valid_from")
    return valid_until


def _short_names(value: dict[str, Any]) -> dict[str, Any]:
    for name in value:
        if not name.strip() or len(name) > MAX_NAME_CHARS:
            raise ValueError(f"names must have 1 to {MAX_NAME_CHARS} characters")
    return value


def _scalars_only(value: dict[str, Any]) -> dict[str, Any]:
    for name, item in value.items():
        if isinstance(item, (dict, list)):
            raise ValueError(f"{name} must be a number, a text or true/false")
    return value


Text = Annotated[str, Field(min_length=1, max_length=2_000)]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Lines = Annotated[list[Line], Field(max_length=MAX_ITEMS)]
Instant = Annotated[str, BeforeValidator(_utc_text)]
Until = Annotated[Instant | None, AfterValidator(_after_start)]
FreeObject = Annotated[dict[str, Any], Field(max_length=MAX_ITEMS), AfterValidator(_short_names)]
Metrics = Annotated[FreeObject, AfterValidator(_scalars_only)]
Failure = Annotated[FailureClass, Field(strict=False)]


class _Part(BaseModel):
    """Settings that all structures share; it carries no fields and no behaviour."""

    model_config = ConfigDict(strict=True, extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


class Fact(_Part):
    """Something that is so: `subject` `predicate` `object`, optionally during a time."""

    subject: Line
    predicate: Line
    object: Annotated[Text, BeforeValidator(_scalar_as_text)]
    valid_from: Instant | None = None
    valid_until: Until = None


class Preference(_Part):
    """What somebody wants; `strength` 0..1 says how much (1: must)."""

    holder: Line
    preference: Text
    strength: Annotated[float, Field(ge=0, le=1)] | None = None
    valid_from: Instant | None = None
    valid_until: Until = None


class Situation(_Part):
    """Where a lesson was learnt."""

    task_type: Line | None = None
    features: Lines = []
    environment: FreeObject = {}
    text: Text | None = None


class Choice(_Part):
    """What was done, and why."""

    action: Text | None = None
    parameters: FreeObject = {}
    reasoning: Text | None = None


class Outcome(_Part):
    """What came of it."""

    success: bool | None = None
    metrics: Metrics = {}


class Experience(_Part):
    """A lesson: in this situation this decision had this outcome, hence …"""

    situation: Situation | None = None
    decision: Choice | None = None
    outcome: Outcome | None = None
    lesson: Text
    applies_when: Text | None = None
    not_when: Text | None = None
    failure_class: Failure | None = None


class FailedStep(_Part):
    """Something tried in vain."""

    step: Text
    reason: Text | None = None


class Task(_Part):
    """An episode: what a task wanted, what worked, what did not, how to go on."""

    task_goal: Text
    tools_used: Lines = []
    success_steps: Annotated[list[Text], Field(max_length=MAX_ITEMS)] = []
    failure_steps: Annotated[list[FailedStep], Field(max_length=MAX_ITEMS)] = []
    final_result: Text | None = None
    failure_class: Failure | None = None
    resume_hint: Text | None = None


class Relation(_Part):
    """How two things are connected."""

    subject: Line
    relation: Line
    object: Line


STRUCTURES: dict[str, type[BaseModel]] = {
    Kind.FACT.value: Fact,
    Kind.PREFERENCE.value: Preference,
    Kind.EXPERIENCE.value: Experience,
    Kind.TASK.value: Task,
    Kind.RELATION.value: Relation,
}
_NESTED: dict[str, type[BaseModel]] = {
    "situation": Situation,
    "decision": Choice,
    "outcome": Outcome,
    "failure_steps": FailedStep,
}


def validate(kind: str, structure: Mapping[str, Any], *, drop_unknown: bool = False) -> dict[str, Any]:
    """Return the structure in its normal form: trimmed texts, UTC times, no empty parts, plain JSON values.

    An empty structure is allowed and stays empty. Unknown fields are refused by name, or left out with
    `drop_unknown` (for answers of a model). Raises `StructureError` with every problem found.
    """
    if kind not in STRUCTURES:
        raise StructureError([("kind", f"must be one of {', '.join(STRUCTURES)}")])
    if not isinstance(structure, Mapping):
        raise StructureError([("", "must be an object")])
    problems = list(_not_json(structure, (), 1))
    if problems:
        raise StructureError(problems)
    if not structure:
        return {}
    try:
        parsed = STRUCTURES[kind].model_validate(dict(structure), extra="ignore" if drop_unknown else "forbid")
    except ValidationError as error:
        raise StructureError([_explained(kind, detail) for detail in error.errors()]) from error
    normal = _without_empty(parsed.model_dump(mode="json"))
    size = len(json.dumps(normal, ensure_ascii=False).encode())
    if size > MAX_STRUCTURE_BYTES:
        raise StructureError([("", f"is {size} bytes long; at most {MAX_STRUCTURE_BYTES} are allowed")])
    return normal


def _not_json(value: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, str]]:
    """What PostgreSQL's jsonb could not hold, or nobody should send."""
    if isinstance(value, str):
        if message := _bad_text(value):
            yield ".".join(path), message
    elif isinstance(value, float) and not math.isfinite(value):
        yield ".".join(path), "must be a finite number"
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        yield ".".join(path), "is too large a number"
    elif isinstance(value, (Mapping, list)):
        if depth > MAX_DEPTH:
            yield ".".join(path), f"is nested more than {MAX_DEPTH} levels deep"
            return
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, item in pairs:
            if isinstance(value, Mapping) and (not isinstance(name, str) or _bad_text(name)):
                yield ".".join(path), "has a name that is not plain text"
                continue
            yield from _not_json(item, (*path, str(name)), depth + 1)
    elif not isinstance(value, (int, float, datetime)) and value is not None:
        yield ".".join(path), "must be a JSON value"


def _bad_text(text: str) -> str:
    if "\x00" in text:
        return "must not contain NUL characters"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "must not contain half a surrogate pair"
    return ""


def _explained(kind: str, detail: ErrorDetails) -> tuple[str, str]:
    """Pydantic's finding in the words of an API."""
    field = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "missing":
        return field, "is required"
    if detail["type"] == "extra_forbidden":
        inside = len(detail["loc"]) > 1
        model = _NESTED[str(detail["loc"][0])] if inside else STRUCTURES[kind]
        return field, f"is not a known field; known here: {', '.join(model.model_fields)}"
    if detail["type"] == "string_too_short":
        return field, "must not be empty"
    if detail["type"] in ("model_type", "dict_type"):
        return field, "must be an object"
    if detail["type"] == "enum":
        return field, f"must be one of {', '.join(FailureClass.values)}"
    return field, detail["msg"].removeprefix("Value error, ").removeprefix("Input ").strip()


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out the fields that say nothing: null, and texts, lists and objects without content."""
    kept = {}
    for name, value in fields.items():
        if isinstance(value, dict) and name not in FREE_OBJECTS:
            value = _without_empty(value)
        elif isinstance(value, list):
            value = [_without_empty(item) if isinstance(item, dict) else item for item in value]
        if value not in (None, "", [], {}):
            kept[name] = value
    return kept
