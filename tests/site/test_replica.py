"""Recall through a real streaming replica: it answers when it has what the team wrote, and never when it has not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection, connections, transaction

from hindsight_site import databases, embedded_db
from hindsight_site.accounts import replica
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import enter_team, team_transaction
from memories import actions, recall, scopes
from memories.models import Memory, Recall
from tests import factories
from tests.servers import Standby, databases_are, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX only"),
]
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Pair:
    """A primary, which is Django's default connection meanwhile, and its replica."""

    standby: Standby
    agent: Agent

    @property
    def team(self) -> Team:
        return self.agent.team


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standby]:
    root = tmp_path_factory.mktemp("replica")
    embedded_db.start(root / "primary")
    standby = Standby(root / "primary", root / "standby")
    try:
        environment = {**os.environ, "DATABASE_URL": embedded_db.uri(root / "primary", "owner")}
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--noinput", "--verbosity", "0"],
            cwd=ROOT, env=environment, check=True,
        )  # fmt: skip
        standby.start()
        yield standby
    finally:
        standby.kill()
        embedded_db.stop(root / "primary", force=True)


@pytest.fixture
def pair(servers: Standby, django_db_blocker, monkeypatch) -> Iterator[Pair]:
    """A team of its own; its writes have reached the replica, which replays."""
    monkeypatch.setattr(replica, "_paused_until", 0.0)
    if servers.process is None or servers.process.poll() is not None:
        servers.start()
    servers.run("SELECT pg_wal_replay_resume()")
    with django_db_blocker.unblock(), databases_are(**places(servers)):
        team = factories.team(f"team-{os.getpid()}-{time.monotonic_ns()}", owner=f"{time.monotonic_ns()}@acme.test")
        agent = factories.agent(team, "coder")
        factories.memory(agent, "Deployments to Oslo need the blue certificate.")
        found = Pair(servers, agent)
        caught_up(found)
        yield found


def places(servers: Standby) -> dict[str, dict]:
    return {
        "default": databases.parameters(embedded_db.uri(servers.primary, "app"), ROOT),
        "replica": databases.replica_parameters(servers.uri("app"), ROOT, pooled=False),
    }


def on_a_replica() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        return bool(cursor.fetchone()[0])


def asked_there(pair: Pair) -> bool:
    """Whether the replica answers this team."""
    with team_transaction(pair.team):
        return replica.ask(pair.team, on_a_replica) or False


def caught_up(pair: Pair) -> None:
    wait_for("the replica has it", lambda: asked_there(pair))


def ask(pair: Pair, query: str) -> tuple[recall.Answer, int]:
    """Recall as a request does; also how many statements went to the replica."""
    seen = 0

    def count(execute, sql, params, many, context):  # noqa: ANN001, ANN202 - Django's protocol
        nonlocal seen
        seen += 1
        return execute(sql, params, many, context)

    with transaction.atomic(), connections["replica"].execute_wrapper(count):
        enter_team(pair.team)
        answer = recall.recall(
            team=pair.team, agent=pair.agent, scopes=[scopes.private_of(pair.team, pair.agent)],
            question=recall.Question(query=query, deadline_ms=0),
        )  # fmt: skip
    return answer, seen


def test_a_recall_looks_at_the_replica_and_leaves_its_receipt_on_the_primary(pair: Pair) -> None:
    answer, statements = ask(pair, "What does a deployment to Oslo need?")
    assert [hit.snippet for hit in answer.hits] == ["Deployments to Oslo need the blue certificate."]
    assert statements > 3
    with team_transaction(pair.team):
        assert not on_a_replica()
        receipt = Recall.objects.of(pair.team).get(pk=answer.recall_id)
        assert receipt.hits.count() == 1
        assert Memory.objects.of(pair.team).get(pk=answer.hits[0].memory).access_count == 1


def test_a_receipt_does_not_keep_the_next_recall_from_the_replica(pair: Pair) -> None:
    pair.standby.run("SELECT pg_wal_replay_pause()")
    ask(pair, "Oslo?")
    assert asked_there(pair)


def test_what_was_just_written_is_read_from_the_primary_while_replay_stands_still(pair: Pair) -> None:
    pair.standby.run("SELECT pg_wal_replay_pause()")
    wrote = factories.memory(pair.agent, "Deployments to Bergen need the red certificate.")
    answer, statements = ask(pair, "What does a deployment to Bergen need?")
    assert answer.hits[0].memory == wrote.pk
    assert statements <= 4  # the team and the place in the log were asked for, nothing else
    assert not asked_there(pair)
    pair.standby.run("SELECT pg_wal_replay_resume()")
    caught_up(pair)
    answer, statements = ask(pair, "What does a deployment to Bergen need?")
    assert answer.hits[0].memory == wrote.pk
    assert statements > 4


