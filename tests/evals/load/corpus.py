"""What is remembered, asked and recorded under load: made sentences, every one different, drawn from a seed."""

from __future__ import annotations

import random
from typing import Any

_SERVICES = (
    "billing",
    "search",
    "checkout",
    "inventory",
    "ledger",
    "mailer",
    "gateway",
    "reports",
    "uploads",
    "pricing",
)
_PLACES = ("staging", "production", "the-eu-region", "the-us-region", "the-demo-site", "the-test-bench")
_ACTS = (
    ("restarts", "at {n}:{m:02} UTC every night"),
    ("refuses uploads larger than", "{n} megabytes unless they come in parts of {m} kilobytes"),
    ("keeps its log files for", "{n} days and moves them to the archive after {m} hours"),
    ("needs the flag --batch-{n}", "or it gives up after {m} seconds"),
    ("answers error {n}", "when the clock of the caller is more than {m} seconds behind"),
    ("has to be told the month as YYYY-MM", "since release {n}.{m}, or the export is empty"),
    ("is deployed by the team of room {n}", "who want {m} minutes of notice"),
    ("reads its limits from file limits-{n}.toml", "and looks at it again every {m} minutes"),
)
_KINDS = ("fact", "fact", "experience", "preference")


def memory(number: int) -> dict[str, Any]:
    """The body of memory `number`: the same each time, and no two alike."""
    draw = random.Random(number)
    what, how = draw.choice(_ACTS)
    numbers = {"n": draw.randrange(2, 100_000), "m": draw.randrange(60)}
    content = (
        f"Service {draw.choice(_SERVICES)}-{number} on {draw.choice(_PLACES)} {what.format(**numbers)} "
        f"{how.format(**numbers)}."
    )
    return {"content": content, "kind": draw.choice(_KINDS), "tags": [draw.choice(_SERVICES)]}


def question(number: int) -> dict[str, Any]:
    """A recall that memory `number` answers, in other words than its own."""
    content = memory(number)["content"].split()
    return {"query": f"what must I know of {content[1]} on {content[3]} before I touch it: {' '.join(content[4:8])}"}


def trace(number: int) -> dict[str, Any]:
    """A task in which a call fails, is changed, and works: enough steps to be looked back at."""
    draw = random.Random(-1 - number)
    service, flag = f"{draw.choice(_SERVICES)}-{number}", draw.randrange(100_000)
    call = {"role": "assistant", "kind": "tool_call", "tool": service}
    said = {"role": "tool", "kind": "tool_result", "tool": service}
    steps = [
        {"role": "user", "content": f"Export the report of {service}."},
        {**call, "arguments": {"month": "March"}, "content": "export"},
        {**said, "is_error": True, "content": f"Error {flag}: month must be given as YYYY-MM, got 'March'"},
        {**call, "arguments": {"month": "2026-03", "flag": flag}, "content": "export"},
        {**said, "content": f'{{"rows": {draw.randrange(1000)}, "file": "{service}.csv"}}'},
        {"role": "assistant", "content": f"The rows are in {service}.csv."},
    ]
    return {"task": f"Export the report of {service}", "steps": steps, "outcome": "succeeded"}
