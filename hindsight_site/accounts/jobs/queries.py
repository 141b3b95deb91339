"""Reading jobs: shared by pages and API."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import NotFound


def visible(team: Team, agent: Agent | None) -> QuerySet[Job]:
    """The jobs a caller may see: the team's all, a token bound to an agent what its agent's tokens asked for."""
    jobs = Job.objects.of(team).select_related("person", "token__agent", "team")
    return jobs if agent is None else jobs.filter(token__agent=agent)


def get(team: Team, agent: Agent | None, job_id: uuid.UUID, kind: str = "") -> Job:
    """Return one visible job, of `kind` where one is named, or raise `NotFound`."""
    jobs = visible(team, agent)
    job = (jobs.filter(kind=kind) if kind else jobs).filter(pk=job_id).first()
    if job is None:
        raise NotFound("There is no such job.", code="job_not_found")
    return job
