"""From a payload to a draft: masked before anything is durable, screened, its trust set by us."""

from __future__ import annotations

from typing import Any

from memories.actions import Draft
from memories.enums import Trust
from memories.safety.masking import MaskState, mask_text, mask_value
from memories.safety.screening import screen

MASKED = ("structure", "metadata", "environment")


def draft_from(wanted: dict[str, Any]) -> Draft:
    """Return the draft of a validated payload. A suspicious text becomes a quarantined memory."""
    mask = MaskState()
    fields = {**wanted, "content": mask_text(wanted["content"], mask)}
    fields |= {name: mask_value(wanted[name], mask) for name in MASKED}
    fields["tags"] = tuple(mask_text(tag, mask) for tag in wanted["tags"])
    fields["actor"] = mask_text(wanted["actor"], mask)
    verdict = screen(fields["content"], channel="memory")
    return Draft(**fields, trust=Trust.AGENT, quarantine_reason=verdict.reason if verdict.suspicious else "")
