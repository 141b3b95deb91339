"""Which pieces of evidence speak for themselves. Pure."""

from __future__ import annotations

import uuid


def source_of(trace_id: uuid.UUID | None, trace_digest: str) -> str:
    """Name the source that a quote comes from.

    Traces that tell the same have one digest and are one source, however often they are sent. A trace
    without a digest stands for itself.
    """
    return trace_digest or str(trace_id)
