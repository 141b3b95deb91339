"""What a file that nobody vouches for may say: masked, screened, of the lowest trust, judged by nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from hindsight_site.accounts.actions import check_slug
from hindsight_site.refusals import Invalid
from memories import contents
from memories.confidence import prior
from memories.enums import Rule, Status, Trust
from memories.safety.masking import MaskState, mask_text, mask_value
from memories.safety.screening import screen
from reflection.erasing.columns import text_columns

UNTOUCHED = frozenset({"slug", "fingerprint", "mask_numbers"})
HAPPENED = ("created_at", "updated_at", "occurred_at")
AHEAD = timedelta(days=1)  # how far another site's clock may be


class Refused(Exception):
    """A row that cannot be taken; the message is the reason."""


def tame(row: Any) -> None:
    """Change an unsaved row in place to what may be stored of it. Raises `Refused`."""
    for name in HAPPENED:
        if (getattr(row, name, None) or timezone.now()) > timezone.now() + AHEAD:
            raise Refused(f"{name} lies in the future")
    mask = MaskState()
    for name in text_columns(row._meta.model):
        value = getattr(row, name)
        if name in UNTOUCHED or not value:
            continue
        setattr(row, name, mask_text(value, mask) if isinstance(value, str) else mask_value(value, mask))
    if special := _SPECIAL.get(row._meta.label):
        special(row)


def _memory(row: Any) -> None:
    row.trust, row.approved_at, row.pinned = Trust.EXTERNAL, None, False
    row.source = "import"
    row.access_count = row.unused_streak = row.reuse_count = row.reuse_success_count = 0
    row.last_accessed_at, row.support_count, row.weight = None, 1, min(row.weight, 1.0)
    belief = prior(row.confidence, Trust.EXTERNAL)
    row.alpha, row.beta, row.confidence = belief.alpha, belief.beta, belief.mean
    if row.status == Status.FORGOTTEN:
        raise Refused("a tombstone, which means something only where it was made")
    if not all(name in Rule.values and _is_share(factor) for name, factor in row.fades.items()):
        raise Refused("fades does not fit")
    try:
        for name, value in contents.text_fields(row.content).items():
            setattr(row, name, value)
        row.structure = contents.check_structure(row.kind, row.structure)
        contents.check_json_size("metadata", row.metadata)
        contents.check_json_size("environment", row.environment)
    except Invalid as refusal:
        raise Refused(refusal.errors[0].message if refusal.errors else refusal.message) from None
    if row.status in (Status.ACTIVE, Status.CANDIDATE) and screen(row.content, channel="memory").suspicious:
        row.status, row.needs_review = Status.QUARANTINED, True


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _revision(row: Any) -> None:
    row.actor_kind, row.actor_label = "system", "import"


def _trace(row: Any) -> None:
    row.callback_url, row.remember, row.mask_numbers, row.digest = "", False, {}, ""


def _evidence(row: Any) -> None:
    row.trace_digest, row.witness_id = "", None


def _agent(row: Any) -> None:
    _check_slug(row.slug)


def _check_slug(slug: str) -> None:
    try:
        check_slug(slug)
    except Invalid:
        raise Refused("its short name is none") from None


def _scope(row: Any) -> None:
    _check_slug(row.slug)
    if row.slug.startswith("private") != (row.agent_id is not None):
        raise Refused("its short name does not fit its kind")


_SPECIAL: dict[str, Callable[[Any], None]] = {
    "accounts.Agent": _agent,
    "memories.Evidence": _evidence,
    "memories.Memory": _memory,
    "memories.Revision": _revision,
    "memories.Scope": _scope,
    "reflection.Trace": _trace,
}
