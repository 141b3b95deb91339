"""Changing what a memory says. Every earlier version stays as a revision."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, NotFound
from memories import contents, indexing
from memories.actions.changing import change, check_revision, is_settled, lock
from memories.enums import Trust
from memories.models import Memory, Revision
from memories.safety.masking import MaskState, mask_text, mask_value


@transaction.atomic
def revise(
    *,
    team: Team,
    by: Actor,
    memory: Memory,
    content: str | None = None,
    structure: dict[str, Any] | None = None,
    tags: list[str] | None = None,
    reason: str = "",
    expected_revision: int | None = None,
) -> Memory:
    """Change the text, structure or tags; the version before is kept. No change, no revision.

    Raises `Stale` when `expected_revision` is not the current one.
    """
    check_revision(memory, expected_revision)
    if is_settled(memory):
        raise Conflict("This memory was forgotten; there is nothing left to edit.", code="invalid_transition")
    mask = MaskState()
    content = None if content is None else mask_text(content, mask)
    structure, tags = mask_value(structure, mask), mask_value(tags, mask)
    wanted = _wanted(memory, content, structure, tags)
    if not wanted:
        return memory
    lock(team, memory)
    if not by.is_person and (memory.approved_at or memory.trust == Trust.HUMAN):
        # What a person approved was the text before: this one has to be judged again.
        wanted |= {"approved_at": None, "trust": Trust.AGENT, "needs_review": True}
    _keep_revision(team, by, memory, reason)
    wanted["revision"] = memory.revision + 1
    change(
        team=team,
        by=by,
        memory=memory,
        verb="memory.revised",
        values=wanted,
        detail={"reason": reason, "revision": wanted["revision"]},
    )
    indexing.index(team, [memory])
    return memory


@transaction.atomic
def rollback(
    *, team: Team, by: Actor, memory: Memory, to: int, reason: str = "", expected_revision: int | None = None
) -> Memory:
    """Say again what revision `to` said. This is a new revision; history keeps both."""
    earlier = Revision.objects.of(team).filter(memory=memory, number=to).first()
    if earlier is None:
        raise NotFound(f"This memory has no earlier revision {to}.")
    return revise(
        team=team,
        by=by,
        memory=memory,
        content=earlier.content,
        structure=earlier.structure,
        tags=earlier.tags,
        reason=reason or f"rolled back to revision {to}",
        expected_revision=expected_revision,
    )


def _wanted(
    memory: Memory, content: str | None, structure: dict[str, Any] | None, tags: list[str] | None
) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    if content is not None and content != memory.content:
        wanted |= contents.text_fields(content)
        if structure is None and memory.structure.get("lesson") == memory.content:
            # The lesson is the text: it is not left behind saying what was corrected.
            structure = {**memory.structure, "lesson": content}
    if structure is not None and structure != memory.structure:
        wanted["structure"] = contents.check_structure(memory.kind, structure)
    if tags is not None and tags != memory.tags:
        wanted["tags"] = tags
    return wanted


def _keep_revision(team: Team, by: Actor, memory: Memory, reason: str) -> None:
    last = Revision.objects.of(team).filter(memory=memory).order_by("-number").first()
    Revision.objects.create(
        team=team,
        memory=memory,
        number=memory.revision,
        content=memory.content,
        structure=memory.structure,
        tags=memory.tags,
        tier=memory.tier,
        confidence=memory.confidence,
        valid_from=last.valid_until if last else memory.created_at,
        actor_kind=by.kind,
        actor_label=by.label,
        reason=reason[:300],
    )
