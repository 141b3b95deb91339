"""Migrations that a live system survives: their SQL is read by squawk, a linter of PostgreSQL's locks.

While `migrate` runs, the old version serves. So a migration must neither hold a lock for as long as a table is large
nor ask of the old version what it does not know (a new column without a default, a renamed one).
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader

# Made before there was a system to keep alive.
BASELINE = {"accounts": 13, "memories": 8, "reflection": 9}
# Later ones that may do what the linter refuses: (app, name) → rule → why it is safe here.
ALLOWED: dict[tuple[str, str], dict[str, str]] = {}
# About taste, or about what `migrate` does itself.
NOT_ABOUT_LOCKS = (
    "prefer-bigint-over-int", "prefer-bigint-over-smallint", "prefer-identity", "prefer-text-field", "ban-char-field",
    "prefer-robust-stmts", "require-timeout-settings",
)  # fmt: skip
ADVICE = {
    "adding-required-field": "add it nullable, or with db_default",
    "ban-drop-default": "give the field db_default: the old version does not fill it",
    "require-concurrent-index-creation": "AddIndexConcurrently, in a migration with atomic = False",
    "require-concurrent-index-deletion": "RemoveIndexConcurrently, in a migration with atomic = False",
    "adding-foreign-key-constraint": "add it NOT VALID, and validate it in the next migration",
    "constraint-missing-not-valid": "add it NOT VALID, and validate it in the next migration",
    "changing-column-type": "a new column beside the old one, filled by a job",
    "ban-drop-column": "drop it in the release after the one that no longer reads it",
    "renaming-column": "a new column beside the old one",
}

SQUAWK = shutil.which("squawk", path=str(Path(sys.executable).parent)) or shutil.which("squawk")
needs_squawk = pytest.mark.skipif(SQUAWK is None, reason="squawk has no build for this machine")


def findings(sql: str) -> dict[str, str]:
    """The rules that a script breaks, each with the line that says so."""
    assert SQUAWK is not None
    told = subprocess.run(
        [SQUAWK, "--pg-version=16", "--reporter=gcc", f"--exclude={','.join(NOT_ABOUT_LOCKS)}"],
        input=sql, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert told.returncode in (0, 1), told.stderr
    found = re.findall(r"^\S+: (?:warning|error): (\S+) (.*)$", told.stdout, re.MULTILINE)
    assert bool(found) == bool(told.returncode), told.stdout + told.stderr
    return dict(found)


def new_migrations() -> list[tuple[str, str]]:
    """Those of our apps that came after the baseline."""
    on_disk = MigrationLoader(None).disk_migrations
    return sorted((app, name) for app, name in on_disk if app in BASELINE and int(name.split("_")[0]) > BASELINE[app])


@needs_squawk
@pytest.mark.django_db
def test_new_migrations_can_run_while_the_old_version_serves() -> None:
    wrong = []
    for key in new_migrations():
        sql = io.StringIO()
        call_command("sqlmigrate", *key, stdout=sql)
        allowed = ALLOWED.get(key, {})
        wrong += [
            f"{'.'.join(key)}: {rule}: {ADVICE.get(rule, text)}"
            for rule, text in findings(sql.getvalue()).items()
            if rule not in allowed
        ]
    assert not wrong, "\n".join(wrong)


@needs_squawk
@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("CREATE INDEX i ON memories_memory (team_id);", "require-concurrent-index-creation"),
        ("ALTER TABLE memories_memory ADD COLUMN c integer NOT NULL;", "adding-required-field"),
        ("ALTER TABLE memories_memory ALTER COLUMN tier TYPE text;", "changing-column-type"),
        ("ALTER TABLE memories_memory DROP COLUMN tier;", "ban-drop-column"),
        (
            "ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (team_id, b_id) REFERENCES b (team_id, id) DEFERRABLE;",
            "adding-foreign-key-constraint",
        ),
    ],
    ids=["index", "required column", "type", "drop column", "foreign key"],
)
def test_the_linter_sees_what_stops_a_live_system(sql: str, rule: str) -> None:
    assert rule in findings(f"BEGIN;\n{sql}\nCOMMIT;")


@needs_squawk
def test_the_linter_lets_pass_what_does_not() -> None:
    assert findings("CREATE INDEX CONCURRENTLY i ON memories_memory (team_id);") == {}
    assert findings("BEGIN;\nCREATE TABLE t (a integer);\nCREATE INDEX i ON t (a);\nCOMMIT;") == {}


def test_the_baseline_and_the_exceptions_name_what_there_is() -> None:
    on_disk = MigrationLoader(None).disk_migrations
    for app, number in BASELINE.items():
        assert any(a == app and name.startswith(f"{number:04d}_") for a, name in on_disk)
    assert set(ALLOWED) <= set(new_migrations())
