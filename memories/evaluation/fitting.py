"""Learns the weights of the screening model: logistic regression on named signals, readable and bounded.

Weights start from a prior set by judgement and are moved by the data (a Gaussian prior, that is L2
regularisation towards it), so that a signal the data never shows keeps a sensible weight. A suspicious signal
may not become exculpating nor the reverse, and a weak one may not condemn a text alone. To refit:
`weights_source(fit(...))` into `reflection/screening/weights.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memories.safety.screening.model import features, windows, worst_window
from memories.safety.screening.verdict import Signal

_ROUNDS = 4  # each picks the worst window of every text under the weights of the round before
_STEPS = 40  # of Newton; it settles in about ten
_STRENGTH = 0.6  # of the prior, in observations per unit of squared distance
_START_BIAS = -3.0

DEFAULT_PRIOR = 0.8
PRIORS = {
    "tag_characters": 3.5,
    "variation_selectors": 3.5,
    "encoded_order": 3.0,
    "bidi_override": 2.0,
    "mixed_scripts": 2.0,
    "zero_width": 1.7,
    "talks_about_attacks": -1.0,
    "quoted_in_discussion": -1.0,
}
EXCULPATING = frozenset(("talks_about_attacks", "quoted_in_discussion"))

# Ordinary text shows these too: alone they must not reach the threshold, whatever the data says. A polite
# request is so common that it may not even tip the scales for another weak signal.
WEAK_LIMIT = 1.7
_WEAK = (
    ("acts_on_my_things_from_outside", "addresses_ai", "always_say", "before_anything", "bulk_data")
    + ("claims_authority", "developer_mode", "dictates_answer", "from_now_on", "hiding_style", "html_comment")
    + (
        "hypothetical",
        "ignore_content",
        "must_comply",
        "names_system_prompt",
        "new_instructions",
        "openai_talk",
    )
    + ("payload_splitting", "persona", "privilege", "reads_credentials", "remember_this", "repetition")
    + ("secrecy", "send_out", "shouting", "skips_checks", "steers_the_answer", "supersedes", "system_mimicry")
    + ("tool_steering_from_outside", "without_limits", "zero_width")
)
LIMITS = dict.fromkeys(_WEAK, WEAK_LIMIT) | {"please_act_from_outside": 0.4}


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled text, already searched for signals. `weight` counts it that often."""

    signals: tuple[Signal, ...]
    channel: str
    attack: bool
    weight: float = 1.0


@dataclass(frozen=True)
class Model:
    """What `fit` learnt: log-odds per feature, and the log-odds of a text without any."""

    weights: dict[str, float]
    bias: float

    def log_odds(self, example: Example) -> float:
        """The log-odds of the worst window."""
        return worst_window(example.signals, example.channel, self.weights, self.bias)[0]


def fit(examples: Sequence[Example]) -> Model:
    """The model that explains the labels best, each text judged by its worst window."""
    groups = [[features((s.name for s in group), e.channel) for group in windows(e.signals)] for e in examples]
    names = sorted({name for group in groups for found in group for name in found} | set(PRIORS))
    index = {name: place for place, name in enumerate(names)}
    labels = np.array([float(example.attack) for example in examples])
    counts = np.array([example.weight for example in examples])
    weights, bias = np.array([_prior(name) for name in names]), _START_BIAS
    for _ in range(_ROUNDS):
        table = np.zeros((len(examples), len(names)))
        for row, group in enumerate(groups):
            worst = max(group, key=lambda found: sum(weights[index[name]] for name in found))
            table[row, [index[name] for name in worst]] = 1.0
        weights, bias = _descend(table, labels, counts, names, weights, bias)
    return Model({name: round(float(weights[place]), 2) for name, place in index.items()}, round(bias, 2))


def _prior(name: str) -> float:
    return PRIORS.get(name, DEFAULT_PRIOR)


def _bounds(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    low = np.array([-np.inf if name in EXCULPATING else 0.0 for name in names])
    high = np.array([0.0 if name in EXCULPATING else LIMITS.get(name, np.inf) for name in names])
    return low, high


def _descend(
    table: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    names: list[str],
    weights: np.ndarray,
    bias: float,
) -> tuple[np.ndarray, float]:
    """Newton steps on the penalised likelihood, each clipped to the allowed weights."""
    low, high = _bounds(names)
    design = np.hstack([table, np.ones((len(table), 1))])
    penalty = np.append(np.full(len(names), _STRENGTH), 0.0)
    target = np.append([_prior(name) for name in names], 0.0)
    beta = np.append(np.clip(weights, low, high), bias)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
        slope = design.T @ (counts * (labels - chance)) - penalty * (beta - target)
        curve = (design * (counts * chance * (1 - chance))[:, None]).T @ design + np.diag(penalty + 1e-6)
        # A weight that stands at its bound and is pushed beyond it stays out of the step.
        out = ((beta[:-1] <= low) & (slope[:-1] < 0)) | ((beta[:-1] >= high) & (slope[:-1] > 0))
        free = ~np.append(out, False)
        step = np.zeros_like(beta)
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        beta = beta + step
        beta[:-1] = np.clip(beta[:-1], low, high)
        if np.abs(step).max() < 1e-6:
            break
    return beta[:-1], float(beta[-1])


def cross_validated(
    examples: Sequence[Example], more: Sequence[Example] = (), *, folds: int = 5, seed: int = 0
) -> list[float]:
    """The log-odds of every one of `examples` by a model that has not seen it. `more` is always seen."""
    rng = random.Random(seed)  # noqa: S311 - a split, not a secret
    parts = [rng.randrange(folds) for _ in examples]
    scores = [0.0] * len(examples)
    for fold in range(folds):
        model = fit([e for e, part in zip(examples, parts, strict=True) if part != fold] + list(more))
        for place, part in enumerate(parts):
            if part == fold:
                scores[place] = model.log_odds(examples[place])
    return scores


def lighter(examples: Sequence[Example], weight: float) -> list[Example]:
    """The same examples, each counted `weight` times."""
    return [replace(example, weight=weight) for example in examples]


def weights_source(model: Model, threshold: float) -> str:
    """The table as Python source, strongest first."""
    rows = sorted(model.weights.items(), key=lambda row: (-row[1], row[0]))
    lines = [f'    "{name}": {weight},' for name, weight in rows if weight]
    head = f"THRESHOLD = {threshold}  # probability from which on a text is suspicious\nBIAS = {model.bias}\n"
    return head + "WEIGHTS = {\n" + "\n".join(lines) + "\n}\n"
