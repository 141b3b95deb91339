"""/metrics: who may read it, what its lines say, and that no line tells one team from another."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import quotas
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import JobKind, JobStatus, Spent
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.models import Job
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.metrics import folder, totals
from hindsight_site.metrics.text import Metric, lines
from memories.models import Recall
from tests import factories

ROOT = Path(__file__).resolve().parents[2]
# A label may hold a brace: some routes are patterns.
LINE = re.compile(r'(?P<name>[a-z_0-9]+)(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (?P<value>\S+)')
TOKEN = "a-token-that-only-the-watcher-has"


@pytest.fixture(autouse=True)
def _nothing_visited() -> None:
    totals._visits.clear()


def values(text: str) -> dict[str, float]:
    """Every line by its name and labels, as written."""
    found = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(LINE.match(line) for line in found)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in found}


# --- Who may ---------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("site", "address", "headers", "token", "expected"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", {}, "", 200),
        ("http://localhost:8000", "::1", {}, "", 200),
        ("http://127.0.0.1:8000", "10.0.0.7", {}, "", 404),
        ("http://127.0.0.1:8000", "127.0.0.1", {"X-Forwarded-For": "203.0.113.9"}, "", 404),
        ("http://127.0.0.1:8000", "", {}, "", 404),
        ("https://memory.example", "127.0.0.1", {}, "", 404),  # a proxy on this machine makes everybody local
        ("https://memory.example", "127.0.0.1", {}, TOKEN, 401),
        ("https://memory.example", "127.0.0.1", {"Authorization": f"Bearer {TOKEN}x"}, TOKEN, 401),
        ("https://memory.example", "127.0.0.1", {"Authorization": "Bearer "}, TOKEN, 401),
        ("https://memory.example", "127.0.0.1", {"Authorization": "Bearer ü"}, TOKEN, 401),
        ("https://memory.example", "127.0.0.1", {"Authorization": f"Basic {TOKEN}"}, TOKEN, 401),
        ("https://memory.example", "203.0.113.9", {"Authorization": "Bearer "}, "", 404),
        ("https://memory.example", "203.0.113.9", {"Authorization": f"bearer {TOKEN}"}, TOKEN, 200),
    ],
)
def test_who_may_read(settings, site: str, address: str, headers: dict[str, str], token: str, expected: int) -> None:
    settings.SITE_URL, settings.METRICS_TOKEN = site, token
    response = Client().get("/metrics", REMOTE_ADDR=address, headers=headers)
    assert response.status_code == expected
    assert ("hindsight_" in response.content.decode()) == (expected == 200)


@pytest.mark.django_db
def test_a_token_of_a_team_opens_nothing(settings, api) -> None:
    settings.SITE_URL, settings.METRICS_TOKEN = "https://memory.example", TOKEN
    assert api.get("/metrics").status_code == 401


def test_nothing_is_changed_by_asking(client: Client) -> None:
    assert client.post("/metrics").status_code == 405


# --- What it says ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_totals_are_of_all_teams_and_name_none(client: Client, agent, other_agent) -> None:
    recent, old = timezone.now(), timezone.now() - timedelta(minutes=6)
    for of, status, degraded, at in (
        (agent, "matched", False, recent), (agent, "no_match", True, recent), (other_agent, "matched", False, recent),
        (other_agent, "matched", False, old),
    ):  # fmt: skip
        with team_transaction(of.team):
            Recall.objects.create(team=of.team, status=status, degraded=degraded, took_ms=5, created_at=at)
    factories.trace(agent)
    factories.trace(other_agent)
    for team, tokens in ((agent.team, 100), (other_agent.team, 11)):
        with team_transaction(team):
            quotas.spend(team, Spent.MODEL_TOKENS, tokens)
    text = client.get("/metrics").content.decode()
    found = values(text)
    assert found["hindsight_database_up"] == 1
    assert found["hindsight_teams"] == 2
    assert found['hindsight_recalls_5m{status="matched",degraded="false"}'] == 2
    assert found['hindsight_recalls_5m{status="no_match",degraded="true"}'] == 1
    assert found["hindsight_recall_milliseconds_5m"] == 15
    assert found['hindsight_reflections{status="queued"}'] == 2
    assert found['hindsight_reflections{status="failed"}'] == 0
    assert found["hindsight_model_tokens_month"] == 111
    for secret in ("acme", "rival", "coder", "spy", str(agent.team_id), str(agent.pk)):
        assert secret not in text


@pytest.mark.django_db
def test_jobs_their_age_and_the_last_integrity_check(client: Client, team, other_team) -> None:
    for of, findings in ((team, (7, 2)), (other_team, (1,))):
        for nights_ago, count in reversed(list(enumerate(reversed(findings)))):
            with team_transaction(of):
                job = jobs.request(team=of, by=SYSTEM, kind=JobKind.INVARIANTS)
                at = timezone.now() - timedelta(days=nights_ago)
                Job.objects.of(of).filter(pk=job.pk).update(
                    status=JobStatus.DONE, result={"findings": count}, created_at=at
                )
    with team_transaction(team):
        late = jobs.request(team=team, by=SYSTEM, kind=JobKind.INVARIANTS)
        Job.objects.of(team).filter(pk=late.pk).update(run_after=timezone.now() - timedelta(minutes=10))
    found = values(client.get("/metrics").content.decode())
    assert found["hindsight_integrity_findings"] == 3  # the newest of each team
    assert found['hindsight_jobs{status="queued"}'] == 1
    assert found['hindsight_oldest_due_seconds{work="job"}'] == pytest.approx(600, abs=20)
    assert found['hindsight_oldest_due_seconds{work="reflection"}'] == 0


@pytest.mark.django_db
def test_the_queue_and_the_database(client: Client) -> None:
    for seconds_ago in (120, 3, -300):
        OrmQ.objects.create(key="hindsight", payload="", lock=timezone.now() - timedelta(seconds=seconds_ago))
    found = values(client.get("/metrics").content.decode())
    assert found['hindsight_queue_waiting{queue="hindsight"}'] == 2
    assert found['hindsight_queue_taken{queue="hindsight"}'] == 1
    assert found['hindsight_queue_oldest_seconds{queue="hindsight"}'] == pytest.approx(120, abs=10)
    assert found['hindsight_database_connections{state="active"}'] >= 1
    assert found["hindsight_database_connections_max"] > 1
    assert found["hindsight_database_size_bytes"] > 1e6
    assert 0 < found["hindsight_data_disk_free_bytes"] <= found["hindsight_data_disk_size_bytes"]


@pytest.mark.django_db
def test_a_data_folder_that_nothing_needed_yet_is_no_error(client: Client, settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "never" / "made"
    assert values(client.get("/metrics").content.decode())["hindsight_data_disk_free_bytes"] > 0


@pytest.mark.django_db
def test_a_second_scrape_asks_no_team_again(client: Client, team, django_assert_max_num_queries) -> None:
    client.get("/metrics")
    with django_assert_max_num_queries(10):  # whatever the number of teams
        client.get("/metrics")


@pytest.mark.django_db
def test_when_time_is_short_those_seen_longest_ago_come_first(team, other_team, monkeypatch) -> None:
    monkeypatch.setattr(totals, "BUDGET_SECONDS", -1.0)
    totals.read()
    assert totals._visits == {}
    monkeypatch.setattr(totals, "BUDGET_SECONDS", 1.0)
    totals.read()
    first = dict(totals._visits)
    totals._visits[team.pk] = totals.Visit(first[team.pk].at - totals.KEPT_SECONDS, {("tokens", ""): 5.0})
    totals.read()
    assert totals._visits[team.pk].at > first[team.pk].at
    assert totals._visits[other_team.pk] is first[other_team.pk]


def test_a_database_that_is_away_is_told_and_the_rest_still_counts(client: Client, transactional_db) -> None:
    connection.close()
    saved = dict(connection.settings_dict)
    connection.settings_dict.update(HOST="127.0.0.1", PORT="1")
    try:
        response = client.get("/metrics")
    finally:
        connection.close()
        connection.settings_dict.update(saved)
    assert response.status_code == 200
    found = values(response.content.decode())
    assert found["hindsight_database_up"] == 0
    assert "hindsight_teams" not in found


@pytest.mark.django_db
def test_requests_are_counted_by_route_and_not_by_address(client: Client) -> None:
    pytest.importorskip("prometheus_client")
    before = values(client.get("/metrics").content.decode())
    for path in ("/api/v1/memories/018f0000-0000-7000-8000-000000000000", "/no-such-thing-7261", "/healthz"):
        client.get(path)
    client.generic("BREW", "/healthz")
    text = client.get("/metrics").content.decode()
    after = values(text)

    def grown(line: str) -> float:
        return after[line] - before.get(line, 0)

    assert grown('hindsight_requests_total{method="GET",route="healthz",status="200"}') == 1
    assert grown('hindsight_requests_total{method="OTHER",route="healthz",status="405"}') == 1
    assert grown('hindsight_requests_total{method="GET",route="(none)",status="404"}') == 1
    assert grown('hindsight_request_seconds_count{method="GET",route="healthz"}') == 1
    assert "018f0000" not in text
    assert "no-such-thing-7261" not in text
    assert after["hindsight_web_memory_bytes"] > 1e7


@given(st.text())
def test_any_label_stays_on_its_line_and_can_be_read_back(label: str) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    text = lines([Metric("hindsight_x", "Says.", {(("of", label),): 1.5})])
    (family,) = parser.text_string_to_metric_families(text)
    (sample,) = family.samples
    assert (sample.labels, sample.value) == ({"of": label}, 1.5)


# --- Several processes -----------------------------------------------------------------------------


def ask(port: int, path: str) -> str:
    link = HTTPConnection("127.0.0.1", port, timeout=60)
    link.request("GET", path, headers={"Host": "localhost", "Connection": "close"})
    return link.getresponse().read().decode()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_web_processes_count_together_and_a_killed_one_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    psutil = pytest.importorskip("psutil")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    url = connection.settings_dict
    address = f"postgresql://{url['USER']}:{url['PASSWORD']}@{url['HOST']}:{url['PORT']}/{url['NAME']}"
    environment = {**os.environ, "DATABASE_URL": address, "HINDSIGHT_DATA_DIR": str(tmp_path)}
    with (tmp_path / "log").open("wb") as log:
        web = subprocess.Popen(
            [sys.executable, "manage.py", "web", "--bind", f"fd://{listener.fileno()}", "--grace", "1"],
            cwd=ROOT, env=environment, stdout=log, stderr=log, pass_fds=[listener.fileno()],
        )  # fmt: skip
    try:
        line = 'hindsight_requests_total{method="GET",route="healthz",status="200"}'
        for _ in range(31):
            ask(port, "/healthz")
        files = [Path(file.path) for file in psutil.Process(web.pid).open_files() if "hindsight-metrics-" in file.path]
        assert files
        seen = {values(ask(port, "/metrics"))[line] for _ in range(8)}
        assert seen == {31}, (tmp_path / "log").read_text()
        psutil.Process(web.pid).children()[0].send_signal(signal.SIGKILL)
        time.sleep(1.5)
        after = values(ask(port, "/metrics"))
        assert after[line] == 31
        assert after["hindsight_database_up"] == 1
    finally:
        web.terminate()
        web.wait(20)
        listener.close()
    assert all(not file.exists() for file in files), "the shared folder is left behind"


def test_the_folder_of_a_killed_server_is_removed_and_a_living_ones_is_not(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(folder, "_MEMORY", tmp_path)
    registered = []
    monkeypatch.setattr(folder.atexit, "register", lambda *call: registered.append(call))
    living = Path(folder.make_folder())
    killed = tmp_path / f"{folder.PREFIX}of-a-killed-one"
    killed.mkdir()
    (killed / "lock").touch()
    starting = tmp_path / f"{folder.PREFIX}without-a-lock"
    starting.mkdir()
    other = Path(folder.make_folder())
    assert {path.name for path in tmp_path.iterdir()} == {living.name, other.name, starting.name}
    remove, *arguments = registered[0]
    remove(arguments[0], os.getpid() + 1)  # a fork that ends
    assert living.exists()
    remove(*arguments)
    assert not living.exists()


# --- Documents -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_dashboard_and_the_handbook_speak_of_metrics_that_there_are(client: Client) -> None:
    pytest.importorskip("prometheus_client")
    client.get("/healthz")
    known = set(re.findall(r"\bhindsight_\w+", client.get("/metrics").content.decode()))
    for document in ("grafana-dashboard.json", "operations.md"):
        named = set(re.findall(r"\bhindsight_\w+", (ROOT / "docs" / document).read_text(encoding="utf-8")))
        named -= {"hindsight_site", "hindsight_app", "hindsight_owner"}
        assert len(named) > 10
        assert named <= known, document
    panels = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    assert all(target["expr"] for panel in panels for target in panel["targets"])
