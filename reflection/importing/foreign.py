"""Reading what another memory keeps: every item masked, screened and remembered like any other input."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from hindsight_site.accounts.enums import ChunkRole
from hindsight_site.accounts.jobs import files
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import Agent
from hindsight_site.refusals import Invalid, Refused
from memories import actions, contents, scopes
from memories.actions import Draft
from memories.enums import Trust
from memories.models import Memory, Scope
from memories.safety.masking import MaskState, mask_text, mask_value
from memories.safety.screening import screen
from reflection.importing.formats import PARSERS, Item, LeftOut, NotThisFormat, detect
from reflection.importing.report import Report

ITEMS = 25  # of a batch: each is embedded
MAX_BYTES = 32 * 1024 * 1024  # these formats are read whole
SOURCE = "import"


def run(work: Work) -> dict[str, Any]:
    """Import the uploaded file. An item that was taken before is not taken again, whatever became of it."""
    data = _whole(work)
    try:
        name = work.job.arguments["format"]
        name = detect(data) if name == "auto" else name
        found = list(PARSERS[name](data))
    except NotThisFormat as error:
        raise Invalid(
            f"This file cannot be read as {name if name != 'auto' else 'any known format'}: {error}"
        ) from None
    report = Report.from_json(work.cursor.get("report", {"format": name}))
    work.plan(len(found), "remembering")
    for batch, end in _batches(found, work.cursor.get("item", 0)):
        with work.batch(len(batch), doing="remembering"):
            _take(work, name, batch, report)
            work.cursor.update(item=end, report=report.as_json())
    return report.as_json()


def _whole(work: Work) -> bytes:
    data = bytearray()
    for chunk in files.read(work.job, ChunkRole.UPLOAD):
        data += chunk
        if len(data) > MAX_BYTES:
            raise Invalid(f"A file of this format may have at most {MAX_BYTES:,} bytes. Split it.")
    return bytes(data)


def _batches(found: list[Item | LeftOut], start: int) -> Iterator[tuple[list[Item | LeftOut], int]]:
    rest = iter(found[start:])
    while batch := list(islice(rest, ITEMS)):
        start += len(batch)
        yield batch, start


def _take(work: Work, format_name: str, batch: list[Item | LeftOut], report: Report) -> None:
    agent, scope = place_of(work)
    drafts: list[Draft] = []
    for item in batch:
        if isinstance(item, LeftOut):
            report.leave_out(item.kind, item.reason, item.where)
            continue
        try:
            draft = _draft(item, format_name)
            actions.check_draft(draft)
        except Refused as refusal:
            report.leave_out(item.kind, refusal.message, item.where)
            continue
        except RecursionError:
            report.leave_out(item.kind, "nested too deeply", item.where)
            continue
        if _taken_before(work, scope, draft):
            report.already_there[draft.kind] += 1
        else:
            drafts.append(draft)
    done = actions.remember_many(team=work.team, by=work.by, scope=scope, drafts=drafts, agent=agent)
    for draft, one in zip(drafts, done, strict=True):
        (report.already_there if one.merged else report.taken)[draft.kind] += 1
        report.held_back[draft.kind] += bool(draft.quarantine_reason)


def place_of(work: Work) -> tuple[Agent | None, Scope]:
    """The agent and the scope that the memories go to. Raises `NotFound` when they are gone meanwhile."""
    slug, scope = work.job.arguments.get("agent", ""), work.job.arguments.get("scope", "")
    agent = Agent.objects.of(work.team).filter(slug=slug).first() if slug else None
    if not scope and agent is None:
        return None, scopes.team_scope(work.team)
    return agent, scopes.writable(work.team, agent, scope)


def _draft(item: Item, format_name: str) -> Draft:
    """What an item says, masked; of the lowest trust, and quarantined when it looks planted."""
    mask, item = MaskState(), Item(**storable(asdict(item)))
    content = mask_text(item.content, mask)
    origin = {"format": format_name, **({"id": item.origin[:200]} if item.origin else {})}
    metadata = mask_value({**item.metadata, "imported_from": origin}, mask)
    verdict = screen(content, channel="memory")
    if not verdict.suspicious:
        verdict = screen(json.dumps(metadata, ensure_ascii=False), channel="memory")
    return Draft(
        content=content,
        kind=item.kind,
        tier=item.tier,
        structure=mask_value(item.structure, mask),
        trust=Trust.EXTERNAL,
        tags=tuple(mask_text(tag, mask) for tag in item.tags),
        metadata=metadata,
        occurred_at=item.occurred_at,
        actor=mask_text(item.actor, mask),
        session_id=item.session_id,
        source=SOURCE,
        quarantine_reason=verdict.reason if verdict.suspicious else "",
    )


def storable(value: Any) -> Any:
    """The value without what PostgreSQL cannot store: NUL, halves of surrogate pairs, numbers that are none."""
    if isinstance(value, str):
        whole = value.replace("\x00", "").encode("utf-8", "replace").decode()
        return unicodedata.normalize("NFC", whole)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return type(value)(storable(item) for item in value)
    if isinstance(value, dict):
        return {storable(str(key)): storable(inner) for key, inner in value.items()}
    return value


def _taken_before(work: Work, scope: Scope, draft: Draft) -> bool:
    same = contents.fingerprint(draft.content)
    rows = Memory.objects.of(work.team).filter(scope=scope, fingerprint=same, kind=draft.kind, source=SOURCE)
    return rows.exists()
