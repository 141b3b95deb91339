"""Commands on a database that nobody has migrated yet: a sentence that says what to do, no stack."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from psycopg import sql

import manage

ROOT = Path(manage.__file__).resolve().parent


@pytest.fixture(scope="module")
def empty(django_db_setup: None) -> Iterator[str]:
    """The URL of a database with nothing in it, on the server of the tests."""
    given = connection.settings_dict
    server = f"postgresql://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}"
    name = f"empty_{os.getpid()}"
    with psycopg.connect(f"{server}/{given['NAME']}", autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        try:
            yield f"{server}/{name}"
        finally:
            owner.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.parametrize(
    "command",
    ["citus_sql", "partition_search --partitions 4", "backup", "reembed", "sync_schedules", "vector_indexes"],
)
def test_a_command_says_that_the_tables_are_missing(command: str, empty: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *command.split(), "--data-dir", str(tmp_path / "data")],
        cwd=tmp_path, env={**os.environ, "DATABASE_URL": empty, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("run `manage.py migrate` first.")


def test_another_fault_in_a_statement_keeps_its_stack(tmp_path: Path, django_db_setup: None) -> None:
    given = connection.settings_dict
    url = f"postgresql://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}/{given['NAME']}"
    code = "from django.db import connection; connection.cursor().execute('SELECT no_such_thing')"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", code, "--data-dir", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" in done.stderr
    assert "no_such_thing" in done.stderr
