"""The model distiller: a trace in, candidates with verbatim evidence out.

A short trace that did not fail takes one request. A failed or long one goes to the strong model in two
steps: drafts from every part, then one request that filters, merges and structures them. Quotes are looked
up in the trace after each step, so that nothing without evidence reaches the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from reflection import prepare
from reflection.distill import prompting, schemas
from reflection.distill.endpoint import Conversation, Message, ModelEndpoint, conversation
from reflection.distill.errors import DistillError
from reflection.distill.quotes import QuoteFinder
from reflection.distill.schemas import Answered, Draft, Proposal, Reading
from reflection.enums import RejectReason, TraceStatus
from reflection.forms import Candidate, Distilled, TraceForm

__all__ = ["DistillError", "ModelEndpoint", "distil"]

MAX_PARTS = 24  # the parts of a longer trace grow instead
PARALLEL_REQUESTS = 4
MAX_DRAFTS = 60  # the most confident of them are merged

Rejected = tuple[tuple[str, str], ...]


def distil(trace: TraceForm, known: Sequence[str] = (), *, endpoint: ModelEndpoint) -> Distilled:
    """Return what a model concludes from `trace`, and what was rejected with the reason.

    `known` are texts of memories that are near to the task already; the model repeats one word for word to
    confirm it. Takes `endpoint.budget_seconds` at most. Raises `DistillError`.
    """
    parts = _parts(trace, endpoint.shard_chars)
    thorough = trace.outcome == TraceStatus.FAILED or len(parts) > 1
    finder = QuoteFinder(trace.steps)
    with conversation(endpoint, endpoint.model_strong if thorough else endpoint.model) as talk:
        if thorough:
            candidates, rejected = _in_two_steps(talk, trace, parts, known, finder)
        else:
            pieces = parts[0].pieces if parts else ()
            candidates, rejected = _answer(talk, prompting.whole_messages(trace, pieces, known), finder)
        return Distilled(
            candidates=candidates,
            distiller="model",
            rejected=tuple(dict.fromkeys(rejected)),
            model=talk.model,
            prompt_version=prompting.prompt_version(),
            tokens_in=talk.tokens_in,
            tokens_out=talk.tokens_out,
            cost_usd=talk.cost_usd(),
        )


def _parts(trace: TraceForm, shard_chars: int) -> list[prepare.Shard]:
    total = sum(len(step.text) for step in trace.steps)
    return prepare.shard(trace, max(shard_chars, -(-total // MAX_PARTS)))


def _in_two_steps(
    talk: Conversation,
    trace: TraceForm,
    parts: Sequence[prepare.Shard],
    known: Sequence[str],
    finder: QuoteFinder,
) -> tuple[tuple[Candidate, ...], Rejected]:
    asked = [
        prompting.part_messages(trace, part.pieces, known, place, len(parts))
        for place, part in enumerate(parts, start=1)
    ]
    drafts, rejected = _drafts(talk, asked, finder)
    if not drafts:
        return (), rejected
    drafts = sorted(drafts, key=lambda draft: -draft.confidence)
    over = tuple((draft.content, RejectReason.OVER_LIMIT.value) for draft in drafts[MAX_DRAFTS:])
    merging = prompting.merge_messages(trace, drafts[:MAX_DRAFTS], known)
    candidates, refused = _answer(talk, merging, finder)
    return candidates, (*rejected, *over, *refused)


def _drafts(
    talk: Conversation, asked: Sequence[list[Message]], finder: QuoteFinder
) -> tuple[list[Candidate], Rejected]:
    """The grounded drafts of all parts, asked for side by side; the first failure ends it."""
    drafts: list[Candidate] = []
    rejected: list[tuple[str, str]] = []
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        waiting = [pool.submit(_read, talk, messages, Draft) for messages in asked]
        try:
            for part in waiting:
                reading = part.result()
                found, refused = schemas.to_candidates(reading.candidates, finder)
                drafts += found
                rejected += [*refused, *_refused(reading)]
        except DistillError:
            pool.shutdown(cancel_futures=True)
            raise
    return drafts, tuple(rejected)


def _answer(talk: Conversation, messages: list[Message], finder: QuoteFinder) -> tuple[tuple[Candidate, ...], Rejected]:
    reading = _read(talk, messages, Proposal)
    candidates, rejected = schemas.to_candidates(reading.candidates, finder)
    return candidates, (*rejected, *_refused(reading))


def _read(talk: Conversation, messages: list[Message], form: type[Answered]) -> Reading:
    """Ask, and ask once more where the answer breaks the schema. Candidates that stay broken are dropped."""
    schema = schemas.answer_schema() if form is Proposal else schemas.drafts_schema()
    answer = talk.ask(messages, schema)
    first = schemas.read_answer(answer, form)
    if not first.problems:
        return first
    again = talk.ask(prompting.repair_messages(messages, answer, first.problems), schema)
    second = schemas.read_answer(again, form)
    reading = max(second, first, key=lambda read: (read.usable, len(read.candidates)))
    if not reading.usable:
        raise DistillError(f"The model's answer could not be read: {reading.problems[0]}", retryable=False)
    return reading


def _refused(reading: Reading) -> Rejected:
    return (
        *((note.content, str(note.reason)) for note in reading.left_out),
        *((content, schemas.MALFORMED) for content in reading.malformed),
        *((content, RejectReason.OVER_LIMIT.value) for content in reading.over_limit),
    )
