"""What is said to the model: the prompt files, and the record framed as data.

The instructions never contain anything from a trace, and the record never stands outside its sections.
The line that begins a section carries a word drawn anew for each message, so that no text in a trace can
open or close one.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from reflection.distill.endpoint import Message
from reflection.forms import Candidate, TraceForm
from reflection.prepare import Piece

# Where our own recall was cut out, blanks keep the places of what follows.
_BLANKS = re.compile(r"[ \t]{20,}")

PROMPTS = Path(__file__).parent / "prompts"
MAX_KNOWN = 20
MAX_KNOWN_CHARS = 500
MAX_ARGUMENT_CHARS = 2_000  # of a call's arguments beside what the agent said with it
MAX_PROBLEM_ANSWER_CHARS = 20_000  # of a bad answer that is shown to the model again


@cache
def prompt(name: str) -> str:
    """The text of one prompt file."""
    return (PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


@cache
def prompt_version() -> str:
    """A short hash over all prompt files: changes whenever one of them does."""
    digest = hashlib.sha256()
    for path in sorted(PROMPTS.glob("*.md")):
        digest.update(f"{path.name}\n{path.read_text(encoding='utf-8')}\n".encode())
    return f"prompts-{digest.hexdigest()[:12]}"


def whole_messages(trace: TraceForm, pieces: Sequence[Piece], known: Sequence[str]) -> list[Message]:
    """Ask for structured candidates from a trace in one go."""
    return [
        _system("frame", trace.outcome, "kinds", "format_answer"),
        _user(_record(trace, pieces, known, "")),
    ]


def part_messages(
    trace: TraceForm, pieces: Sequence[Piece], known: Sequence[str], part: int, parts: int
) -> list[Message]:
    """Ask for drafts from one part (counted from 1) of a trace."""
    place = f" It is part {part} of {parts} of a longer one." if parts > 1 else ""
    return [
        _system("frame", trace.outcome, "kinds", "format_drafts"),
        _user(_record(trace, pieces, known, place)),
    ]


def merge_messages(trace: TraceForm, drafts: Sequence[Candidate], known: Sequence[str]) -> list[Message]:
    """Ask for the drafts of all parts to be filtered, merged and structured."""
    mark = _mark()
    sections = [
        *_about(trace, known, mark),
        *(f"<<{mark} draft {place}>>\n{_draft(draft)}" for place, draft in enumerate(drafts, start=1)),
    ]
    return [
        _system("frame", trace.outcome, "merge", "kinds", "format_answer"),
        _user(_framed(mark, sections, "")),
    ]


def repair_messages(messages: Sequence[Message], answer: str, problems: Sequence[str]) -> list[Message]:
    """Show the model its answer and what is wrong with it."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return [
        *messages,
        {"role": "assistant", "content": answer[:MAX_PROBLEM_ANSWER_CHARS] or "(nothing)"},
        _user(prompt("repair").replace("PROBLEMS", listed)),
    ]


def _system(*names: str) -> Message:
    return {"role": "system", "content": "\n\n".join(prompt(name) for name in names)}


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _mark() -> str:
    return secrets.token_hex(6)


def _record(trace: TraceForm, pieces: Sequence[Piece], known: Sequence[str], place: str) -> str:
    mark = _mark()
    sections = [*_about(trace, known, mark), *(_piece(piece, mark) for piece in pieces)]
    return _framed(mark, sections, place)


def _framed(mark: str, sections: Sequence[str], place: str) -> str:
    return (
        f"The random word is {mark}. The record follows.{place}\n\n"
        + "\n".join(sections)
        + f"\n<<{mark} end>>\n\nThe record ends here. Answer with the JSON object alone."
    )


def _about(trace: TraceForm, known: Sequence[str], mark: str) -> Iterator[str]:
    """The sections about the whole task."""
    yield f"<<{mark} task>>\n{trace.task}"
    if trace.task_type:
        yield f"<<{mark} task type>>\n{trace.task_type}"
    if trace.environment:
        yield f"<<{mark} environment>>\n{json.dumps(dict(trace.environment), ensure_ascii=False)}"
    if trace.result:
        yield f"<<{mark} result>>\n{trace.result}"
    for place, text in enumerate(known[:MAX_KNOWN], start=1):
        yield f"<<{mark} known {place}>>\n{text[:MAX_KNOWN_CHARS]}"


def _piece(piece: Piece, mark: str) -> str:
    step = piece.step
    parts = [f"step {step.sequence}", str(step.role), str(step.kind)]
    parts += [step.at.isoformat(timespec="seconds")] if step.at else []
    parts += [json.dumps(step.tool[:100], ensure_ascii=False)] if step.tool else []
    parts += ["error"] if step.is_error else []
    parts += ["continued"] if piece.start else []
    shown = f"<<{mark} {' | '.join(parts)}>>\n{_BLANKS.sub('  ', piece.text)}"
    if step.content and step.arguments and not piece.start:
        arguments = json.dumps(dict(step.arguments), ensure_ascii=False, sort_keys=True)
        shown += f"\n<<{mark} arguments of step {step.sequence}>>\n{arguments[:MAX_ARGUMENT_CHARS]}"
    return shown


def _draft(draft: Candidate) -> str:
    return json.dumps(
        {
            "kind": draft.kind,
            "quotes": [{"step": quote.step, "text": quote.text} for quote in draft.quotes],
            "content": draft.content,
            "failure_class": draft.failure_class,
            "confidence": draft.confidence,
        },
        ensure_ascii=False,
    )
