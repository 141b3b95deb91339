"""Everything that a distiller's candidate says, not its text alone: is it planted, does it hold personal data? Pure.

A model answers with a text, a structure and tags. All of it reaches agents, so all of it is untrusted alike.
"""

from __future__ import annotations

from typing import Any

from memories.safety.masking import find
from memories.safety.planted import planted, strings_of
from reflection.forms import Candidate


def planted_in(candidate: Candidate) -> str:
    """Return why a field of a candidate reads like a planted instruction, naming the field; empty when none does."""
    return planted(_said(candidate))


def holds_pii(candidate: Candidate) -> str:
    """Return a sentence naming the field that holds personal data or a secret; empty when none does."""
    for name, value in _said(candidate).items():
        kinds = sorted({str(span.type) for text in strings_of(value) for span in find(text)})
        if kinds:
            return f"its {name} holds personal data or a secret ({', '.join(kinds)})"
    return ""


def _said(candidate: Candidate) -> dict[str, Any]:
    return {"content": candidate.content, "structure": candidate.structure, "tags": candidate.tags}
