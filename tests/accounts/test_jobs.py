"""Long work: claimed once, carried on in turns, cancelled, swept, and seen by those who may."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import leases, sealing
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.enums import ChunkRole, JobKind, JobStatus
from hindsight_site.accounts.jobs import actions, files, results, running, sweeping
from hindsight_site.accounts.jobs.estimates import estimate
from hindsight_site.accounts.jobs.models import Job, JobChunk
from hindsight_site.accounts.jobs.running import Work
from hindsight_site.accounts.models import AuditEvent, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Conflict, Invalid
from reflection import tasks
from tests import factories

pytestmark = pytest.mark.django_db


def asked(team: Team, **fields) -> Job:
    with team_transaction(team):
        return actions.request(team=team, by=SYSTEM, kind=JobKind.EXPORT, **fields)


def now_of(job: Job) -> Job:
    with team_transaction(job.team):
        return Job.objects.select_related("person", "token").get(pk=job.pk)


def run(job: Job, handler, turn: float = running.TURN) -> str:
    return running.run(job.team, job.pk, {job.kind: handler}, turn=turn)


def change(job: Job, **fields) -> None:
    with team_transaction(job.team):
        Job.objects.filter(pk=job.pk).update(**fields)


def counting(work: Work) -> dict[str, int]:
    """Counts to five, one a batch, from where it stopped."""
    work.plan(5, "counting")
    while work.cursor.get("n", 0) < 5:
        with work.batch(1):
            work.cursor["n"] = work.cursor.get("n", 0) + 1
    return {"counted": work.cursor["n"]}


def test_a_job_is_done_once(team) -> None:
    job = asked(team)
    assert OrmQ.objects.count() == 1
    assert run(job, counting) == JobStatus.DONE
    done = now_of(job)
    assert (done.result, done.done, done.total, done.status) == ({"counted": 5}, 5, 5, JobStatus.DONE)
    assert done.finished_at
    assert run(job, counting) == ""
    with team_transaction(team):
        verbs = list(
            AuditEvent.objects.of(team).filter(object_id=str(job.pk)).order_by("at").values_list("verb", flat=True)
        )
    assert verbs == ["job.requested", "job.done"]


def test_a_turn_hands_the_worker_back_and_the_next_goes_on(team) -> None:
    job = asked(team)
    seen = []

    def slow(work: Work) -> dict[str, int]:
        seen.append(work.cursor.get("n", 0))
        return counting(work)

    while run(job, slow, turn=0) == JobStatus.QUEUED:
        pass
    assert seen == [0, 1, 2, 3, 4, 5]
    assert now_of(job).result == {"counted": 5}
    assert now_of(job).attempts == 1, "a turn that got on is no failure"


def test_a_failure_is_tried_again_and_buried_visibly(team) -> None:
    job = asked(team)

    def broken(work: Work) -> dict[str, int]:
        raise RuntimeError("memory text must not reach the row")

    for _ in range(2):
        assert run(job, broken) == JobStatus.QUEUED
        assert now_of(job).run_after > timezone.now()
        change(job, run_after=timezone.now())
    assert run(job, broken) == JobStatus.FAILED
    assert now_of(job).error == "Unexpected RuntimeError; see the log."


def test_a_refusal_ends_it_at_once(team) -> None:
    def refused(work: Work) -> dict[str, int]:
        raise Invalid("This file is none.")

    job = asked(team)
    assert run(job, refused) == JobStatus.FAILED
    assert now_of(job).error == "This file is none."


def test_a_killed_worker_is_noticed_and_its_late_write_refused(team) -> None:
    job = asked(team)

    def overtaken(work: Work) -> dict[str, int]:
        change(job, lease_until=timezone.now() - timedelta(seconds=1))
        assert run(job, counting) == JobStatus.DONE  # another worker, after the lease
        return {"counted": -1}

    assert run(job, overtaken) == ""
    assert now_of(job).result == {"counted": 5}


def test_two_workers_share_nothing(team) -> None:
    job = asked(team)
    claims = [leases.claim(Job, team, job.pk, lease=timedelta(seconds=30), max_attempts=3) for _ in range(2)]
    assert [claim is None for claim in claims] == [False, True]


def test_the_lease_is_renewed(team) -> None:
    job = asked(team)
    claim = leases.claim(Job, team, job.pk, lease=timedelta(seconds=30), max_attempts=3)
    change(job, lease_until=timezone.now())
    assert leases.renew(claim)
    assert now_of(job).lease_until > timezone.now() + timedelta(seconds=25)
    change(job, fence=9)
    assert not leases.renew(claim)


def test_cancelling_a_waiting_job_is_at_once(team, alice) -> None:
    job = asked(team, secret={"text": "Zanzibar"})
    with team_transaction(team):
        files.put(job, ChunkRole.UPLOAD, 0, b"abc")
        cancelled = actions.cancel(team=team, by=person(alice), job=job)
        assert cancelled.status == JobStatus.CANCELLED
        assert cancelled.sealed is None
        assert not JobChunk.objects.of(team).exists()
        assert actions.cancel(team=team, by=person(alice), job=job).status == JobStatus.CANCELLED
    assert run(job, counting) == ""


def test_cancelling_a_running_job_stops_before_the_next_batch(team) -> None:
    job = asked(team)

    def cancelled_meanwhile(work: Work) -> dict[str, int]:
        with work.batch(1):
            work.cursor["n"] = 1
        with team_transaction(team):
            actions.cancel(team=team, by=SYSTEM, job=job)
        with work.batch(1):
            raise AssertionError("a batch after the cancellation")
        return {}

    assert run(job, cancelled_meanwhile) == JobStatus.CANCELLED
    change(job, status=JobStatus.DONE)
    with team_transaction(team), pytest.raises(Conflict):
        actions.cancel(team=team, by=SYSTEM, job=job)


def test_the_sweep_wakes_and_buries(team) -> None:
    old = timezone.now() - timedelta(hours=1)
    lost, dead, fresh, ended = asked(team), asked(team, secret={"text": "Zanzibar"}), asked(team), asked(team)
    change(lost, created_at=old, run_after=old)
    change(dead, status=JobStatus.RUNNING, attempts=3, lease_until=old)
    with team_transaction(team):
        files.put(fresh, ChunkRole.OUTPUT, 0, b"x")
        files.put(ended, ChunkRole.OUTPUT, 0, b"x")
        JobChunk.objects.update(expires_at=old)
        Job.objects.filter(pk=ended.pk).update(status=JobStatus.DONE)
    before = OrmQ.objects.count()
    with team_transaction(team):
        assert sweeping.sweep(team) == (1, 1)
        assert JobChunk.objects.get().job_id == fresh.pk, "what is worked on keeps its file"
    assert OrmQ.objects.count() == before + 1
    assert now_of(dead).status == JobStatus.FAILED
    assert "died" in now_of(dead).error
    assert now_of(dead).sealed is None


def test_the_queue_runs_it_by_its_ids(team) -> None:
    job = asked(team)
    old = timezone.now() - timedelta(hours=1)
    change(job, created_at=old, run_after=old)
    assert tasks.sweep_jobs() == "1 woken, 0 buried"
    assert tasks.run_job(str(team.pk), str(job.pk)) == JobStatus.DONE
    assert tasks.run_job(str(job.pk), str(job.pk)) == "gone"


# --- Sealed -----------------------------------------------------------------------------------------


def test_what_is_sealed_is_not_in_the_database(team) -> None:
    job = asked(team, secret={"text": "Zanzibar"})
    with team_transaction(team):
        files.put(job, ChunkRole.UPLOAD, 0, b"Zanzibar " * 100)
    with connection.cursor() as cursor:
        cursor.execute("SELECT encode(sealed, 'escape') || arguments::text FROM accounts_job")
        (row,) = cursor.fetchone()
        cursor.execute("SELECT encode(data, 'escape') FROM accounts_jobchunk")
        (chunk,) = cursor.fetchone()
    assert "Zanzibar" not in row + chunk
    seen = []
    run(job, lambda work: seen.append(work.secret) or {})
    assert seen == [{"text": "Zanzibar"}]
    assert now_of(job).sealed is None


def test_a_sealed_row_opens_in_its_team_and_place_only(team, other_team, settings) -> None:
    sealed = sealing.seal(b"text", team_id=team.pk, purpose="a")
    assert sealing.unseal(sealed, team_id=team.pk, purpose="a") == b"text"
    for elsewhere in ({"team_id": other_team.pk, "purpose": "a"}, {"team_id": team.pk, "purpose": "b"}):
        with pytest.raises(sealing.Unreadable):
            sealing.unseal(sealed, **elsewhere)
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another"
    assert sealing.unseal(sealed, team_id=team.pk, purpose="a") == b"text"


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.integers(1, 50))
def test_a_file_is_put_together_again(lines, size) -> None:
    data = b"\n".join(lines)
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    expected = lines[:-1] + [line for line in lines[-1:] if line]
    assert list(files.lines_of(parts)) == expected


# --- Told -------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 10**6))
def test_an_estimate_is_sane(done, total, seconds) -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    told = estimate(done=done, total=total, begun_at=begun, now=begun + timedelta(seconds=seconds))
    assert told.share is None or 0 <= told.share <= 1
    assert told.seconds_left is None or told.seconds_left >= 0
    if total and done >= total:
        assert told.share == 1
        assert not told.seconds_left


def test_half_done_takes_as_long_again() -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    told = estimate(done=50, total=100, begun_at=begun, now=begun + timedelta(seconds=30))
    assert (told.share, told.seconds_left) == (0.5, 30)


def test_results_are_told_in_rows() -> None:
    told = results.rows({"erased": {"memories": 1200, "stored_answers": 0}, "examples": ["a", {"b": 1}], "ok": True})
    assert told == [
        ("Erased: memories", "1,200"), ("Erased: stored answers", "0"), ("Examples", "a"), ("Examples", "b 1"),
        ("Ok", "yes"),
    ]  # fmt: skip


# --- Seen -------------------------------------------------------------------------------------------


def test_the_api_shows_waits_and_cancels(team, team_api) -> None:
    job = asked(team)
    listed = team_api.get("/api/v1/jobs?kind=export&status=queued").json()["results"]
    assert [row["id"] for row in listed] == [str(job.pk)]
    begun = time.monotonic()
    shown = team_api.get(f"/api/v1/jobs/{job.pk}?wait=1").json()
    assert 1 <= time.monotonic() - begun < 5
    assert (shown["status"], shown["progress"]["share"]) == ("queued", None)
    cancelled = team_api.post(f"/api/v1/jobs/{job.pk}/cancel", {})
    assert cancelled.json()["status"] == "cancelled"
    begun = time.monotonic()
    team_api.get(f"/api/v1/jobs/{job.pk}?wait=20")
    assert time.monotonic() - begun < 5
    assert team_api.get("/api/v1/jobs?status=lost").status_code == 422


def test_an_agent_sees_what_it_asked_for(team, api, other_api) -> None:
    asked(team)
    with team_transaction(team):
        token = team.pk and api.agent.tokens.first()
        mine = actions.request(team=team, by=SYSTEM, kind=JobKind.EXPORT, token=token)
    assert [row["id"] for row in api.get("/api/v1/jobs").json()["results"]] == [str(mine.pk)]
    assert other_api.get(f"/api/v1/jobs/{mine.pk}").status_code == 404


def test_the_page_tells_and_looks_again_without_a_script(team, alice, carol, browse) -> None:
    job = asked(team, person=alice)
    change(
        job,
        status=JobStatus.RUNNING,
        done=5,
        total=10,
        doing="writing rows",
        begun_at=timezone.now() - timedelta(minutes=2),
    )
    page = browse(carol).get(f"/jobs/{job.pk}/").content.decode()
    assert '<meta http-equiv="refresh" content="2">' in page
    assert "Writing rows: 5 of 10" in page
    assert "2 min left" in page
    assert "Cancel" not in page, "a viewer may not"
    assert "Cancel" in browse(alice).get(f"/jobs/{job.pk}/").content.decode()
    answer = browse(alice).post(f"/jobs/{job.pk}/cancel/", follow=True)
    assert "It stops before its next step." in answer.content.decode()
    change(job, status=JobStatus.DONE, result={"rows": 3}, cancel_requested_at=None)
    done = browse(alice).get(f"/jobs/{job.pk}/").content.decode()
    assert "refresh" not in done
    assert "<dt>Rows</dt><dd>3</dd>" in done
    listed = browse(carol).get("/jobs/").content.decode()
    assert f"/jobs/{job.pk}/" in listed
    assert "/erase/" not in listed


def test_the_list_asks_the_database_little(team, alice, browse, django_assert_max_num_queries) -> None:
    for _ in range(30):
        asked(team, person=alice)
    client = browse(alice)
    with django_assert_max_num_queries(14):
        client.get("/jobs/")


def test_nobody_elses(team, mallory, browse) -> None:
    job = asked(team)
    assert browse(mallory).get(f"/jobs/{job.pk}/").status_code == 404
    assert browse(mallory).post(f"/jobs/{job.pk}/cancel/").status_code == 404
    assert str(job.pk) not in browse(mallory).get("/jobs/").content.decode()
    other = factories.api_client(factories.team("third", "x@third.test"), None)
    assert other.get(f"/api/v1/jobs/{job.pk}").status_code == 404
