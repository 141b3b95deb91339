"""Two web and two worker processes on one database, straight and through PgBouncer in transaction mode."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule

from hindsight_site import databases
from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent, ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue
from memories.models import Memory, Recall, SweepRun
from reflection.actions import REFLECT
from reflection.models import Reflection, ReflectionResult
from tests import factories
from tests.servers import PGBOUNCER, Pooler, databases_are, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
BURST = 25
TRACES = 6


@dataclass
class Site:
    """Where both web servers listen, and how the tests reach the database: never through the pooler."""

    ports: tuple[int, int]
    url: str
    is_pooled: bool

    def call(self, web: int, method: str, path: str, token: str, body: Any = None) -> tuple[int, Any]:
        """Ask one of the two web servers."""
        line = http.client.HTTPConnection("127.0.0.1", self.ports[web], timeout=60)
        line.request(
            method, f"/api/v1{path}", json.dumps(body) if body is not None else None,
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )  # fmt: skip
        answer = line.getresponse()
        data = answer.read()
        line.close()
        return answer.status, json.loads(data) if data else None


@pytest.fixture(scope="module")
def database(django_db_setup) -> Iterator[str]:
    """The address of a migrated database of this module's own."""
    given = connection.settings_dict
    server = f"postgresql://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}"
    name = f"{given['NAME']}_out"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        link.execute(f"CREATE DATABASE {name} TEMPLATE template1")
    url = f"{server}/{name}"
    try:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--noinput", "--verbosity", "0"],
            cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=True,
        )  # fmt: skip
        yield url
    finally:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as link:
            link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="module", params=["straight", "pooled"])
def site(request, database: str, tmp_path_factory) -> Iterator[Site]:
    """Two of each, as on two hosts: they share the database and the secret key, and nothing else."""
    if request.param == "pooled" and PGBOUNCER is None:
        pytest.skip("no pgbouncer on PATH: install the package to test behind it")
    root = tmp_path_factory.mktemp(request.param)
    pooler = Pooler(database, root / "pooler")
    processes: list[subprocess.Popen[bytes]] = []
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    try:
        environment = {
            **os.environ, "DATABASE_URL": database, "DATABASE_OWNER_URL": database, "SECRET_KEY": "of the test " * 5,
            "WORKERS": "1", "RATE_LIMIT_TOKEN_PER_MINUTE": "1", "RATE_LIMIT_TOKEN_BURST": str(BURST),
        }  # fmt: skip
        if request.param == "pooled":
            environment |= {
                "DATABASE_URL": pooler.start(), "DATABASE_POOLER": "transaction", "DATABASE_DIRECT_URL": database,
            }  # fmt: skip
        for number, listener in enumerate(listeners):
            web = ["web", "--bind", f"fd://{listener.fileno()}", "--workers", "1", "--threads", "6"]
            for words in (web, ["worker"]):
                with (root / f"{words[0]}-{number}.log").open("wb") as log:
                    processes.append(
                        subprocess.Popen(
                            [sys.executable, "manage.py", *words], cwd=ROOT, pass_fds=[listener.fileno()],
                            env={**environment, "HINDSIGHT_DATA_DIR": str(root / f"host-{number}")},
                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        )
                    )  # fmt: skip
        one, other = (listener.getsockname()[1] for listener in listeners)
        yield Site((one, other), database, request.param == "pooled")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=60)
        pooler.stop()
        for listener in listeners:
            listener.close()


@pytest.fixture
def there(site: Site, django_db_blocker) -> Iterator[None]:
    """This process works on the database of the site."""
    with django_db_blocker.unblock(), databases_are(default=databases.parameters(site.url, ROOT)):
        yield


@pytest.fixture
def cast(there: None) -> Agent:
    """An agent of a new team."""
    name = f"acme-{uuid.uuid4().hex[:8]}"
    return factories.agent(factories.team(name, owner=f"{name}@acme.test"), "coder")


def at_once(work, number: int) -> list:  # noqa: ANN001 - a function of the number of the call
    with ThreadPoolExecutor(12) as pool:
        return list(pool.map(work, range(number)))


