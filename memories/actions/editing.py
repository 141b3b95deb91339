"""Changing what a memory says. Every earlier version stays as a revision."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import Conflict, NotFound
from memories import contents, indexing, team_policy
from memories.actions.changing import change, check_revision, fingerprint, is_settled, lock
from memories.actions.conflicts import NEIGHBOURS, reconsider
from memories.actions.quarantining import quarantine
from memories.actions.remembering import says_the_same
from memories.confidence import prior
from memories.enums import QuarantineRule, Status, Tier, Trust
from memories.gating import holds_back
from memories.models import Evidence, Memory, Merge, Revision
from memories.policies import can_move
from memories.policy import Life
from memories.safety.masking import MaskState, mask_text, mask_value
from memories.safety.planted import planted, strings_of
from memories.sameness import same_conclusion
from memories.sources import source_of

# A person decides about these first; words put in their place would pass under the decision.
HELD = (Status.QUARANTINED, Status.REJECTED)
UNSAID = 0.5  # an agent's estimate that it does not give


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
    keeps_support: bool = False,
) -> Memory:
    """Change the text, structure or tags; the version before is kept. No change, no revision.

    Unless a person makes it, a change is screened, and quarantined when it reads like a planted instruction;
    it starts anew when it says something else than before (`_starts_anew`), and waits where the scope gates.
    `keeps_support`: the change is itself what the newest evidence says, or a reviewer's verdict. Raises `Stale` when
    `expected_revision` is not the current one, `Conflict` when a person has to decide about the memory first.
    """
    check_revision(memory, expected_revision)
    _check_editable(by, memory)
    mask = MaskState()
    content = None if content is None else mask_text(content, mask)
    structure, tags, reason = mask_value(structure, mask), mask_value(tags, mask), mask_text(reason, mask)
    wanted = _wanted(memory, content, structure, tags)
    if not wanted:
        return memory
    found = "" if by.is_person else _planted(memory, wanted)
    lock(team, memory)
    changed = _with(memory, wanted)
    before, embedding = indexing.embed_memories([memory, changed])
    anew = False
    if not by.is_person:
        anew = not keeps_support and _says_otherwise(team, memory, changed, before, embedding)
        wanted |= _unjudged(team, memory, wanted, anew=anew)
    _keep_revision(team, by, memory, reason)
    if anew:
        _leave_evidence(team, memory)
    wanted["revision"] = memory.revision + 1
    change(
        team=team,
        by=by,
        memory=memory,
        verb="memory.revised",
        values=wanted,
        detail={"revision": wanted["revision"]},
        reason=reason,
    )
    indexing.index(team, [memory], np.asarray([embedding]))
    if found:
        return quarantine(team=team, by=by, memory=memory, reason=found, rule=QuarantineRule.SCREENING)
    if "content" in wanted or "structure" in wanted:
        near = indexing.nearest(team, [memory.scope_id], embedding, limit=NEIGHBOURS)
        reconsider(team=team, by=by, memory=memory, near=near)
    return memory


@transaction.atomic
def rollback(
    *,
    team: Team,
    by: Actor,
    memory: Memory,
    to: int,
    reason: str = "",
    expected_revision: int | None = None,
    keeps_support: bool = False,
) -> Memory:
    """Say again what revision `to` said. This is a new revision; history keeps both.

    A person brings back the quotes that stood under it, too; anybody else's rollback is an edit like any other.
    """
    earlier = Revision.objects.of(team).filter(memory=memory, number=to).first()
    if earlier is None:
        raise NotFound(f"This memory has no earlier revision {to}.")
    memory = revise(
        team=team,
        by=by,
        memory=memory,
        content=earlier.content,
        structure=earlier.structure,
        tags=earlier.tags,
        reason=reason or f"rolled back to revision {to}",
        expected_revision=expected_revision,
        keeps_support=keeps_support,
    )
    if by.is_person:
        _bring_evidence_back(team, by, memory, earlier)
    return memory


def _check_editable(by: Actor, memory: Memory) -> None:
    if is_settled(memory):
        raise Conflict("This memory was forgotten; there is nothing left to edit.", code="invalid_transition")
    if memory.status in HELD and not by.is_person:
        raise Conflict(
            f"This memory is {memory.get_status_display().lower()}: a person decides about it before it is edited.",
            code="held_back",
        )


def _planted(memory: Memory, wanted: dict[str, Any]) -> str:
    """Why what is wanted reads like a planted instruction, or nothing. Raises `Conflict` where it cannot be held."""
    found = planted(wanted)
    if found and not can_move(memory, Status.QUARANTINED):
        raise Conflict(
            f"This reads like a planted instruction ({found}), and a memory that is "
            f"{memory.get_status_display().lower()} cannot be held back for a person. Word it differently.",
            code="unsafe",
        )
    return found


def _with(memory: Memory, wanted: dict[str, Any]) -> Memory:
    changed = copy(memory)
    for name, value in wanted.items():
        setattr(changed, name, value)
    return changed


def _says_otherwise(team: Team, memory: Memory, changed: Memory, before: np.ndarray, after: np.ndarray) -> bool:
    """Whether the change draws another conclusion: by its words, its structure, or its distance as a vector."""
    alike = float(before @ after) >= team_policy.of(team).life.merge_cosine * float(
        np.linalg.norm(before) * np.linalg.norm(after)
    )
    if not alike or not says_the_same(memory, changed):
        return True
    said, says = ("\n".join(strings_of(one.structure)) for one in (memory, changed))
    return bool(said) and said != says and not same_conclusion(said, says)


def _unjudged(team: Team, memory: Memory, wanted: dict[str, Any], *, anew: bool) -> dict[str, Any]:
    """What was said of the text before does not hold for this one."""
    values: dict[str, Any] = {}
    life = team_policy.of(team).life
    if memory.approved_at or memory.trust == Trust.HUMAN:
        values |= {"approved_at": None, "trust": Trust.AGENT, "needs_review": True}
    if anew:
        values |= _starts_anew(memory, life)
    is_said = "content" in wanted or "structure" in wanted
    if is_said and memory.status == Status.ACTIVE:
        confidence = values.get("confidence", memory.confidence)
        if holds_back(memory.scope, confidence, life):
            values |= {"status": Status.CANDIDATE, "needs_review": True}
    return values


def _starts_anew(memory: Memory, life: Life) -> dict[str, Any]:
    """The standing of an agent's own new word: nobody approved it, nothing confirmed it, it held nowhere yet."""
    trust = Trust.EXTERNAL if memory.trust == Trust.EXTERNAL else Trust.AGENT
    belief = prior(UNSAID, trust, life)
    return {
        "approved_at": None,
        "trust": trust,
        "support_count": 1,
        "alpha": belief.alpha,
        "beta": belief.beta,
        "confidence": belief.mean,
        "tier": Tier.EPISODIC if memory.tier == Tier.SEMANTIC else memory.tier,
        "needs_review": True,
    }


