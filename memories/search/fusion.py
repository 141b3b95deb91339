"""Evidence of both searches → one calibrated relevance in 0..1. Pure.

Everything is absolute: a cosine counts by how far it lies above the cosine of unrelated texts, keywords by
the share of the question they cover. Nothing is divided by the best of the batch, so relevance can be
compared between questions, and the best of a bad lot stays bad.

The numbers were chosen on half of the LoCoMo conversations together with BEAM, MemoryBank (zh), LongMemEval
and the differently-worded Chinese pairs, and checked on the other half, then the other way round; recall@10
moves by less than 0.02 on any of them when one number is changed by a third. docs/recall.md has the figures.
"""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .calibration import Calibration

VECTOR_WEIGHT = 0.1  # of one standard deviation above the background; keywords weigh 1
WEAK_COVERAGE = 0.15  # below this best coverage the words that match are mostly chance …
WEAK_KEYWORDS = 0.5  # … and count down to this
BEFORE, AFTER = 0.35, 0.3  # weight of the keywords of the turns next to it
NAMED_GAIN = 0.8  # gain of a turn whose speaker the question names …
NAMED_BONUS = 0.06  # … and what it gets even without other evidence
OTHER_LOSS = 0.06  # loss of a turn of anybody else, when the question names one speaker
ASKING = 0.15  # loss of a short turn that only asks
ASSISTING = 0.1  # loss of a turn of the assistant: what people said themselves is rather the answer
PER_LENGTH = 0.09  # gain per e-fold of length, from 20 to 400 characters around 100
SESSION_BEST = 0.2  # the session's best turns …
SESSION_RANKS = (1.0, 0.5, 0.25)  # … weighted by rank
SESSION_UNION = 0.15  # the words that its candidates cover together, weighed as in a turn
SESSION_WORDS = 0.45  # the words that all its turns cover together, weighed by how few sessions hold them
TIMELY = 0.5  # gain of what happened at a time that the question names
TURN_OFFSET = 0.4  # what a turn gets from its surroundings by chance
EXACT = 1.0  # an identifier of the question stands in it
SLOPE, MIDDLE = 5.0, 0.45  # evidence → relevance


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory stands: its session and number there, who said it, and what sort of text it is."""

    session_id: str = ""
    sequence: int | None = None
    actor: str = ""
    chars: int = 100
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What both searches say about one memory.

    `near` is how far its cosine lies above that of unrelated texts (see `nearness`), in standard deviations;
    None without a vector. `coverage` is 0..1, `matched` the terms as bits (see `bm25.Statistics`), `exact` the
    share of the question's identifiers that it holds, `timely` how near it lies to a time that the question
    names, 0..1.
    """

    memory_id: uuid.UUID
    near: float | None
    coverage: float
    matched: int = 0
    exact: float = 0.0
    timely: float = 0.0
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Background:
    """Cosines of the question with a sample of the scope: what unrelated texts reach."""

    mean: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class Fused:
    """Relevance in 0..1 and what it comes from: vector, keyword, surroundings, time, exact identifier.

    `session` is the share of the question that its session covers as a whole, 0..1; it is in `context` already.
    """

    memory_id: uuid.UUID
    relevance: float
    vector: float
    keyword: float
    context: float
    exact: float
    time: float = 0.0
    session: float = 0.0


def fuse(
    evidence: Sequence[Evidence],
    *,
    share: Callable[[int], float],
    named: frozenset[str] = frozenset(),
    session_words: Mapping[str, float] | None = None,
) -> list[Fused]:
    """Return the fused evidence, best first.

    `share` tells which share of the question some terms are, `named` are the speakers that the question
    names, `session_words` the share of the question that a session as a whole covers (without: what its
    candidates cover). A memory that holds an identifier of the question comes before all that hold none.
    """
    # By place in `evidence`: a memory's id is slow to hash, and this is done for every candidate of a recall.
    trust = _keyword_trust(evidence)
    vectors = [VECTOR_WEIGHT * max(0.0, e.near or 0.0) for e in evidence]
    keywords = [trust * e.coverage for e in evidence]
    told = _with_neighbours(evidence, keywords)
    weighed = [
        (vector + words) * _gain(e.place, named) + _bonus(e.place, named)
        for e, vector, words in zip(evidence, vectors, told, strict=True)
    ]
    covered = session_words or {}
    session = _session_evidence(evidence, weighed, share, covered)
    fused = []
    for e, vector, keyword, said in zip(evidence, vectors, keywords, weighed, strict=True):
        is_turn = e.place.sequence is not None
        said += session[e.place.session_id] if is_turn else 0.0
        time = TIMELY * e.timely * max(said, 0.0)  # a factor, so that the day alone makes nothing relevant
        total = said + time - (TURN_OFFSET if is_turn else 0.0)
        context = total - vector - keyword - time
        relevance = _relevance(total + EXACT * e.exact)
        words = covered.get(e.place.session_id, 0.0) if is_turn else 0.0
        fused.append(Fused(e.memory_id, relevance, vector, keyword, context, e.exact, time, words))
    return sorted(fused, key=lambda one: (one.exact <= 0, -one.relevance, one.memory_id))


