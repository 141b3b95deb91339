"""Reading our own export back: rows with their ids mapped, batch by batch, each once however often it is read.

Vouched for (the operator says so and the signature is ours), a file is taken as it is, history and all.
Otherwise only what it knows is taken, `taming` says how, and who judged or used it is left out.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db import DataError, IntegrityError, models, transaction

from hindsight_site.accounts import audit, quotas
from hindsight_site.accounts.enums import ChunkRole
from hindsight_site.accounts.jobs import files
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import Agent, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Invalid
from memories import indexing, scopes
from memories.actions import live_count
from memories.actions.quarantining import open_case
from memories.enums import ReviewMode, Status
from memories.models import Evidence, Memory, Scope
from memories.policies import LIVE
from memories.policy import LIFE
from reflection.exporting.tables import HISTORY, model_of_type
from reflection.importing.ids import Mapped
from reflection.importing.report import Report
from reflection.importing.rows import existing, people_of, row_of
from reflection.importing.taming import Refused, tame
from reflection.importing.vouching import header_of, is_our_own
from reflection.models import ReviewBatch, Step

ROWS = 100  # of a batch; a step is at most 64 KB
NAMED: dict[type[models.Model], str] = {Agent: "slug", Scope: "slug"}  # found by name where they stand already
NOT_SEARCHED = (Status.REJECTED, Status.FORGOTTEN)

_NOT_TAKEN = (IntegrityError, DataError, UnicodeEncodeError)  # the last: half of a surrogate pair

Line = tuple[int, dict[str, Any]]  # its number in the file, and what it says


def run(work: Work) -> dict[str, Any]:
    """Import the uploaded file. Goes on at the last committed batch after an interruption."""
    header, vouched = _opened(work)
    report = Report.from_json(work.cursor.get("report", {"format": "hindsight"}))
    known: dict[str, str] = work.cursor.get("known", {})
    keep = vouched and header["team"]["id"] == str(work.team.pk)
    for batch in _batches(work, report, work.cursor.get("line", 1)):
        with work.batch(doing="reading rows"):
            ids = Mapped(work.team.pk, keep, known)
            people = people_of(work.team) if vouched else {}
            _take(work, batch, ids, people, known, vouched, report)
            work.job.done = batch[-1][0]
            work.cursor.update(line=batch[-1][0] + 1, known=known, report=report.as_json())
            _record(work, batch, report)
    _give_private_scopes(work)
    return {**report.as_json(), "vouched_for": vouched}


def _opened(work: Work) -> tuple[dict[str, Any], bool]:
    first = next(files.lines(work.job, ChunkRole.UPLOAD), b"")
    header = header_of(first)
    if header is None or not isinstance(header.get("team"), dict):
        raise Invalid("This is no export of ours, or one of a newer version.", code="unknown_format")
    if "vouched" not in work.cursor:
        wanted = bool(work.job.arguments.get("verified"))
        ours = is_our_own(files.lines(work.job, ChunkRole.UPLOAD)) if wanted else False
        if wanted and not ours:
            raise Invalid(
                "The file is not one that this site made, or it was changed since: its signature does not fit. "
                "Import it without vouching for it; it is then masked, screened and trusted like any other input.",
                code="not_our_own",
            )
        work.cursor["vouched"] = ours
        work.plan(sum(1 for _ in files.lines(work.job, ChunkRole.UPLOAD)), "reading rows")
    return header, work.cursor["vouched"]


def _batches(work: Work, report: Report, start: int) -> Iterator[list[Line]]:
    """The lines from `start` on, in runs of one type."""
    batch: list[Line] = []
    numbered = enumerate(files.lines(work.job, ChunkRole.UPLOAD))
    for number, line in islice(numbered, start, None):
        told = _read(number, line, report)
        if told is None:
            continue
        if batch and (len(batch) >= ROWS or batch[-1][1]["type"] != told["type"]):
            yield batch
            batch = []
        batch.append((number, told))
    if batch:
        yield batch


def _read(number: int, line: bytes, report: Report) -> dict[str, Any] | None:
    try:
        told = json.loads(line) if line.strip() else {"type": "end"}
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("type"), str):
        report.leave_out("line", "not JSON of our format", f"line {number + 1}")
        return None
    if told["type"] == "end":
        return None
    if model_of_type(told["type"]) is None:
        report.leave_out("line", "of a type that is not known", f"line {number + 1}")
        return None
    return told


def _take(
    work: Work,
    batch: list[Line],
    ids: Mapped,
    people: dict[str, User],
    known: dict[str, str],
    vouched: bool,
    report: Report,
) -> None:
    """Store what is new of one batch. `known` learns the rows that are found by name."""
    kind = batch[0][1]["type"]
    model = model_of_type(kind)
    assert model is not None  # noqa: S101 - `_read` has seen to it
    if not vouched and model._meta.label in HISTORY:
        report.left_out[f"{kind}: only from a file that is vouched for"] += len(batch)
        return
    built: list[tuple[int, Any]] = []
    for number, told in batch:
        try:
            row = row_of(model, told, work.team, ids, people)
            if not vouched:
                tame(row)
            built.append((number, row))
        except Refused as refusal:
            report.leave_out(kind, str(refusal), f"line {number + 1}")
        except RecursionError:
            report.leave_out(kind, "nested too deeply", f"line {number + 1}")
    built = _new_only(work, model, built, batch, known, report)
    built = _pointing_at_something(work, model, built, report)
    if model is Memory:
        _make_room(work, built)
        if not vouched:
            _hold_back(work, built)
    stored = _store(model, built, report)
    report.taken[kind] += len(stored)
    if model is Memory:
        held = [row for row in stored if row.status == Status.QUARANTINED]
        report.held_back[kind] += len(held)
        if not vouched:  # a file that is vouched for brings the cases along
            for memory in held:
                open_case(team=work.team, by=work.by, memory=memory, reason="held back by an import")
        indexing.index(work.team, [row for row in stored if row.status not in NOT_SEARCHED])


def _make_room(work: Work, built: list[tuple[int, Any]]) -> None:
    """The team's quota counts imported memories like any others. Raises `OverQuota`, which ends the job."""
    for _, row in built:
        if row.status in LIVE:
            quotas.check_memory(work.team, lambda: live_count(work.team))


