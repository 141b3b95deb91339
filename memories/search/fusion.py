"""Evidence of both searches → one calibrated relevance in 0..1. Pure.

Everything is absolute: a cosine counts by how far it lies above the cosine of unrelated texts, keywords by
the share of the question they cover. Nothing is divided by the best of the batch, so relevance can be
compared between questions, and the best of a bad lot stays bad.

The numbers were chosen on LoCoMo, BEAM, MemoryBank (zh), LongMemEval and the differently-worded Chinese
pairs together; recall@10 moves by less than 0.02 on any of them when one number is changed by a third.
"""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .calibration import Calibration

VECTOR_WEIGHT = 0.085  # of one standard deviation above the background; keywords weigh 1
WEAK_COVERAGE = 0.15  # below this best coverage the words that match are mostly chance …
WEAK_KEYWORDS = 0.5  # … and count down to this
BEFORE, AFTER = 0.5, 0.3  # weight of the keywords of the turns next to it
NAMED_ACTOR = 0.8  # gain of a turn whose speaker the question names
ASKING = 0.15  # loss of a short turn that only asks
ASSISTING = 0.1  # loss of a turn of the assistant: what people said themselves is rather the answer
PER_LENGTH = 0.06  # gain per e-fold of length, from 20 to 400 characters around 100
SESSION_BEST = 0.2  # the session's best turns …
SESSION_RANKS = (1.0, 0.5, 0.25)  # … weighted by rank
SESSION_UNION = 0.3  # the words that all turns of the session cover together
TURN_OFFSET = 0.22  # what a turn gets from its surroundings by chance
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

    `cosine` is None without a vector of the question's model. `coverage` is 0..1, `matched` the terms as
    bits (see `bm25.Statistics`), `exact` the share of the question's identifiers that it holds.
    """

    memory_id: uuid.UUID
    cosine: float | None
    coverage: float
    matched: int = 0
    exact: float = 0.0
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Background:
    """Cosines of the question with a sample of the scope: what unrelated texts reach."""

    mean: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class Fused:
    """Relevance in 0..1 and the evidence it comes from: vector, keyword, surroundings, exact identifier."""

    memory_id: uuid.UUID
    relevance: float
    vector: float
    keyword: float
    context: float
    exact: float


def fuse(
    evidence: Sequence[Evidence],
    *,
    calibration: Calibration,
    background: Background,
    share: Callable[[int], float],
    named: frozenset[str] = frozenset(),
) -> list[Fused]:
    """Return the fused evidence, best first.

    `share` tells which share of the question some terms are, `named` are the speakers that the question
    names. A memory that holds an identifier of the question comes before all that hold none.
    """
    trust = _keyword_trust(evidence)
    own = {e.memory_id: (_vector(e.cosine, calibration, background), trust * e.coverage) for e in evidence}
    told = _with_neighbours(evidence, {pk: keyword for pk, (_, keyword) in own.items()})
    weighed = {e.memory_id: (own[e.memory_id][0] + told[e.memory_id]) * _gain(e.place, named) for e in evidence}
    session = _session_evidence(evidence, weighed, share)
    fused = []
    for e in evidence:
        vector, keyword = own[e.memory_id]
        total = weighed[e.memory_id] + session.get(e.place.session_id, 0.0)
        if e.place.sequence is not None:
            total -= TURN_OFFSET
        relevance = _relevance(total + EXACT * e.exact)
        context = total - vector - keyword
        fused.append(Fused(e.memory_id, relevance, vector, keyword, context, e.exact))
    return sorted(fused, key=lambda one: (one.exact <= 0, -one.relevance, one.memory_id))


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


def _vector(cosine: float | None, calibration: Calibration, background: Background) -> float:
    if cosine is None:
        return 0.0
    return VECTOR_WEIGHT * max(0.0, cosine - background.mean) / background.spread


def _with_neighbours(evidence: Sequence[Evidence], keyword: Mapping[uuid.UUID, float]) -> dict[uuid.UUID, float]:
    """Keyword evidence of each memory with that of the turns before and after it."""
    turns = {
        (e.place.session_id, e.place.sequence): keyword[e.memory_id] for e in evidence if e.place.sequence is not None
    }
    return {
        e.memory_id: keyword[e.memory_id]
        if e.place.sequence is None
        else keyword[e.memory_id]
        + BEFORE * turns.get((e.place.session_id, e.place.sequence - 1), 0.0)
        + AFTER * turns.get((e.place.session_id, e.place.sequence + 1), 0.0)
        for e in evidence
    }


def _gain(place: Place, named: frozenset[str]) -> float:
    """The factor for who speaks and how; 1 for a statement of 100 characters by nobody in particular."""
    gain = 1.0 + PER_LENGTH * math.log(min(max(place.chars, 20), 400) / 100)
    if place.sequence is not None and place.asks:
        gain *= 1.0 - ASKING
    if place.actor == "assistant":
        gain *= 1.0 - ASSISTING
    if len(named) == 1 and place.actor in named:
        gain *= 1.0 + NAMED_ACTOR
    return gain


def _session_evidence(
    evidence: Sequence[Evidence], weighed: Mapping[uuid.UUID, float], share: Callable[[int], float]
) -> dict[str, float]:
    """What a session adds to each of its turns: its best turns, and the words that it covers as a whole."""
    sessions: defaultdict[str, list[Evidence]] = defaultdict(list)
    for e in evidence:
        if e.place.sequence is not None:
            sessions[e.place.session_id].append(e)
    added = {}
    for session_id, turns in sessions.items():
        best = sorted((weighed[turn.memory_id] for turn in turns), reverse=True)
        level = sum(rank * value for rank, value in zip(SESSION_RANKS, best, strict=False))
        union = 0
        for turn in turns:
            union |= turn.matched
        added[session_id] = SESSION_BEST * level / sum(SESSION_RANKS) + SESSION_UNION * share(union)
    return added


def _relevance(total: float) -> float:
    return 1.0 / (1.0 + math.exp(-SLOPE * (total - MIDDLE)))