def test_the_writes_of_another_team_do_not_keep_a_team_from_the_replica(pair: Pair) -> None:
    pair.standby.run("SELECT pg_wal_replay_pause()")
    other = factories.team(f"rival-{time.monotonic_ns()}", owner=f"{time.monotonic_ns()}@rival.test")
    factories.memory(factories.agent(other, "spy"), "Another team's business.")
    assert asked_there(pair)


def test_what_the_open_transaction_wrote_is_read_in_it(pair: Pair) -> None:
    with team_transaction(pair.team):
        scope = scopes.private_of(pair.team, pair.agent)
        draft = actions.Draft(kind="fact", content="Deployments to Tromsø need the green certificate.")
        actions.remember(team=pair.team, by=SYSTEM, scope=scope, draft=draft, agent=pair.agent)
        found = recall.look(
            team=pair.team, agent=pair.agent, scopes=[scope], question=recall.Question(query="Tromsø certificate")
        )
        assert "Tromsø" in found.hits[0].snippet


def test_what_was_rolled_back_leaves_no_mark(pair: Pair) -> None:
    pair.standby.run("SELECT pg_wal_replay_pause()")
    draft = actions.Draft(kind="fact", content="Never.")
    with team_transaction(pair.team):
        scope = scopes.private_of(pair.team, pair.agent)
        actions.remember(team=pair.team, by=SYSTEM, scope=scope, agent=pair.agent, draft=draft)
        transaction.set_rollback(True)
    assert asked_there(pair)


def test_the_fence_between_teams_stands_on_the_replica_too(pair: Pair) -> None:
    other = factories.team(f"rival-{time.monotonic_ns()}", owner=f"{time.monotonic_ns()}@rival.test")
    secret = factories.memory(factories.agent(other, "spy"), "Another team's business.")
    caught_up(Pair(pair.standby, Agent.objects.none().model(team=other)))

    def seen() -> list:
        assert on_a_replica()
        return [*Memory.objects.filter(pk=secret.pk), *Memory.objects.exclude(team=pair.team)]

    with team_transaction(pair.team):
        assert replica.ask(pair.team, seen) == []


def test_a_team_without_a_mark_is_not_taken_for_one_that_never_wrote(pair: Pair) -> None:
    """After a crash the table is empty: it is not logged."""
    pair.standby.run("SELECT pg_wal_replay_pause()")
    factories.memory(pair.agent, "Deployments to Bodø need no certificate.")
    replica.forget(pair.team.pk)
    assert not asked_there(pair)


def test_a_replica_that_was_made_the_primary_is_no_replica(pair: Pair) -> None:
    """The address of the primary itself does no harm: nothing is read there as if from a replica."""
    url = embedded_db.uri(pair.standby.primary, "app")
    connections["replica"].close()
    connections["replica"].settings_dict.update(databases.replica_parameters(url, ROOT, pooled=False))
    assert not asked_there(pair)


def test_writing_on_the_replica_is_refused_and_done_nowhere(pair: Pair, caplog) -> None:
    def write() -> None:
        Memory.objects.of(pair.team).update(pinned=True)

    with team_transaction(pair.team):
        assert replica.ask(pair.team, write) is None
        assert not Memory.objects.of(pair.team).filter(pinned=True).exists()
    assert "the replica did not answer" in caplog.text
    assert asked_there(pair), "it can be reached, so it is not left alone"


def test_a_replica_that_is_killed_is_missed_by_nobody(pair: Pair, monkeypatch) -> None:
    assert ask(pair, "What does a deployment to Oslo need?")[1] > 4
    pair.standby.kill()
    for _ in range(3):  # the open line breaks, then no new one can be had, then none is tried
        started = time.monotonic()
        answer, _ = ask(pair, "What does a deployment to Oslo need?")
        assert answer.hits
        assert time.monotonic() - started < 5
    assert replica._paused_until > time.monotonic()
    pair.standby.start()
    assert not asked_there(pair), "left alone for some seconds"
    monkeypatch.setattr(replica, "_paused_until", 0.0)
    caught_up(pair)


def test_a_team_that_is_deleted_leaves_no_mark(pair: Pair) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM accounts_writemark WHERE team_id = %s", [pair.team.pk])
        assert cursor.fetchone()[0] == 1
        replica.forget(pair.team.pk)
        stranger = Team().pk
        replica._Mark(stranger)()  # noted after the team has gone
        cursor.execute("SELECT count(*) FROM accounts_writemark WHERE team_id IN (%s, %s)", [pair.team.pk, stranger])
        assert cursor.fetchone()[0] == 0
