"""From a payload to a draft: masked before anything is durable, screened, its trust set by us."""

from __future__ import annotations

from typing import Any

from memories.actions import Draft
from memories.enums import Trust
from memories.safety.masking import MaskState, find, mask_text, mask_value
from memories.safety.planted import planted

MASKED = ("structure", "metadata", "environment")


def masked_in(content: str) -> list[str]:
    """The kinds of personal data and secrets in a text, each once: what masking replaces before it is stored."""
    return sorted({str(span.type) for span in find(content)})


def draft_from(wanted: dict[str, Any]) -> Draft:
    """Return the draft of a validated payload. Suspicious words in any field make it a quarantined memory."""
    mask = MaskState()
    fields = {**wanted, "content": mask_text(wanted["content"], mask)}
    fields |= {name: mask_value(wanted[name], mask) for name in MASKED}
    fields["tags"] = tuple(mask_text(tag, mask) for tag in wanted["tags"])
    fields["actor"] = mask_text(wanted["actor"], mask)
    return Draft(**fields, trust=Trust.AGENT, quarantine_reason=planted(fields))
