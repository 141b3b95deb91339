"""The tiny model inside the fake endpoint: reads the record in a prompt and concludes what it shows.

Deterministic and literal: it quotes steps that are there, and knows nothing but the form of the prompt.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

MARK = re.compile(r"The random word is (\w+)\.")
WISH = re.compile(r"\b(?:remember|prefer|always|from now on)\b|记住|以后", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the record: what its line says after the mark, and its text."""

    name: str
    fields: tuple[str, ...]
    text: str

    @property
    def number(self) -> int:
        return int(self.name.split()[1])

    @property
    def tool(self) -> str:
        return next((json.loads(part) for part in self.fields if part.startswith('"')), "")

    @property
    def failed(self) -> bool:
        return "error" in self.fields

    def quote(self) -> dict[str, Any]:
        """The first 120 characters of the step, as evidence."""
        return {"step": self.number, "text": self.text.strip()[:120].strip()}


def conclude(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Return the answer to a prompt: structured candidates from its drafts, or else from its steps."""
    record = next(message["content"] for message in messages if message["role"] == "user")
    sections = read_sections(record)
    drafts = [json.loads(section.text) for section in sections if section.name.startswith("draft")]
    if drafts:
        found = [{**draft, "structure": _structure(draft)} for draft in _merged(drafts)]
    else:
        found = _from_steps(sections)
    return {"candidates": [{"durable": True, "tags": [], **item} for item in found], "left_out": []}


def read_sections(record: str) -> list[Section]:
    """Take the record apart at the lines with its mark."""
    found = MARK.search(record)
    if not found:
        return []
    line = re.compile(rf"^<<{found[1]} (.*)>>\n?", re.MULTILINE)
    heads = list(line.finditer(record))
    sections = []
    for head, following in zip(heads, heads[1:], strict=False):
        name, *fields = head[1].split(" | ")
        text = record[head.end() : following.start()].removesuffix("\n")
        sections.append(Section(name, tuple(fields), text))
    return sections


def _from_steps(sections: list[Section]) -> list[dict[str, Any]]:
    steps = [section for section in sections if section.name.startswith("step ") and section.text.strip()]
    task = next((section.text.strip() for section in sections if section.name == "task"), "")
    if not steps:
        return []
    found = [_episode(task, steps), *_recovery(steps), *_wishes(steps)]
    return [{**item, "structure": _structure(item)} for item in found]


def _episode(task: str, steps: list[Section]) -> dict[str, Any]:
    tools = list(dict.fromkeys(step.tool for step in steps if step.tool))
    failed = any(step.failed for step in steps)
    content = f"{task[:200] or 'A task'} (tools: {', '.join(tools) or 'none'})"
    return _candidate("task", content, [steps[-1]], "permanent" if failed else "none", 0.6)


def _recovery(steps: list[Section]) -> list[dict[str, Any]]:
    """The first error after which something worked."""
    for place, step in enumerate(steps):
        later = [other for other in steps[place + 1 :] if not other.failed and other.tool == step.tool]
        if step.failed and later:
            content = f"When {step.tool or 'a tool'} answers “{step.text.strip()[:80]}”, change the call: it works."
            return [_candidate("experience", content, [step, later[0]], "permanent", 0.7)]
    return []


def _wishes(steps: list[Section]) -> list[dict[str, Any]]:
    wishes = [step for step in steps if step.fields[0] == "user" and WISH.search(step.text)]
    return [_candidate("preference", step.text.strip()[:200], [step], "none", 0.8) for step in wishes[:1]]


def _candidate(kind: str, content: str, steps: list[Section], failure_class: str, confidence: float) -> dict[str, Any]:
    return {
        "kind": kind,
        "quotes": [step.quote() for step in steps],
        "content": content,
        "failure_class": failure_class,
        "confidence": confidence,
    }


def _merged(drafts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each content once; of the episodes of several parts only the first."""
    kept: dict[str, dict[str, Any]] = {}
    for draft in drafts:
        kept.setdefault("task" if draft["kind"] == "task" else draft["content"], draft)
    return list(kept.values())


def _structure(candidate: dict[str, Any]) -> dict[str, Any]:
    content = candidate["content"]
    match candidate["kind"]:
        case "task":
            return {"task_goal": content, "tools_used": [], "resume_hint": None}
        case "experience":
            environment = [{"name": "seen_in", "value": "a record"}]
            return {"situation": {"text": content, "environment": environment}, "lesson": content}
        case "preference":
            return {"holder": "user", "preference": content, "strength": 0.8}
        case "fact":
            return {"subject": "it", "predicate": "says", "object": content}
    return {"subject": "it", "relation": "relates to", "object": content[:200]}
