"""What one address offers over the protocol. The protocol itself (`endpoint`, `protocol`, `methods`) knows no more."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types

from hindsight_site.accounts.authentication import Caller

Result = TypeVar("Result")
# Work that can say on the way how far it is: the notifications are for this request, the return value is its result.
Steps = Generator[types.ServerNotification, None, Result]


@dataclass(frozen=True, slots=True)
class Offer:
    """Tools, resources and prompts, and what answers when one is asked for.

    The callables get the caller and the request's `params`, of the form that the request's revision gives them.
    They check the caller's scopes, and raise `Fault`, or `Refused` where they say so. `read` raises `NotFound` for
    an address at which the caller finds nothing. Those of tools and prompts may answer with an
    `InputRequiredResult`, if the caller speaks a revision that has it.
    """

    info: types.Implementation
    instructions: str
    tools: Sequence[types.Tool]
    call: Callable[[Caller, Mapping[str, Any]], Steps[types.CallToolResult | types.InputRequiredResult]]
    resources: Sequence[types.Resource]
    templates: Sequence[types.ResourceTemplate]
    read: Callable[[Caller, Mapping[str, Any]], types.ReadResourceResult]
    prompts: Sequence[types.Prompt]
    prompt: Callable[[Caller, Mapping[str, Any]], types.GetPromptResult | types.InputRequiredResult]
    complete: Callable[[Caller, Mapping[str, Any]], types.Completion]