def _hold_back(work: Work, built: list[tuple[int, Any]]) -> None:
    """A scope whose new memories wait for a person makes no exception for a file's."""
    modes = dict(Scope.objects.of(work.team).values_list("pk", "review_mode"))
    for _, row in built:
        mode, low = modes[row.scope_id], row.confidence < LIFE.low_confidence
        waits = mode == ReviewMode.GATE_ALL or (mode == ReviewMode.GATE_LOW_CONFIDENCE and low)
        if waits and row.status == Status.ACTIVE:
            row.status, row.needs_review = Status.CANDIDATE, True


def _new_only(
    work: Work,
    model: type[models.Model],
    built: list[tuple[int, Any]],
    batch: list[Line],
    known: dict[str, str],
    report: Report,
) -> list[tuple[int, Any]]:
    there = existing(model, work.team, [row.pk for _, row in built])
    if name := NAMED.get(model):
        said = dict(batch)
        same = model._default_manager.filter(
            team_id=work.team.pk, **{f"{name}__in": [getattr(r, name) for _, r in built]}
        )
        by_name = dict(same.values_list(name, "pk"))
        for number, row in built:
            if (found := by_name.get(getattr(row, name))) is not None:
                known[str(uuid.UUID(said[number]["id"]))] = str(found)
                there.add(row.pk)
    report.already_there[str(model._meta.model_name)] += sum(row.pk in there for _, row in built)
    fresh = [(number, row) for number, row in built if row.pk not in there]
    if model is ReviewBatch:
        return _unless_week_is_taken(work, fresh, report)
    return fresh


def _unless_week_is_taken(work: Work, built: list[tuple[int, Any]], report: Report) -> list[tuple[int, Any]]:
    taken = set(
        ReviewBatch.objects.of(work.team).filter(week__in=[row.week for _, row in built]).values_list("week", flat=True)
    )
    for number, row in built:
        if row.week in taken:
            report.leave_out("reviewbatch", "this team has a batch of that week already", f"line {number + 1}")
    return [(number, row) for number, row in built if row.week not in taken]


def _pointing_at_something(
    work: Work, model: type[models.Model], built: list[tuple[int, Any]], report: Report
) -> list[tuple[int, Any]]:
    """Leave out rows whose other end is not in this team; an optional one is emptied."""
    gone: set[int] = set()
    for field in model._meta.concrete_fields:
        if not field.is_relation or field.name == "team" or field.related_model is User:
            continue
        wanted = {getattr(row, field.attname) for _, row in built} - {None}
        missing = wanted - existing(field.related_model, work.team, wanted) if wanted else set()  # type: ignore[arg-type]
        for number, row in built:
            if getattr(row, field.attname) in missing:
                if field.null:
                    setattr(row, field.attname, None)
                else:
                    gone.add(number)
    if model is Evidence:
        gone |= _quoting_nothing(work, built)
    for number in sorted(gone):
        report.leave_out(str(model._meta.model_name), "what it points at is not there", f"line {number + 1}")
    return [(number, row) for number, row in built if number not in gone]


def _quoting_nothing(work: Work, built: list[tuple[int, Any]]) -> set[int]:
    """Quotes must stand in their step, where the row says or somewhere else in it."""
    steps = Step.objects.of(work.team).in_bulk({row.step_id for _, row in built} - {None})
    wrong: set[int] = set()
    for number, row in built:
        step = steps.get(row.step_id)
        if step is None:
            wrong |= {number} if row.step_id is not None or row.quote else set()
        elif step.text[row.start : row.end] != row.quote:
            place = step.text.find(row.quote)
            wrong |= {number} if place < 0 or not row.quote else set()
            row.start, row.end = max(place, 0), max(place, 0) + len(row.quote)
    return wrong


def _store(model: type[models.Model], built: list[tuple[int, Any]], report: Report) -> list[Any]:
    """Insert all at once; where the table refuses, one by one, so that one bad row costs only itself."""
    rows = [row for _, row in built]
    try:
        with transaction.atomic():
            return model._default_manager.bulk_create(rows)
    except _NOT_TAKEN:
        pass
    stored = []
    for number, row in built:
        try:
            with transaction.atomic():
                row.save(force_insert=True)
            stored.append(row)
        except _NOT_TAKEN:
            report.leave_out(str(model._meta.model_name), "the table does not take it", f"line {number + 1}")
    return stored


def _give_private_scopes(work: Work) -> None:
    """Our own files bring them; whatever a file says, no agent stands without one."""
    with team_transaction(work.team):
        without = Agent.objects.of(work.team).exclude(
            pk__in=Scope.objects.of(work.team).exclude(agent=None).values("agent")
        )
        for agent in without:
            scopes.add_private(team=work.team, agent=agent)


def _record(work: Work, batch: list[Line], report: Report) -> None:
    detail = {"type": batch[0][1]["type"], "lines": len(batch)}
    after = audit.fingerprint({"job": work.job.pk, "line": batch[-1][0], "report": report.as_json()})
    audit.record(team=work.team, by=work.by, verb="data.imported", on=work.job, after=after, detail=detail)
