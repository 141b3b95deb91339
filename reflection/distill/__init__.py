"""Turning a trace into candidates: by a model where one is configured, by rules otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from reflection.distill import rules
from reflection.forms import Distilled, TraceForm


def distil(trace: TraceForm, known: Sequence[str] = ()) -> Distilled:
    """Return the candidates of `trace`. Raises `distill.errors.DistillError` when a model fails."""
    if not settings.LLM_BASE_URL:
        return rules.distil(trace)
    from reflection.distill import llm  # the model client takes a second to import: only where it is used

    endpoint = llm.ModelEndpoint(
        base_url=settings.LLM_BASE_URL,
        api_key=settings.LLM_API_KEY,
        model=settings.LLM_MODEL,
        model_strong=settings.LLM_MODEL_STRONG,
        timeout_seconds=settings.LLM_TIMEOUT_SECONDS,
        price_in=settings.LLM_PRICE_IN,
        price_out=settings.LLM_PRICE_OUT,
    )
    return llm.distil(trace, known, endpoint=endpoint)
