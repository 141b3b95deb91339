"""Telling a team's webhooks, and the address that came with a trace, how a reflection ended."""

from __future__ import annotations

from typing import Any

from hindsight_site.accounts.enums import WebhookEvent
from hindsight_site.accounts.webhooks.emitting import call_back, emit
from reflection.models import Reflection, ReviewBatch


def reflection_ended(reflection: Reflection) -> None:
    """Say that a run has ended: how, about what, and which memories came of it."""
    team, trace = reflection.team, reflection.trace
    data = {
        "reflection": str(reflection.pk),
        "status": str(reflection.status),
        "trace": str(reflection.trace_id) if reflection.trace_id else None,
        "memories": [str(result.memory_id) for result in reflection.results.order_by("pk")],
    }
    emit(team, WebhookEvent.REFLECTION_FINISHED, data)
    if trace is not None and trace.callback_url:
        call_back(team, trace.callback_url, WebhookEvent.REFLECTION_FINISHED, data)


def batch_opened(batch: ReviewBatch, items: int) -> None:
    """Say that the week's review has opened."""
    emit(batch.team, WebhookEvent.BATCH_OPENED, {**_named(batch), "items": items})


def batch_closed(batch: ReviewBatch) -> None:
    """Say that the week's review has closed."""
    emit(batch.team, WebhookEvent.BATCH_CLOSED, _named(batch))


def _named(batch: ReviewBatch) -> dict[str, Any]:
    return {"batch": str(batch.pk), "week": batch.week, "closes_at": batch.closes_at.isoformat()}