def _leave_evidence(team: Team, memory: Memory) -> None:
    """The quotes stay with the text that they were quoted for; the new one does not rest on them."""
    Evidence.objects.of(team).filter(memory=memory, removed_at=None).update(removed_at=timezone.now())
    # Nor does what others brought count for it any more: taken apart, nothing is taken back twice.
    Merge.objects.of(team).filter(memory=memory).update(counted=False)


def _bring_evidence_back(team: Team, by: Actor, memory: Memory, earlier: Revision) -> None:
    """The quotes that stood under an earlier text and whose steps are still there, and their support."""
    left = Evidence.objects.of(team).filter(memory=memory, removed_at__gte=earlier.valid_until)
    brought = left.filter(created_at__lt=earlier.valid_until).exclude(step_id=None).update(removed_at=None)
    if not brought:
        return
    standing = Evidence.objects.of(team).filter(memory=memory, removed_at=None).exclude(trace_id=None)
    support = max(1, len({source_of(*row) for row in standing.values_list("trace_id", "trace_digest")}))
    lock(team, memory)
    before, memory.support_count, memory.updated_at = fingerprint(memory), support, timezone.now()
    memory.save(update_fields=["support_count", "updated_at"])
    after = audit.fingerprint({"memory": fingerprint(memory), "quotes_restored": brought})
    detail = {"quotes": brought, "support": support}
    audit.record(
        team=team, by=by, verb="memory.evidence_restored", on=memory, before=before, after=after, detail=detail
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
