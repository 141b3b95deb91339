"""Drawing the sample: which memories, in which stratum, with which probability, in which order. Pure.

Chance comes from hashing: memories are ranked by SHA-256 of the seed and their id, and the first n are
drawn. That is a simple random sample, and anyone who has the seed and the ids can draw it again.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from reflection.enums import Decision, Stratum

MOST_RANDOM = 30
LEAST_RANDOM = 20  # while the team has as many
MOST_TARGETED = 10
MOST_CANARIES = 0.05  # of the batch


@dataclass(frozen=True, slots=True)
class Drawn:
    """One memory of the sample. `probability` of being drawn, in (0, 1]; 1 when picked by rule."""

    memory_id: uuid.UUID
    stratum: str  # enums.Stratum
    probability: float
    quorum: int = 1  # how many people are to judge it
    expected: str = ""  # enums.Decision of a memory with a known answer


def seed_of(team_id: uuid.UUID, week: str) -> str:
    """Return the seed of a team's week: SHA-256 in hex."""
    return hashlib.sha256(f"{team_id}/{week}".encode()).hexdigest()


def rank(seed: str, *parts: object) -> bytes:
    """Return the place of something in the order that `seed` gives: compare the bytes."""
    return hashlib.sha256("/".join([seed, *map(str, parts)]).encode()).digest()


def draw(seed: str, population: Iterable[uuid.UUID], size: int) -> list[uuid.UUID]:
    """Draw `size` ids at random, all when there are fewer. The order of `population` does not matter."""
    return sorted(set(population), key=lambda ident: rank(seed, ident))[:size]


def draw_random(
    seed: str,
    pools: Sequence[Collection[uuid.UUID]],
    most: int = MOST_RANDOM,
    least: int = LEAST_RANDOM,
) -> list[Drawn]:
    """Draw the random stratum: up to `most` from the first pool, then from the others up to `least` in all.

    The first pool is what the week brought; the others only fill up a quiet week, in their order. Each
    item's probability is its own pool's: drawn / size. The pools must not overlap.
    """
    drawn: list[Drawn] = []
    for place, pool in enumerate(pools):
        wanted = most if place == 0 else least - len(drawn)
        picked = draw(seed, pool, max(0, wanted))
        drawn += [Drawn(ident, Stratum.RANDOM, len(picked) / len(pool)) for ident in picked]
    return drawn


def pick_targeted(
    queues: Mapping[str, Sequence[uuid.UUID]], taken: Collection[uuid.UUID], most: int = MOST_TARGETED
) -> list[Drawn]:
    """Pick up to `most` memories by rule, none twice and none that is in `taken`.

    `queues` holds ids by stratum, most urgent first. Flagged ones go first, for the rules of life
    promise them a place in the next batch; the other strata share what is left in turns.
    """
    others = [stratum for stratum in queues if stratum != Stratum.FLAGGED]
    in_turns = zip_longest(*([(ident, stratum) for ident in queues[stratum]] for stratum in others))
    wanted: list[tuple[uuid.UUID, str]] = [(ident, Stratum.FLAGGED) for ident in queues.get(Stratum.FLAGGED, ())]
    wanted += [entry for turn in in_turns for entry in turn if entry is not None]
    picked: dict[uuid.UUID, str] = {}
    for ident, stratum in wanted:
        if len(picked) < most and ident not in taken:
            picked.setdefault(ident, stratum)
    return [Drawn(ident, stratum, 1.0) for ident, stratum in picked.items()]


def doubled(seed: str, drawn: Sequence[Drawn], overlap: float) -> list[Drawn]:
    """Let chance choose the share `overlap` (0..1) of the random memories that two people judge.

    The nearest whole number, but one at least where there are any and the share is not 0.
    """
    if overlap <= 0 or not drawn:
        return list(drawn)
    wanted = max(1, math.floor(overlap * len(drawn) + 0.5))
    chosen = sorted(drawn, key=lambda one: rank(seed, "two", one.memory_id))[:wanted]
    ids = {one.memory_id for one in chosen}
    return [replace(one, quorum=2) if one.memory_id in ids else one for one in drawn]


def pick_canaries(seed: str, known: Mapping[uuid.UUID, str], taken: Collection[uuid.UUID], most: int) -> list[Drawn]:
    """Pick memories with a known answer, at most `most` and never more than 5 % of the batch with them.

    `known` holds the answer (`enums.Decision`) by memory, `taken` what is in the batch already. Those that were
    found bad and those that were found good take turns, the bad ones first.
    """
    room = min(most, math.floor(MOST_CANARIES * len(taken) / (1 - MOST_CANARIES) + 1e-9))
    free = sorted((ident for ident in known if ident not in taken), key=lambda ident: rank(seed, "known", ident))
    bad = [ident for ident in free if known[ident] != Decision.APPROVE]
    good = [ident for ident in free if known[ident] == Decision.APPROVE]
    turns = [ident for pair in zip_longest(bad, good) for ident in pair if ident is not None]
    return [Drawn(ident, Stratum.CANARY, 1.0, expected=known[ident]) for ident in turns[: max(0, room)]]


def mix(seed: str, drawn: Iterable[Drawn]) -> list[Drawn]:
    """Put a batch into its order. Strata are mixed: a place must not give away why something is there."""
    return sorted(drawn, key=lambda one: rank(seed, "place", one.memory_id))


def digest(population: Iterable[uuid.UUID]) -> str:
    """Fingerprint of a set of ids: tells whether a draw is repeated over the same population."""
    return hashlib.sha256("\n".join(sorted(map(str, set(population)))).encode()).hexdigest()
