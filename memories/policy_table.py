"""The table of a team's policy: every number with its unit, default, limits and help, and the presets. Pure.

A number's `key` names its place: `life.capacity` is `Life.capacity`, `ranking.half_life.episodic` is an
entry of `Ranking.half_life`. Durations are written in the unit of their row. What a team has set is kept
as `{key: value}` of the numbers that differ from the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hindsight_site.refusals import FieldError, Invalid
from memories.enums import Tier, Trust
from memories.policy import Keep, Life, Policy, Ranking, Review
from memories.policy_rows import ROWS

Values = dict[str, float]
LEAST_KEPT = 7  # days: less would delete what a week's review still asks about
ROW_OF = {row.key: row for row in ROWS}

STRICT: Values = {
    "life.transient_after": 6, "life.transient_factor": 0.3,
    "life.episodic_fade_after": 14, "life.episodic_archive_after": 30, "life.episodic_delete_after": 90,
    "life.fact_fade_after": 45, "life.fact_archive_after": 90, "life.fact_enough_hits": 5,
    "life.unused_streak": 3, "life.failing_uses": 3, "life.failing_rate": 0.5, "life.lesson_archive_after": 45,
    "life.least_confidence": 0.4, "life.low_confidence": 0.6, "life.capacity": 5000,
}  # fmt: skip
KEEP_LONGER: Values = {
    "life.transient_after": 72,
    "life.episodic_fade_after": 90, "life.episodic_archive_after": 180, "life.episodic_delete_after": 730,
    "life.fact_fade_after": 270, "life.fact_archive_after": 540, "life.fact_enough_hits": 1,
    "life.unused_streak": 10, "life.failing_uses": 8, "life.failing_rate": 0.2, "life.lesson_archive_after": 270,
    "life.least_confidence": 0.2, "life.approved_exempt": 365, "life.restored_exempt": 90, "life.capacity": 50_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Preset:
    """A set of numbers to start from: `values` differ from the default, all others are the default."""

    name: str
    label: str
    help: str
    values: Values


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("strict", "Strict", "Few memories, well used: they fade and leave in about half the time.", STRICT),
        Preset("balanced", "Balanced", "The defaults.", {}),
        Preset(
            "keep_longer", "Keep longer", "For work that comes back rarely: about three times as long.", KEEP_LONGER
        ),
    )
}


def defaults() -> Values:
    """Every number's default, by key."""
    return {row.key: row.default for row in ROWS}


def complete(given: Mapping[str, float]) -> Values:
    """Every number: what is given, else the default. Numbers that no row has any more are left out."""
    return {row.key: given.get(row.key, row.default) for row in ROWS}


def differing(values: Mapping[str, float]) -> Values:
    """The numbers that are not the default."""
    return {key: value for key, value in values.items() if key in ROW_OF and value != ROW_OF[key].default}


def preset_of(values: Mapping[str, float]) -> str:
    """The name of the preset that `values` are, empty when they are none."""
    own = differing(values)
    return next((preset.name for preset in PRESETS.values() if preset.values == own), "")


def check(given: Mapping[str, Any]) -> Values:
    """Return all numbers, those not given being the default. Raises `Invalid` that names every wrong one."""
    errors = [FieldError(key, "is no number of the policy.", "unknown") for key in given if key not in ROW_OF]
    values = defaults()
    for row in ROWS:
        if row.key not in given:
            continue
        try:
            values[row.key] = row.read(given[row.key])
        except ValueError as wrong:
            errors.append(FieldError(row.key, str(wrong)))
    errors = errors or _contradictions(values)
    if errors:
        raise Invalid(" ".join(f"{_name(e.field)} {e.message}" for e in errors), errors=tuple(errors))
    return values


def _name(key: str) -> str:
    return ROW_OF[key].label if key in ROW_OF else key[:60]


def _contradictions(values: Values) -> list[FieldError]:
    """What is right by itself and wrong beside another number."""
    errors = []
    for later, earlier in (
        ("life.episodic_archive_after", "life.episodic_fade_after"),
        ("life.fact_archive_after", "life.fact_fade_after"),
    ):
        if values[later] <= values[earlier]:
            errors.append(
                FieldError(later, f"must be longer than “{ROW_OF[earlier].label}” ({values[earlier]:g} days).")
            )
    for key in ("keep.traces", "keep.receipts"):
        if 0 < values[key] < LEAST_KEPT:
            errors.append(FieldError(key, f"must be 0, for ever, or at least {LEAST_KEPT} days."))
    for keys in (
        ("ranking.relevance", "ranking.recency", "ranking.confidence"),
        ("life.keep_confidence", "life.keep_frequency", "life.keep_recency"),
    ):
        total = sum(values[key] for key in keys)
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            labels = ", ".join(f"“{ROW_OF[key].label}”" for key in keys)
            errors.append(FieldError(keys[0], f"must add up to 1 with its neighbours: {labels} make {total:g}."))
    return errors


def policy_of(values: Mapping[str, float], version: int = 0) -> Policy:
    """Turn numbers into the policy that the rules, recall and the review read."""
    numbers = {row.key: row.amount(value) for row in ROWS if (value := values.get(row.key, row.default)) is not None}
    parts: dict[str, dict[str, Any]] = {"life": {}, "ranking": {}, "review": {}, "keep": {}}
    nested: dict[str, Any] = {
        "confidence_cap": {Trust(t).value: numbers[f"life.confidence_cap.{t}"] for t in Trust.values},
        "half_life": {
            Tier.WORKING: numbers["ranking.half_life.working"],
            Tier.EPISODIC: numbers["ranking.half_life.episodic"],
            # 0 days: no half-life.
            Tier.SEMANTIC: numbers["ranking.half_life.semantic"] or None,
        },
    }
    for key, number in numbers.items():
        part, name, *inner = key.split(".")
        if not inner:
            parts[part][name] = number
    return Policy(
        life=replace(Life(), **parts["life"], confidence_cap=nested["confidence_cap"]),
        ranking=replace(Ranking(), **parts["ranking"], half_life=nested["half_life"]),
        review=replace(Review(), **parts["review"]),
        keep=replace(Keep(), **parts["keep"]),
        version=version,
    )


def differences(before: Mapping[str, float], after: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """What changed from one set of numbers to another: (key, before, after), in the order of the table."""
    old, new = complete(before), complete(after)
    return [(row.key, old[row.key], new[row.key]) for row in ROWS if old[row.key] != new[row.key]]
