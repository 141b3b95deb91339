"""What a model has to answer: the JSON schema that is sent to it, and the way back into candidates.

An answer is untrusted. Every candidate is checked for itself, so that a bad one does not take the
others with it; fields that are not listed here (a trust, a scope, a team, a status) are never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memories.enums import Kind, Tier
from memories.structures import FREE_OBJECTS, STRUCTURES, StructureError, validate
from reflection.distill.answers import AnswerError, read_object
from reflection.distill.quotes import QuoteFinder
from reflection.enums import RejectReason
from reflection.forms import Candidate, Quote

MAX_CANDIDATES = 12  # read from one answer; the gates keep fewer
MAX_PROBLEMS = 12  # told to the model in a repair
MALFORMED = "malformed"  # a candidate that broke the schema twice

#: Reasons a model may give for leaving something out.
LEFT_OUT = (RejectReason.NOT_DURABLE, RejectReason.TRANSIENT, RejectReason.TOO_VAGUE)

KindName = Literal["fact", "preference", "experience", "task", "relation"]
FailureName = Literal["none", "transient", "permanent", "environment", "user_error", "impossible"]


class _Answered(BaseModel):
    """Settings of everything that is read from a model: unknown fields are ignored, types are not bent
    (but for numbers that come as text)."""

    model_config = ConfigDict(strict=True, extra="ignore", str_strip_whitespace=True, allow_inf_nan=False)


class AnsweredQuote(_Answered):
    """A passage that the model says it copied from a step."""

    step: Annotated[int, Field(ge=0, strict=False)]
    text: Annotated[str, Field(min_length=1)]


class Draft(_Answered):
    """A candidate before it is structured; the answer about one part of a long trace."""

    kind: KindName
    quotes: Annotated[list[AnsweredQuote], Field(max_length=20)] = []
    content: Annotated[str, Field(min_length=1, max_length=2_000)]
    failure_class: FailureName = "none"
    durable: bool = True
    confidence: Annotated[float, Field(ge=0, le=1, strict=False)]


class Proposal(Draft):
    """A candidate as it is to be stored, if the gates let it in."""

    structure: dict[str, Any]
    operation: Literal["add", "confirm", "refine", "contradict"] = "add"
    known: Annotated[int | None, Field(strict=False)] = None  # the number of a known section
    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=60)]], Field(max_length=8)] = []


class LeftOut(_Answered):
    """Something the model weighed and did not propose."""

    content: Annotated[str, Field(min_length=1, max_length=2_000)]
    reason: Literal["not_durable", "transient", "too_vague"]


Answered = Draft | Proposal


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer, read. `usable` is False when there is no envelope to look into.

    `problems` are sentences for the model; `malformed` are the contents of the candidates they concern.
    """

    usable: bool
    candidates: tuple[Answered, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    over_limit: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read_answer(text: str, form: type[Answered]) -> Reading:
    """Read an answer whose candidates have the given form (`Draft` or `Proposal`). Never raises."""
    try:
        envelope = read_object(text)
    except AnswerError as error:
        return Reading(usable=False, problems=(str(error),))
    items = envelope.get("candidates")
    if not isinstance(items, list):
        return Reading(usable=False, problems=("candidates: is required and must be a list.",))
    good: list[Answered] = []
    malformed: list[str] = []
    problems: list[str] = []
    for place, item in enumerate(items[:MAX_CANDIDATES]):
        try:
            good.append(_read_candidate(item, form))
        except (ValidationError, StructureError) as error:
            malformed.append(_content_of(item))
            problems += [f"candidates[{place}]{problem}" for problem in _problems(error)]
    return Reading(
        usable=True,
        candidates=tuple(good),
        left_out=_read_left_out(envelope.get("left_out")),
        over_limit=tuple(_content_of(item) for item in items[MAX_CANDIDATES:]),
        malformed=tuple(malformed),
        problems=tuple(problems[:MAX_PROBLEMS]),
    )


def _read_candidate(item: Any, form: type[Answered]) -> Answered:
    parsed = form.model_validate(_without_blanks(item))
    if isinstance(parsed, Proposal):
        if not parsed.structure:
            raise StructureError([("", "is required")])
        structure = _pairs_to_objects(parsed.structure)
        return parsed.model_copy(update={"structure": validate(parsed.kind, structure, drop_unknown=True)})
    return parsed


def _problems(error: ValidationError | StructureError) -> list[str]:
    if isinstance(error, StructureError):
        return [f".structure{'.' if field else ''}{field}: {message}" for field, message in error.errors]
    return [
        f"{''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in detail['loc'])}: {detail['msg']}"
        for detail in error.errors()
    ]


def _content_of(item: Any) -> str:
    content = item.get("content") if isinstance(item, dict) else None
    return content.strip()[:500] if isinstance(content, str) and content.strip() else "(no content)"


def _read_left_out(items: Any) -> tuple[LeftOut, ...]:
    """What the model left out; notes of no consequence, so unreadable ones are let go."""
    read = []
    for item in items[:MAX_CANDIDATES] if isinstance(items, list) else ():
        try:
            read.append(LeftOut.model_validate(item))
        except ValidationError:
            continue
    return tuple(read)


def to_candidates(
    answered: Sequence[Answered], finder: QuoteFinder
) -> tuple[tuple[Candidate, ...], tuple[tuple[str, str], ...]]:
    """Return (candidates, rejected) of what a model proposed about a trace.

    A quote that is not in the trace is dropped; a candidate without any left is rejected as
    `not_grounded`, one that the model itself calls a matter of this task alone as `not_durable` (an
    episode is one by nature). Everything seen once is episodic; promotion is not the distiller's.
    """
    kept: list[Candidate] = []
    rejected: list[tuple[str, str]] = []
    for item in answered:
        quotes = located(item.quotes, finder)
        if not quotes:
            rejected.append((item.content, RejectReason.NOT_GROUNDED.value))
        elif not item.durable and item.kind != Kind.TASK:
            rejected.append((item.content, RejectReason.NOT_DURABLE.value))
        else:
            kept.append(_candidate(item, quotes))
    return tuple(kept), tuple(rejected)


def _candidate(item: Answered, quotes: tuple[Quote, ...]) -> Candidate:
    structure = dict(item.structure) if isinstance(item, Proposal) else {}
    if structure and item.kind in (Kind.EXPERIENCE, Kind.TASK):
        structure["failure_class"] = item.failure_class
    return Candidate(
        kind=item.kind,
        tier=Tier.EPISODIC.value,
        content=item.content,
        structure=structure,
        confidence=item.confidence,
        quotes=quotes,
        failure_class=item.failure_class,
        tags=tuple(dict.fromkeys(item.tags)) if isinstance(item, Proposal) else (),
        **_operation(item),
    )


def _operation(item: Answered) -> dict[str, Any]:
    """What the candidate does to which known memory; without a number it does nothing to any."""
    if not isinstance(item, Proposal) or item.known is None or item.known < 1:
        return {}
    return {"operation": item.operation, "about": item.known - 1}


def located(quotes: Sequence[AnsweredQuote], finder: QuoteFinder) -> tuple[Quote, ...]:
    """The quotes that really stand in the trace, each once, in the order given."""
    found = (finder.find(quote.step, quote.text) for quote in quotes)
    return tuple(dict.fromkeys(quote for quote in found if quote is not None))


# --- The schema that is sent ---------------------------------------------------------------------------
# Only what strict structured output takes everywhere: every property required, nothing additional, no
# references, no limits. Objects with free names cannot be said that way; they go as name and value pairs.

_KEPT = ("type", "enum", "const", "description")
_PAIR = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "value": {"type": ["string", "number", "boolean"]}},
    "required": ["name", "value"],
    "additionalProperties": False,
}


