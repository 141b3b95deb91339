"""An index for each big team: built and dropped beside everything else, and chosen where it pays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import tasks
from memories.models import Scope
from memories.search import frequencies, vector_indexes, vectors
from tests import factories
from tests.memories.search_rows import MODEL, scope_of, store, store_vectors

RANDOM = np.random.default_rng(3)
N = 60


@pytest.fixture
def small_numbers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(vector_indexes, "BUILD_ABOVE", 40)
    monkeypatch.setattr(vector_indexes, "DROP_BELOW", 20)
    yield
    for name in vector_indexes._there():
        vector_indexes._drop(name)
    vector_indexes._ready.clear()
    frequencies._teams.clear()


@pytest.fixture
def filled(transactional_db, small_numbers) -> tuple[Team, Scope, np.ndarray]:
    team = factories.team("big", owner="big@acme.test")
    with team_transaction(team):
        scope = scope_of(team)
        rows = RANDOM.normal(size=(N, 16)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        store_vectors(scope, store(scope, [f"memory {i}" for i in range(N)]), rows)
    return team, scope, rows


def search(team: Team, scope: Scope, question: np.ndarray) -> list:
    with team_transaction(team):
        hits = vectors.nearest(
            team_id=team.pk, scope_ids=[scope.pk], embedding=question, model_id=MODEL, statuses=["active"], limit=5
        )
    return [hit.memory_id for hit in hits]


def test_a_big_team_gets_an_index_that_is_used_and_loses_it(
    filled: tuple[Team, Scope, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    team, scope, rows = filled
    exact = search(team, scope, rows[7])
    assert vector_indexes.is_due()
    call_command("vector_indexes")
    assert "1 built, 0 dropped" in capsys.readouterr().out
    name = vector_indexes.name_of(team.pk, MODEL)
    assert vector_indexes._there() == {name: True}
    assert not vector_indexes.is_due()
    assert tasks.sync_vector_indexes() == "nothing to do"
    with team_transaction(team):
        assert vectors._through_index(team.pk, [scope.pk], MODEL)
    before = scans(name)
    assert search(team, scope, rows[7]) == exact
    assert scans(name) > before
    with team_transaction(team), connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_memoryvector WHERE memory_id NOT IN (%s, %s)", exact[:2])
    call_command("vector_indexes")
    assert "0 built, 1 dropped" in capsys.readouterr().out
    assert not vector_indexes.is_ready(team.pk, MODEL)


def scans(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT idx_scan FROM pg_stat_all_indexes WHERE indexrelname = %s", [name])
        return cursor.fetchone()[0]


def test_a_scope_that_holds_little_of_the_team_is_searched_exactly(filled: tuple[Team, Scope, np.ndarray]) -> None:
    team, _, rows = filled
    vector_indexes.sync()
    with team_transaction(team):
        corner = scope_of(team, "corner")
        store_vectors(corner, store(corner, ["one", "two"]), rows[:2])
        assert not vectors._through_index(team.pk, [corner.pk], MODEL)
        # While the big scope is searched through the index, nothing of the corner comes along.
        assert len(search(team, corner, rows[0])) == 2


def test_an_index_whose_building_was_killed_is_built_anew(filled: tuple[Team, Scope, np.ndarray]) -> None:
    team, _, _ = filled
    vector_indexes.sync()
    name = vector_indexes.name_of(team.pk, MODEL)
    if not is_superuser():
        pytest.skip("only a superuser can make an index invalid by hand")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name])
    vector_indexes._ready.clear()
    assert not vector_indexes.is_ready(team.pk, MODEL)
    synced = vector_indexes.sync()
    assert (synced.built, synced.dropped) == ((name,), (name,))
    assert vector_indexes._there() == {name: True}


def is_superuser() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        return bool(cursor.fetchone()[0])
