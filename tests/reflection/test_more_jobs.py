"""Looking across the week and re-embedding as jobs: watched, stopped, gone on with, and telling what they did."""

from __future__ import annotations

import pytest
from django.urls import reverse

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import JobKind, JobStatus
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs import running
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import reembedding
from memories.models import Memory, MemoryVector
from memories.reembedding_job import request_reembedding
from reflection import pipeline
from reflection.consolidation.job import request_consolidation_job
from reflection.drafts import StepDraft
from reflection.models import Reflection
from reflection.tasks import HANDLERS
from tests import factories

pytestmark = pytest.mark.django_db
DENIED = (
    StepDraft(role="user", content="Deploy the billing service to staging."),
    StepDraft(role="assistant", kind="tool_call", tool="deploy", arguments={"service": "billing"}),
    StepDraft(
        role="tool", kind="tool_result", tool="deploy", is_error=True,
        content="Error: quota project is not set for this account",
    ),
    StepDraft(role="assistant", content="I could not deploy: the project is not set."),
)  # fmt: skip


def run(job: Job, turn: float = 60.0) -> Job:
    running.run(job.team, job.pk, HANDLERS, turn=turn)
    with team_transaction(job.team):
        return Job.objects.select_related("team").get(pk=job.pk)


def ask(team: Team, request) -> Job:
    with team_transaction(team):
        return request(team=team, by=SYSTEM)


@pytest.fixture
def episodes(agent) -> None:
    for number in range(2):
        task = f"Deploy service {number} to staging and say when it is up"
        _, reflection = factories.trace(agent, outcome="failed", task=task, steps=DENIED)
        pipeline.reflect(agent.team, reflection.pk)


def test_a_look_across_tells_what_came_of_it(team, agent, episodes) -> None:
    job = run(ask(team, request_consolidation_job))
    assert job.status == JobStatus.DONE
    assert job.result["with_episodes_of_the_week"] == 1
    assert job.result["memories_written"] == 1
    assert job.done == job.total == job.result["scopes"]
    with team_transaction(team):
        assert Memory.objects.of(team).filter(source="consolidation").count() == 1


def test_a_look_goes_on_where_its_turn_ended(team, agent, episodes) -> None:
    job = ask(team, request_consolidation_job)
    turns = 0
    while job.status == JobStatus.QUEUED:
        job, turns = run(job, turn=0.0), turns + 1
        assert turns < 10
    assert job.status == JobStatus.DONE
    assert turns > 1
    with team_transaction(team):
        assert Reflection.objects.of(team).filter(trace=None).count() == 1, "no scope is looked at twice"


def test_a_look_that_is_stopped_asks_for_no_further_scope(team, agent, episodes) -> None:
    job = ask(team, request_consolidation_job)
    with team_transaction(team):
        jobs.cancel(team=team, by=SYSTEM, job=job)
    assert run(job).status == JobStatus.CANCELLED
    with team_transaction(team):
        assert not Reflection.objects.of(team).filter(trace=None).exists()


@pytest.fixture
def without_vectors(team, agent) -> list[Memory]:
    made = [factories.memory(agent, f"Service {number} listens on port {8000 + number}.") for number in range(5)]
    with team_transaction(team):
        MemoryVector.objects.of(team).delete()
    return made


def test_re_embedding_tells_how_many(team, without_vectors) -> None:
    job = run(ask(team, request_reembedding))
    assert job.status == JobStatus.DONE
    assert job.result["memories_embedded"] == 5
    assert (job.done, job.total) == (5, 5)
    with team_transaction(team):
        assert MemoryVector.objects.of(team).count() == 5


def test_re_embedding_is_stopped_and_gone_on_with(team, without_vectors, monkeypatch) -> None:
    monkeypatch.setattr(reembedding, "BATCH", 2)
    job = run(ask(team, request_reembedding), turn=0.0)
    assert (job.status, job.done, job.total) == (JobStatus.QUEUED, 2, 5)
    with team_transaction(team):
        jobs.cancel(team=team, by=SYSTEM, job=job)
    assert run(job).status == JobStatus.CANCELLED
    with team_transaction(team):
        assert MemoryVector.objects.of(team).count() == 2, "what is done stays done"
    assert run(ask(team, request_reembedding)).result["memories_embedded"] == 3


@pytest.mark.parametrize("name", ["consolidate", "reembed"])
def test_two_clicks_ask_for_one(team, alice, browse, without_vectors, name) -> None:
    client = browse(alice)
    assert client.get(reverse(name)).status_code == 200
    first, second = client.post(reverse(name)), client.post(reverse(name))
    assert first["Location"] == second["Location"]
    assert client.get(first["Location"]).status_code == 200
    kind = JobKind.CONSOLIDATION if name == "consolidate" else JobKind.REEMBEDDING
    with team_transaction(team):
        assert Job.objects.of(team).filter(kind=kind).count() == 1


def test_the_page_says_how_many_are_missing(alice, browse, without_vectors) -> None:
    page = browse(alice).get(reverse("reembed")).content.decode()
    assert "<strong>5</strong> memories have no vector" in page
