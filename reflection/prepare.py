"""Making a trace ready to be distilled: without our own echo, without repeats, in pieces when long.

Cutting keeps every place: what is cut inside a step becomes blanks of the same length and a repeated
result becomes a note, so that a span in a prepared step is the same span in the original one. Only the
notes have no original; `Prepared.original_quote` tells.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from memories.safety.planted import strings_of
from reflection.distill.calls import is_call
from reflection.distill.signs import is_result
from reflection.echo import Needle, blanked, echoes, heard, needles, without_echoes
from reflection.enums import Role
from reflection.forms import Quote, StepForm, TraceForm, step_text

RECALL_TOOLS = ("hindsight_recall", "hindsight_get")  # what they return is our own memory
RESOURCE = "hindsight://"  # what a client's reading tool names when it reads a memory of ours
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_BLANKS = re.compile(r"[ \t]{2,}")
_NOTE = "(the same result as step {})"  # read back by distill.calls.SAME_RESULT


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was left out: characters of our own recall, and results that repeat an earlier one."""

    recalled_characters: int = 0
    repeated_results: int = 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cleaned trace beside the one it was made from. Steps keep their sequence numbers and places."""

    trace: TraceForm
    original: TraceForm
    dropped: Dropped

    def original_quote(self, quote: Quote) -> Quote | None:
        """Return a quote from a prepared step as a quote from the original step, or None.

        None for what the original does not hold: a note about a repeated result, or blanks.
        """
        step = next((step for step in self.original.steps if step.sequence == quote.step), None)
        if step is None or not quote.text.strip():
            return None
        return quote if step.text[quote.start : quote.end] == quote.text else None


@dataclass(frozen=True, slots=True)
class Piece:
    """A step, or part of one that alone is longer than a shard: `step.text[start:end]`."""

    step: StepForm
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.step.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive pieces of a trace, at most `max_chars` characters together."""

    pieces: tuple[Piece, ...]

    @property
    def length(self) -> int:
        return sum(piece.end - piece.start for piece in self.pieces)


def prepare(trace: TraceForm, recalled_texts: Sequence[str] = (), recall_ids: Collection[str] = ()) -> Prepared:
    """Cut what came from our own recall, and collapse identical tool results.

    `recalled_texts` are memories that were handed to this agent; they are cut wherever they stand word for
    word (see `reflection.echo`). Framed contexts are cut whole, and so are the results of our own recall
    tools and those that bear one of `recall_ids`.
    """
    known = heard(needles(recalled_texts), _texts(trace))
    own = _own_results(trace, recall_ids)
    steps: list[StepForm] = []
    first_seen: dict[tuple[str, str], int] = {}
    cut = repeated = 0
    for step in trace.steps:
        cleaned = _cleaned(step, own, known)
        cut += _differing(step, cleaned)
        note = _repeat_note(step, cleaned.content, first_seen)
        repeated += note is not None
        steps.append(cleaned if note is None else replace(cleaned, content=note))
    spoken = replace(trace, task=_said(trace.task, known), result=_said(trace.result, known), steps=tuple(steps))
    return Prepared(spoken, trace, Dropped(cut, repeated))


def shard(trace: TraceForm, max_chars: int) -> list[Shard]:
    """Split a trace into shards of at most `max_chars` characters of step text.

    Cuts fall where a sub-goal begins (a user's message, or the agent's words after a result) when the
    parts between such places fit, else between a result and what follows, else between steps; inside a
    step only when that step alone is too long. Every character of every step is in exactly one piece.
    Raises ValueError for a limit below 1.
    """
    if max_chars < 1:
        raise ValueError("max_chars must be at least 1")
    groups = [group for goal in _goals(trace.steps) for group in _fitting(goal, max_chars)]
    shards: list[Shard] = []
    for group in groups:
        pieces = tuple(piece for step in group for piece in _pieces(step, max_chars))
        for part in _packed(pieces, max_chars):
            if shards and shards[-1].length + part.length <= max_chars:
                shards[-1] = Shard(shards[-1].pieces + part.pieces)
            else:
                shards.append(part)
    return shards


def _texts(trace: TraceForm) -> Iterator[str]:
    yield from (trace.task, trace.result)
    for step in trace.steps:
        yield step.content
        yield from strings_of(step.arguments)


