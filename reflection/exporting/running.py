"""The job of an export: pieces into sealed chunks, then a file to download for a day."""

from __future__ import annotations

from typing import Any

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import ChunkRole, JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs import files
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import ApiToken, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from reflection.exporting import writing
from reflection.exporting.writing import Position


def request_export(*, team: Team, by: Actor, person: User | None = None, token: ApiToken | None = None) -> Job:
    """Queue an export of the whole team."""
    return jobs.request(team=team, by=by, kind=JobKind.EXPORT, person=person, token=token)


def run(work: Work) -> dict[str, Any]:
    """Write the file piece by piece; a turn that ends goes on at the last committed piece."""
    if not work.job.total:
        with team_transaction(work.team):
            total = writing.row_count(work.team)
        work.plan(max(total, 1), "writing rows")
    position = Position(**work.cursor.get("position", {}))
    number, size = work.cursor.get("number", 0), work.cursor.get("size", 0)
    while not position.ended:
        with work.batch():
            before = position.rows
            data, position = writing.piece(work.team, position)
            files.put(work.job, ChunkRole.OUTPUT, number, data)
            number, size = number + 1, size + len(data)
            work.job.done += position.rows - before
            work.cursor.update(position=position.as_json(), number=number, size=size)
    return {"rows": position.rows, "bytes": size, "digest": position.digest}