def test_each_trace_is_reflected_once_whatever_is_delivered_twice(site: Site, cast: Agent) -> None:
    team, token = cast.team, factories.token(cast.team, cast)
    steps = [
        {"role": step.role, "kind": step.kind, "content": step.content, "tool": step.tool, "is_error": step.is_error,
         **({"arguments": step.arguments} if step.arguments else {})}
        for step in factories.failing_then_fixed()
    ]  # fmt: skip

    def record(number: int) -> tuple[int, Any]:
        trace = {"task": f"Export the invoices, attempt {number}", "steps": steps, "outcome": "succeeded"}
        return site.call(number % 2, "POST", "/traces", token, trace)

    recorded = at_once(record, TRACES)
    assert Counter(status for status, _ in recorded) == {201: TRACES}, recorded[0]
    ids = [body["reflection"]["id"] for _, body in recorded]
    for ident in ids * 3:  # wake-ups that come again and again, to both workers
        enqueue(REFLECT, team.pk, ident)

    def ended() -> bool:
        with team_transaction(team):
            return not Reflection.objects.of(team).filter(status__in=["queued", "running"]).exists()

    wait_for("all reflections have ended", ended, 90)
    with team_transaction(team):
        rows = Reflection.objects.of(team)
        assert Counter(rows.values_list("status", flat=True)).keys() <= {"stored", "nothing_new", "rejected"}
        assert list(rows.values_list("attempts", "fence").distinct()) == [(1, 1)]
        assert rows.count() == TRACES
        results = ReflectionResult.objects.of(team).values_list("reflection_id", "memory_id")
        assert len(results) == len(set(results)) > 0
        # Each time the same lesson: one memory that all traces support, and not as many memories.
        lessons = Memory.objects.of(team).filter(kind="experience", status__in=["active", "candidate"])
        assert sorted(lessons.values_list("support_count", flat=True), reverse=True)[0] == TRACES


def test_a_limit_counts_over_both(site: Site, cast: Agent) -> None:
    token = factories.token(cast.team, cast)
    started = time.monotonic()
    answers = at_once(lambda n: site.call(n % 2, "GET", "/memories", token)[0], 2 * BURST)
    refilled = int((time.monotonic() - started) / 60) + 1
    counted = Counter(answers)
    assert set(counted) == {200, 429}
    assert BURST <= counted[200] <= BURST + refilled


def test_a_schedule_fires_once(site: Site, cast: Agent) -> None:
    if site.is_pooled:
        pytest.skip("the schedule asks the same statements behind a pooler; each look takes half a minute")
    factories.memory(cast)
    for number in range(4):
        Schedule.objects.create(
            name=f"once {number}", func="memories.tasks.sweep", schedule_type=Schedule.ONCE,
            next_run=timezone.now() - timedelta(seconds=1), repeats=-1,
        )  # fmt: skip

    def swept() -> bool:
        with team_transaction(cast.team):
            return SweepRun.objects.of(cast.team).exclude(finished_at=None).count() >= 4

    # Both workers look at the schedule every half minute, at about the same time: they were started together.
    wait_for("the sweeps have run", swept, 120)
    time.sleep(3)  # for a fifth, if there were one
    with team_transaction(cast.team):
        assert SweepRun.objects.of(cast.team).count() == 4


def test_a_revoked_token_dies_on_both_within_ten_seconds(site: Site, cast: Agent) -> None:
    secret = factories.token(cast.team, cast)
    status, given = site.call(0, "POST", "/auth/token", secret)
    assert status == 200, given
    signed = given["access_token"]
    for web in (0, 1):
        assert site.call(web, "GET", "/memories", signed)[0] == 200
        assert site.call(web, "GET", "/memories", secret)[0] == 200
    with team_transaction(cast.team):
        token = ApiToken.objects.of(cast.team).get(prefix=secret.split("_")[1])
        accounts.revoke_token(team=cast.team, by=SYSTEM, token=token)
    started = time.monotonic()
    refused: set[tuple[int, str]] = set()
    while len(refused) < 4:
        assert time.monotonic() - started < 10
        for web in (0, 1):
            refused |= {
                (web, name) for name, shown in (("signed", signed), ("secret", secret))
                if site.call(web, "GET", "/memories", shown)[0] == 401
            }  # fmt: skip


def test_what_one_team_writes_on_one_the_other_one_recalls_and_no_other_team(site: Site, cast: Agent) -> None:
    """Teams that ask at once share the pooler's few sessions: nothing of one stays behind for the next."""
    name = f"rival-{uuid.uuid4().hex[:8]}"
    spy = factories.agent(factories.team(name, owner=f"{name}@rival.test"), "spy")
    owners = {}
    for of in (cast, spy):
        text = f"The certificate of {of.team.slug} for Oslo is blue."
        status, body = site.call(
            0, "POST", "/memories", factories.token(of.team, of), {"kind": "fact", "content": text}
        )
        assert status == 201, body
        owners[of] = text
    tokens = {of: [factories.token(of.team, of) for _ in range(2)] for of in owners}

    def ask(number: int) -> tuple[Agent, int, list[str]]:
        of = (cast, spy)[number % 2]
        status, body = site.call(
            number // 2 % 2, "POST", "/recall", tokens[of][number // 2 % 2],
            {"query": "Which certificate does Oslo need?", "min_relevance": 0},
        )  # fmt: skip
        return of, status, [hit["snippet"] for hit in body["hits"]]

    answers = at_once(ask, 48)
    assert {status for _, status, _ in answers} == {200}
    assert all(found == [owners[of]] for of, _, found in answers)
    for of in owners:
        with team_transaction(of.team):
            assert Recall.objects.of(of.team).count() == 24
            assert set(Recall.objects.values_list("team_id", flat=True)) == {of.team.pk}
