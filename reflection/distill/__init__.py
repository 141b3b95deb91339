"""Turning a trace into candidates: by a model where there is one, by rules otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from reflection.distill import rules
from reflection.distill.endpoint import ModelEndpoint
from reflection.forms import Distilled, TraceForm


def distil(trace: TraceForm, known: Sequence[str] = (), *, endpoint: ModelEndpoint | None) -> Distilled:
    """Return the candidates of `trace`. Raises `distill.errors.DistillError` when a model fails."""
    if endpoint is None:
        return rules.distil(trace)
    from reflection.distill import llm  # the model client takes a second to import: only where it is used

    return llm.distil(trace, known, endpoint=endpoint)
