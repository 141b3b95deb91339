"""Re-embedding a team as a job: with its progress on a page, to be stopped there, and telling what it did."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import JOB_OPEN, JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories import reembedding
from memories.embeddings import get_embedder


@transaction.atomic
def request_reembedding(*, team: Team, by: Actor, person: User | None = None) -> Job:
    """Queue the embedding of what the present model has no vector of; one that waits or is at work is returned."""
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # two clicks ask for one
    standing = Job.objects.of(team).filter(kind=JobKind.REEMBEDDING, status__in=JOB_OPEN).first()
    return standing or jobs.request(team=team, by=by, kind=JobKind.REEMBEDDING, person=person)


def run(work: Work) -> dict[str, Any]:
    """Embed batch by batch. Cancelled or interrupted, it keeps what is done and goes on from there when asked again."""
    embedder = get_embedder()
    with team_transaction(work.team):
        left = reembedding.missing(work.team, embedder.model_id)
    work.plan(work.job.done + left, "embedding memories")
    while embedded := reembedding.next_batch(work.team, embedder):
        with work.batch():
            stored = reembedding.store(work.team, embedder.model_id, embedded)
            work.job.done += stored
            work.cursor["embedded"] = work.cursor.get("embedded", 0) + stored
            work.cursor["batches"] = work.cursor.get("batches", 0) + 1  # it gets on, even where all were edited
    removed = reembedding.retire(work.team, embedder.model_id)
    return {
        "model": embedder.model_id,
        "memories_embedded": work.cursor.get("embedded", 0),
        "vectors_of_other_models_removed": removed,
    }