def _own_results(trace: TraceForm, recall_ids: Collection[str]) -> set[int]:
    """Return the results that are our own memory: of our tools whatever prefix a client gives them, of our
    resources, and every result that bears the id of a recall that this agent made."""
    own: set[int] = set()
    waiting: list[StepForm] = []  # calls that were not answered yet
    for step in trace.steps:
        if is_call(step):
            waiting.append(step)
        elif is_result(step):
            call = _answered(step, waiting)
            if _is_ours(step) or (call and _asks_us(call)) or _bears(step.content, recall_ids):
                own.add(step.sequence)
    return own


def _answered(result: StepForm, waiting: list[StepForm]) -> StepForm | None:
    """Take from the waiting calls the one that a result answers: of the same tool, or the oldest for one without."""
    call = next((call for call in waiting if not result.tool or call.tool == result.tool), None)
    if call is not None:
        waiting.remove(call)
    return call


def _is_ours(step: StepForm) -> bool:
    return step.tool.endswith(RECALL_TOOLS)


def _asks_us(call: StepForm) -> bool:
    return _is_ours(call) or any(text.startswith(RESOURCE) for text in strings_of(call.arguments))


def _bears(text: str, recall_ids: Collection[str]) -> bool:
    return bool(recall_ids) and any(found in recall_ids for found in _UUID.findall(text))


def _cleaned(step: StepForm, own: set[int], known: Sequence[Needle]) -> StepForm:
    content = blanked(step.content, None if step.sequence in own else echoes(step.content, known))
    return replace(step, content=content, arguments=without_echoes(step.arguments, known))


def _said(text: str, known: Sequence[Needle]) -> str:
    """A text about the whole task without its echoes; nothing is quoted from it, so that no place has to stay."""
    spans = echoes(text, known)
    return _BLANKS.sub(" ", blanked(text, spans)).strip() if spans else text


def _differing(before: StepForm, after: StepForm) -> int:
    """How many characters of a step were blanked."""
    pairs = [(before.content, after.content)]
    if before.arguments != after.arguments:
        pairs.append((step_text("", "", before.arguments), step_text("", "", after.arguments)))
    return sum(a != b for old, new in pairs for a, b in zip(old, new, strict=True))


def _repeat_note(step: StepForm, content: str, first_seen: dict[tuple[str, str], int]) -> str | None:
    """Return the note that stands for a repeated result, or None for a first or short one."""
    if not is_result(step) or not content.strip():
        return None
    earlier = first_seen.setdefault((step.tool, content), step.sequence)
    note = _NOTE.format(earlier)
    return note if earlier != step.sequence and len(note) < len(content) else None


def _goals(steps: Sequence[StepForm]) -> list[list[StepForm]]:
    """Split steps where a user speaks, or where the agent speaks after a result."""
    goals: list[list[StepForm]] = []
    before: StepForm | None = None
    for step in steps:
        plans = step.role == Role.ASSISTANT and not is_call(step) and before is not None and is_result(before)
        if before is None or step.role == Role.USER or plans:
            goals.append([])
        goals[-1].append(step)
        before = step
    return goals


def _fitting(goal: list[StepForm], max_chars: int) -> list[list[StepForm]]:
    """Return a sub-goal whole when it fits, else its exchanges: calls with the results they got."""
    if sum(len(step.text) for step in goal) <= max_chars:
        return [goal]
    exchanges: list[list[StepForm]] = []
    for index, step in enumerate(goal):
        if index == 0 or (is_result(goal[index - 1]) and not is_result(step)):
            exchanges.append([])
        exchanges[-1].append(step)
    return exchanges


def _pieces(step: StepForm, max_chars: int) -> Iterator[Piece]:
    """Return a step whole, or cut at paragraphs, lines or words when it is over the limit."""
    text, start = step.text, 0
    while len(text) - start > max_chars:
        end = start + max_chars
        for mark in ("\n\n", "\n", "。", ". ", " "):
            at = text.rfind(mark, start + max_chars // 2, end)
            if at >= 0:
                end = min(at + len(mark), end)
                break
        yield Piece(step, start, end)
        start = end
    yield Piece(step, start, len(text))


def _packed(pieces: Sequence[Piece], max_chars: int) -> Iterator[Shard]:
    """Fill shards with pieces in order."""
    held: list[Piece] = []
    length = 0
    for piece in pieces:
        size = piece.end - piece.start
        if held and length + size > max_chars:
            yield Shard(tuple(held))
            held, length = [], 0
        held.append(piece)
        length += size
    if held:
        yield Shard(tuple(held))
