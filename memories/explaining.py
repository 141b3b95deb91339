"""What the parts of a recall's answer mean, in words for people. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from memories.policy import Ranking
from memories.search.fusion import VECTOR_WEIGHT

HELD_BACK = 0.0005  # a score that lies so far below its formula was held below what it contradicts

LEFT_OUT: dict[str, str] = {
    "below_floor": "Not relevant enough",
    "other_environment": "True in another environment than the question’s",
    "folded_into_lesson": "An episode whose lesson was handed out instead",
    "over_top_k_or_alike": "Behind the best k, one lesson too many, or nearly the same as one above",
}
LATE: dict[str, str] = {
    "embedder late": "the search by meaning (the embedding came too late)",
    "embedder failed": "the search by meaning (the embedder failed)",
    "embedder missing": "the search by meaning (no such embedder is set up)",
    "vectors": "the search by meaning (cut off at the deadline)",
    "keywords": "the search by words (cut off at the deadline)",
    "database": "part of the candidates (cut off at the deadline)",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a score is made of. `share` is what a bar shows, 0..1; None where a bar would say nothing."""

    name: str
    value: str
    words: str
    share: float | None = None


def evidence(parts: Mapping[str, float]) -> list[Part]:
    """What makes a hit relevant: meaning, words, surroundings, time and identifiers, those that say something."""
    deviations = parts["vector"] / VECTOR_WEIGHT
    told = [
        Part(
            "Meaning",
            f"{parts['vector']:+.2f}",
            f"{deviations:.1f} standard deviations nearer to the question than unrelated texts."
            if deviations > 0
            else "No nearer to the question than unrelated texts, or not compared.",
        ),
        Part(
            "Words",
            f"{parts['keyword']:+.2f}",
            f"Its words cover {_percent(parts['keyword'])} of the question, rare words counting more."
            if parts["keyword"] > 0
            else "It shares no word with the question that counts.",
        ),
    ]
    if parts["context"]:
        session = parts["session"]
        whole = f" Its session as a whole covers {_percent(session)} of the question." if session else ""
        told.append(
            Part("Surroundings", f"{parts['context']:+.2f}", f"What stands next to it, who says it, its length.{whole}")
        )
    if parts["time"]:
        told.append(Part("Time", f"{parts['time']:+.2f}", "It happened at a time that the question names."))
    if parts["exact"]:
        told.append(
            Part(
                "Identifier",
                _percent(parts["exact"]),
                "Share of the question’s identifiers that it holds. It comes before all that hold none.",
            )
        )
    return told


def score(parts: Mapping[str, float], relevance: float, tier: str, ranking: Ranking) -> list[Part]:
    """What a hit's score is made of besides its evidence: the terms of the sum, then the factors."""
    half_life = ranking.half_life[tier]
    ages = (
        f"Halves every {_days(half_life.total_seconds() / 86_400)} in the {tier} tier."
        if half_life
        else f"What is {tier} does not age."
    )
    lowered = "Nothing has lowered it." if parts["weight"] >= 1 else "Lowered by the rules of life: see its page."
    recalled = "For having been recalled before." if parts["heat"] > 1 else "It was never recalled before."
    return [
        Part("Relevance", _percent(relevance), f"Counts {_percent(ranking.relevance)} of the sum.", relevance),
        Part("Recency", _percent(parts["recency"]), f"Counts {_percent(ranking.recency)}. {ages}", parts["recency"]),
        Part(
            "Confidence",
            _percent(parts["confidence"]),
            f"Counts {_percent(ranking.confidence)}. How far it is to be believed.",
            parts["confidence"],
        ),
        Part("Weight", f"× {parts['weight']:.2f}", lowered),
        Part("Heat", f"× {parts['heat']:.2f}", recalled),
    ]


def is_held_back(parts: Mapping[str, float], relevance: float, shown: float, ranking: Ranking) -> bool:
    """Whether a score was put below what its parts make, for contradicting what is believed more."""
    blend = (
        ranking.relevance * relevance + ranking.recency * parts["recency"] + ranking.confidence * parts["confidence"]
    )
    return parts["weight"] * blend * parts["heat"] - shown > HELD_BACK


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u202f%"


def _days(days: float) -> str:
    if days < 1:
        hours = max(1, math.floor(24 * days + 0.5))
        return "hour" if hours == 1 else f"{hours} hours"
    return "day" if days == 1 else f"{days:.4g} days"
