"""How far looking back is, for people and programs; and the alarm for what nobody takes up."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from hindsight_site import stuck_work
from hindsight_site.accounts.enums import JobKind
from hindsight_site.accounts.models import Job
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.metrics import database
from reflection import lease, pipeline, tasks
from reflection.models import Reflection
from reflection.progress import Batch, batch
from tests import factories

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(minutes=11)


@pytest.fixture(autouse=True)
def _no_word_of_earlier_sweeps() -> None:
    cache.delete(stuck_work.KEY)


def queue(agent, count: int) -> list[Reflection]:
    tasks_of = [f"Export the invoices of the customer number {number}" for number in range(count)]
    return [reflection for task in tasks_of for _, reflection in [factories.trace(agent, task=task)]]


def change(reflection: Reflection, **values) -> None:
    with team_transaction(reflection.team):
        Reflection.objects.of(reflection.team).filter(pk=reflection.pk).update(**values)


def counted(team, agent=None) -> Batch:
    with team_transaction(team):
        return batch(team, agent)


def test_a_batch_is_counted_from_where_the_queue_was_last_empty(agent) -> None:
    now = timezone.now()
    earlier, *present = queue(agent, 6)
    change(earlier, created_at=now - timedelta(hours=2), finished_at=now - timedelta(hours=1), status="stored")
    for place, reflection in enumerate(present):
        change(reflection, created_at=now - timedelta(minutes=10 - place), run_after=now - timedelta(minutes=9))
    change(present[0], status="stored", finished_at=now)
    change(present[1], status="failed", finished_at=now, error="It was refused.")
    change(present[2], status="running", started_at=now, lease_until=now + timedelta(minutes=1))
    change(present[3], attempts=1, run_after=now + timedelta(minutes=1))
    found = counted(agent.team)
    assert (found.total, found.waiting, found.retrying, found.running, found.done, found.dead) == (5, 2, 1, 1, 1, 1)
    assert found.begun_at == now - timedelta(minutes=10)
    assert found.per_minute == pytest.approx(0.2, rel=0.05)
    assert found.seconds_left == pytest.approx(900, rel=0.05), "two in ten minutes, three to go"
    assert found.oldest_waiting_seconds == pytest.approx(540, rel=0.05)
    assert found.stuck == 0


def test_a_drained_batch_stays_to_be_looked_at(agent) -> None:
    for reflection in queue(agent, 3):
        pipeline.reflect(agent.team, reflection.pk)
    found = counted(agent.team)
    assert (found.total, found.open, found.done, found.seconds_left) == (3, 0, 3, None)
    assert found.by_status["stored"] + found.by_status["nothing_new"] == 3


def test_over_rest_an_agent_sees_its_own_batch(api, team_api, agent) -> None:
    queue(agent, 2)
    queue(factories.agent(agent.team, "stranger"), 1)
    assert api.get("/api/v1/reflections/progress").json()["waiting"] == 2
    body = team_api.get("/api/v1/reflections/progress").json()
    assert (body["waiting"], body["total"], body["done"]) == (3, 3, 0)


def test_an_empty_team_has_no_batch(agent, browse, alice, other_api) -> None:
    queue(agent, 1)
    assert other_api.get("/api/v1/reflections/progress").json()["begun_at"] is None
    assert counted(agent.team).total == 1


def test_the_pages_tell_it(agent, browse, alice) -> None:
    first, second, *_ = queue(agent, 4)
    pipeline.reflect(agent.team, first.pk)
    change(second, status="failed", finished_at=timezone.now(), error="The model endpoint cannot be reached.")
    listed = browse(alice).get("/traces/").content.decode()
    assert "2 of 4 looked back at: 0 at work, 2 waiting, 1 failed." in " ".join(listed.split())
    page = browse(alice).get("/traces/progress/").content.decode()
    assert "The model endpoint cannot be reached." in page
    assert f"/traces/{second.trace_id}/" in page
    assert "data-open" in page, "it looks again by itself"


def test_the_pages_of_a_quiet_team_say_so(agent, browse, alice) -> None:
    assert "Nothing to look back at" in browse(alice).get("/traces/progress/").content.decode()


# --- What nobody takes up ---------------------------------------------------------------------------------


def make_stuck(agent) -> Reflection:
    (reflection,) = queue(agent, 1)
    change(reflection, created_at=timezone.now() - LONG_AGO, run_after=timezone.now() - LONG_AGO)
    return reflection


def test_work_that_nobody_takes_up_raises_the_alarm_everywhere(agent, browse, alice, client: Client, caplog) -> None:
    assert client.get("/readyz").json()["checks"]["work"] == {"ok": True, "stuck": {}, "swept_seconds_ago": None}
    OrmQ.objects.all().delete()
    make_stuck(agent)
    with caplog.at_level(logging.ERROR, logger="reflection.tasks"):
        tasks.sweep_jobs()
    (record,) = [record for record in caplog.records if record.message == "work is stuck"]
    assert (record.work, record.count) == ("reflections", 1)
    asked = client.get("/readyz")
    assert asked.status_code == 200, "the web serves: what agents send is kept"
    assert asked.json()["status"] == "degraded"
    assert asked.json()["checks"]["work"]["stuck"] == {"reflections": 1, "jobs": 0}
    (metric,) = [metric for metric in database.read() if metric.name == "hindsight_stuck"]
    assert metric.values == {(("work", "reflections"),): 1.0, (("work", "jobs"),): 0.0}
    for path in ("/traces/", "/traces/progress/"):
        assert "1 reflection is stuck." in browse(alice).get(path).content.decode()


def test_the_alarm_ends_when_the_work_is_done(agent, client: Client) -> None:
    reflection = make_stuck(agent)
    tasks.sweep_jobs()
    pipeline.reflect(agent.team, reflection.pk)
    tasks.sweep_jobs()
    assert client.get("/readyz").json()["checks"]["work"]["ok"] is True


def test_what_waits_behind_others_is_not_stuck(agent) -> None:
    make_stuck(agent)
    (other,) = queue(agent, 1)
    assert lease.claim(agent.team, other.pk) is not None
    assert counted(agent.team).stuck == 0


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"started_at": -LONG_AGO, "lease_until": -LONG_AGO}, id="without-a-lease"),
        pytest.param({"started_at": -timedelta(hours=2), "lease_until": timedelta(minutes=1)}, id="for-hours"),
    ],
)
def test_what_hangs_at_work_is_stuck(agent, values) -> None:
    (reflection,) = queue(agent, 1)
    change(reflection, status="running", **{name: timezone.now() + value for name, value in values.items()})
    assert counted(agent.team).stuck == 1


def test_jobs_are_looked_after_too(agent, client: Client) -> None:
    with team_transaction(agent.team):
        Job.objects.create(team=agent.team, kind=JobKind.INVARIANTS, run_after=timezone.now() - LONG_AGO)
    tasks.sweep_jobs()
    assert client.get("/readyz").json()["checks"]["work"]["stuck"]["jobs"] == 1


def test_a_sweep_that_stopped_is_an_alarm_too(client: Client, monkeypatch) -> None:
    stuck_work.tell({"reflections": 0, "jobs": 0})
    kept = cache.get(stuck_work.KEY)
    cache.set(stuck_work.KEY, {**kept, "at": kept["at"] - stuck_work.SWEEP_IS_LATE_AFTER - 1}, None)
    asked = client.get("/readyz").json()
    assert (asked["status"], asked["checks"]["work"]["ok"]) == ("degraded", False)


def test_a_long_queue_is_not_made_longer(agent) -> None:
    """While older tasks wait, a due run has its wake-up behind them; a second one would only be in the way."""
    OrmQ.objects.all().delete()
    queue(agent, 3)
    past = timezone.now() - timedelta(minutes=2)
    with team_transaction(agent.team):
        Reflection.objects.of(agent.team).update(created_at=past, run_after=past)
    OrmQ.objects.update(lock=past - timedelta(seconds=1))
    assert tasks.sweep_jobs() == "0 woken, 0 buried"
    OrmQ.objects.all().delete()
    assert tasks.sweep_jobs() == "3 woken, 0 buried", "the wake-ups were lost"