def nearness(cosine: float, background: Background) -> float:
    """Return how far a cosine lies above the background, in standard deviations."""
    return (cosine - background.mean) / background.spread


def background_of(cosines: Sequence[float], calibration: Calibration) -> Background:
    """Return mean and spread of the cosines of a sample, leaning on what is known of the model when few."""
    prior_count, prior_spread = 10, calibration.spread or 0.1
    n = len(cosines)
    mean = (sum(cosines) + prior_count * calibration.background) / (n + prior_count)
    if calibration.spread is not None:
        return Background(mean, calibration.spread, n)
    own = sum((cosine - sum(cosines) / n) ** 2 for cosine in cosines) if n else 0.0
    spread = math.sqrt((own + prior_count * prior_spread**2) / (n + prior_count))
    return Background(mean, max(spread, 1e-3), n)


def _keyword_trust(evidence: Sequence[Evidence]) -> float:
    """A question whose best match covers little of it was worded differently: lean on the vectors."""
    best = max((e.coverage for e in evidence), default=0.0)
    return min(1.0, WEAK_KEYWORDS + (1 - WEAK_KEYWORDS) * best / WEAK_COVERAGE)


def _with_neighbours(evidence: Sequence[Evidence], keywords: Sequence[float]) -> list[float]:
    """Keyword evidence of each memory with that of the turns before and after it."""
    pairs = list(zip(evidence, keywords, strict=True))
    turns = {(e.place.session_id, e.place.sequence): own for e, own in pairs if e.place.sequence is not None}
    return [
        own
        if e.place.sequence is None
        else own
        + BEFORE * turns.get((e.place.session_id, e.place.sequence - 1), 0.0)
        + AFTER * turns.get((e.place.session_id, e.place.sequence + 1), 0.0)
        for e, own in pairs
    ]


def _gain(place: Place, named: frozenset[str]) -> float:
    """The factor for who speaks and how; 1 for a statement of 100 characters by nobody in particular."""
    gain = 1.0 + PER_LENGTH * math.log(min(max(place.chars, 20), 400) / 100)
    if place.sequence is not None and place.asks:
        gain *= 1.0 - ASKING
    if place.actor == "assistant":
        gain *= 1.0 - ASSISTING
    if len(named) == 1 and place.actor in named:
        gain *= 1.0 + NAMED_GAIN
    return gain


def _bonus(place: Place, named: frozenset[str]) -> float:
    """What who speaks adds whatever was said: the one named rather than anybody else."""
    if len(named) != 1 or not place.actor:
        return 0.0
    return NAMED_BONUS if place.actor in named else -OTHER_LOSS


def _session_evidence(
    evidence: Sequence[Evidence],
    weighed: Sequence[float],
    share: Callable[[int], float],
    session_words: Mapping[str, float],
) -> dict[str, float]:
    """What a session adds to each of its turns: its best turns, and the words that it covers as a whole."""
    sessions: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for e, value in zip(evidence, weighed, strict=True):
        if e.place.sequence is not None:
            sessions[e.place.session_id].append((value, e.matched))
    added = {}
    for session_id, turns in sessions.items():
        best = sorted((value for value, _ in turns), reverse=True)
        level = sum(rank * value for rank, value in zip(SESSION_RANKS, best, strict=False))
        union = 0
        for _, matched in turns:
            union |= matched
        covered = share(union)
        words = SESSION_UNION * covered + SESSION_WORDS * session_words.get(session_id, covered)
        added[session_id] = SESSION_BEST * level / sum(SESSION_RANKS) + words
    return added


def _relevance(total: float) -> float:
    return 1.0 / (1.0 + math.exp(-SLOPE * (total - MIDDLE)))
