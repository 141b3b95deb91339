"""What a tool is: its description for a model, the forms of its arguments and result, and what it runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """A result: `values` for programs, in the tool's output form, and `text` that a model reads."""

    values: dict[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a tool is: `done` of `total`, in a unit of its own, and what to say of it."""

    done: float
    total: float
    message: str


Run = Callable[[Caller, dict[str, Any]], Output]
Waiting = Generator[Progress, None, Output]


@dataclass(frozen=True, slots=True)
class Waits:
    """In place of a plain `run`: opens its own transactions, so that none is held while nothing happens.

    What it began says how far it is, and may be closed at each of these points.
    """

    begin: Callable[[Caller, dict[str, Any]], Waiting]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run` gets the mended arguments, in a transaction in which the caller's team is at work.

    `reads_only`, `destroys` and `repeatable` are hints to clients: it changes no memory, it takes something
    away, the same call again changes nothing more. `scope_of` names a scope that some arguments need beside `scope`.
    """

    name: str
    title: str
    description: str
    scope: TokenScope
    run: Run | Waits
    input_schema: Schema
    output_schema: Schema
    reads_only: bool = False
    destroys: bool = False
    repeatable: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    scope_of: Callable[[dict[str, Any]], TokenScope | None] | None = None
