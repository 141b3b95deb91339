"""Handing out the file of a finished export, chunk by chunk, outside any long transaction."""

from __future__ import annotations

from django.http import StreamingHttpResponse

from hindsight_site.accounts.enums import ChunkRole, JobStatus
from hindsight_site.accounts.jobs import files
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.refusals import Conflict, NotFound

CONTENT_TYPE = "application/x-ndjson"


def attachment(job: Job) -> StreamingHttpResponse:
    """The download. Raises `Conflict` before the export is done, `NotFound` when its file is no longer kept."""
    if job.status != JobStatus.DONE:
        raise Conflict(f"This export has no file: {job.get_status_display().lower()}.", code="job_not_done")
    size = files.size(job, ChunkRole.OUTPUT)
    if not size:
        raise NotFound("The file is no longer kept. Ask for a new export.", code="file_gone")
    name = f"hindsight-{job.team.slug}-{job.created_at:%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(size)}
    return StreamingHttpResponse(files.read(job, ChunkRole.OUTPUT), content_type=CONTENT_TYPE, headers=headers)