def drafts_schema() -> dict[str, Any]:
    """The JSON schema of an answer made of `Draft`s."""
    return _object({"candidates": {"type": "array", "items": _strict(Draft.model_json_schema())}})


def answer_schema() -> dict[str, Any]:
    """The JSON schema of an answer made of `Proposal`s, one form per kind, and of what was left out."""
    forms = [_proposal_schema(kind, model) for kind, model in STRUCTURES.items()]
    left_out = _strict(LeftOut.model_json_schema())
    return _object(
        {
            "candidates": {"type": "array", "items": {"anyOf": forms}},
            "left_out": {"type": "array", "items": left_out},
        }
    )


def _proposal_schema(kind: str, model: type[BaseModel]) -> dict[str, Any]:
    properties = _strict(Proposal.model_json_schema())["properties"]
    structure = _strict(model.model_json_schema())["properties"]
    structure.pop("failure_class", None)  # said once, beside the structure
    return _object({**properties, "kind": {"type": "string", "enum": [kind]}, "structure": _object(structure)})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _strict(node: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A schema made by pydantic in the strict form, references resolved."""
    definitions = definitions or node.get("$defs", {})
    if "$ref" in node:
        return _strict(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in node:
        return {"anyOf": [_strict(option, definitions) for option in node["anyOf"]]}
    if node.get("type") == "object":
        if "properties" not in node:
            return {"type": "array", "items": _PAIR}
        return _object({name: _strict(part, definitions) for name, part in node["properties"].items()})
    if node.get("type") == "array":
        return {"type": "array", "items": _strict(node["items"], definitions)}
    return {name: node[name] for name in _KEPT if name in node}


def _without_blanks(value: Any) -> Any:
    """Strict output writes null or "" for what is absent; here absent is absent (a pair keeps its value)."""
    if isinstance(value, dict):
        return {
            name: _without_blanks(item)
            for name, item in value.items()
            if item is not None and (item != "" or name == "value")
        }
    if isinstance(value, list):
        return [_without_blanks(item) for item in value]
    return value


def _pairs_to_objects(value: Any) -> Any:
    """Lists of name and value pairs become the objects that they stand for; so does one without any pair."""
    if isinstance(value, dict):
        return {
            name: {} if item == [] and name in FREE_OBJECTS else _pairs_to_objects(item) for name, item in value.items()
        }
    if isinstance(value, list):
        if value and all(isinstance(item, dict) and item.keys() == {"name", "value"} for item in value):
            return {str(item["name"]): item["value"] for item in value}
        return [_pairs_to_objects(item) for item in value]
    return value
