"""`manage.py backup` and `restore`: the same rows in another database, or a plain no."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site import databases
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks import actions as webhooks
from hindsight_site.backup import manifest as manifests
from hindsight_site.backup import restoring, tables, writing
from hindsight_site.backup.manifest import BackupError, Content, Manifest
from memories.models import Memory
from tests import factories

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).resolve().parents[2]
AWKWARD = "tab\there, back\\slash, \\N, line\nfeed, 回忆, quote ' and \", \u2028 \U0001f9e0"


@pytest.fixture
def filled(transactional_db) -> None:
    """Two teams with a bit of everything."""
    for slug in ("acme", "rival"):
        team = factories.team(slug, owner=f"owner@{slug}.test")
        agent = factories.agent(team, "coder")
        for number in range(3):
            factories.memory(agent, f"{AWKWARD} {slug} {number}")
        factories.trace(agent)
        api = factories.api_client(team, agent)
        assert api.post("/api/v1/recall", {"query": "回忆 and a tab"}).status_code == 200
        with team_transaction(team):
            webhooks.create_webhook(team=team, by=SYSTEM, url="https://hooks.test/in", events=["reflection.finished"])


@pytest.fixture
def empty_database(transactional_db) -> Iterator[str]:
    """The address of a database with the extensions and nothing else."""
    given = connection.settings_dict
    name = f"{given['NAME']}_restored"
    server = f"postgresql://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        link.execute(f"CREATE DATABASE {name} TEMPLATE template1")
    yield f"{server}/{name}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def manage(address: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, text=True, capture_output=True, check=False,
        env={**os.environ, "DATABASE_URL": address, "DATABASE_OWNER_URL": address, **variables},
    )  # fmt: skip


def all_rows(link: psycopg.Connection) -> dict[str, list[tuple]]:
    """Every row of every table, as text, of all teams."""
    teams = [row[0] for row in link.execute("SELECT id FROM accounts_team")]
    found = {}
    for name, fenced, columns in link.execute(tables.TABLES).fetchall():
        shown = ", ".join(f'"{column}"::text' for column in columns)
        rows: list[tuple] = []
        for team in teams if fenced else [None]:
            link.execute("SELECT set_config('app.team', %s, true)", [str(team or "")])
            where = f" WHERE team_id = '{team}'" if fenced else ""
            rows += link.execute(f'SELECT {shown} FROM "{name}"{where}').fetchall()
        found[name] = sorted(rows, key=repr)
    return found


def schema_of(link: psycopg.Connection) -> list[tuple]:
    """Fences, constraints, triggers and indexes, by name."""
    return sorted(
        link.execute(
            """
            SELECT 'fence', relname::text, relrowsecurity::text || relforcerowsecurity::text FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
            UNION ALL SELECT 'constraint', conrelid::regclass::text, conname FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace
            UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal
            UNION ALL SELECT 'index', tablename, indexname FROM pg_indexes WHERE schemaname = 'public'
            """
        ).fetchall()
    )


def here() -> str:
    given = connection.settings_dict
    return f"postgresql://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}/{given['NAME']}"


@pytest.mark.slow
def test_there_and_back_every_row_of_every_table_is_the_same(filled, empty_database: str, tmp_path: Path) -> None:
    file, told = tmp_path / "b.zip", io.StringIO()
    call_command("backup", str(file), stdout=told)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "memories_memory: 6 rows" in told.getvalue()
    # What remains of a restore that was killed while it migrated: some tables, nobody in them.
    assert manage(empty_database, "migrate", "contenttypes", "--verbosity", "0").returncode == 0
    result = manage(empty_database, "restore", str(file))
    assert result.returncode == 0, result.stderr
    assert "2 teams," in result.stdout
    assert ": 0 findings" in result.stdout
    with psycopg.connect(here()) as source, psycopg.connect(empty_database) as target:
        expected, arrived = all_rows(source), all_rows(target)
        assert arrived.keys() == expected.keys()
        for table, rows in expected.items():
            assert arrived[table] == rows, table
        assert sum(len(rows) > 0 for rows in expected.values()) > 20
        assert schema_of(target) == schema_of(source)
        target.execute("SELECT set_config('app.team', '', true)")
        assert target.execute("SELECT count(*) FROM memories_memory").fetchone() == (0,)  # fenced again
        newest = target.execute("SELECT nextval(pg_get_serial_sequence('django_content_type', 'id'))").fetchone()
        assert newest == (max(int(row[0]) for row in arrived["django_content_type"]) + 1,)

    again = manage(empty_database, "restore", str(file))
    assert again.returncode == 1
    assert "holds people or teams" in again.stderr
    with psycopg.connect(empty_database):
        busy = manage(empty_database, "restore", str(file), "--force")
    assert busy.returncode == 1
    assert "stop the web server and the workers" in busy.stderr
    by_force = manage(empty_database, "restore", str(before_sessions(file)), "--force", "--verbosity", "0")
    assert by_force.returncode == 0, by_force.stderr
    with psycopg.connect(empty_database) as target:
        migrated = all_rows(target)
    assert {name for name in expected if migrated[name] != expected[name]} <= {"django_migrations"}
    assert len(migrated["django_migrations"]) == len(expected["django_migrations"])


def before_sessions(file: Path) -> Path:
    """The same backup as an older version would have made it, without one migration and its table."""

    def without(data: bytes) -> bytes:
        return b"".join(line for line in data.splitlines(keepends=True) if b"\tsessions\t" not in line)

    def older(data: bytes) -> bytes:
        manifest = json.loads(data)
        manifest["migrations"].remove(["sessions", "0001_initial"])
        kept = [content for content in manifest["contents"] if content["table"] != "django_session"]
        for content in kept:
            if content["table"] == "django_migrations":
                rows = without(zipfile.ZipFile(file).read("tables/django_migrations.copy"))
                content.update(rows=rows.count(b"\n"), sha256=hashlib.sha256(rows).hexdigest())
        return json.dumps({**manifest, "contents": kept}).encode()

    other = rewritten(file, manifests.NAME, older)
    return rewritten(other, "tables/django_migrations.copy", without)


@pytest.mark.slow
def test_another_programs_tables_and_another_key_are_refused(filled, empty_database: str, tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    call_command("backup", str(file), verbosity=0)
    other_key = manage(empty_database, "restore", str(file), SECRET_KEY="another " * 8)
    assert other_key.returncode == 1
    assert "another SECRET_KEY" in other_key.stderr
    with psycopg.connect(empty_database) as target:
        target.execute("CREATE TABLE till (id int)")
    result = manage(empty_database, "restore", str(file))
    assert result.returncode == 1
    assert "tables of another program" in result.stderr
    with psycopg.connect(empty_database) as target:
        assert target.execute("SELECT count(*) FROM pg_class WHERE relname = 'accounts_team'").fetchone() == (0,)


@pytest.mark.parametrize(
    ("key", "fallbacks", "options", "fits"),
    [
        ("another " * 8, [], [], False),
        ("another " * 8, ["own"], [], True),
        ("another " * 8, [], ["--without-key"], True),
        ("own", [], [], True),
    ],
)
def test_the_key_is_checked_and_never_in_the_file(filled, tmp_path, settings, key, fallbacks, options, fits) -> None:
    file, own = tmp_path / "b.zip", settings.SECRET_KEY
    call_command("backup", str(file), verbosity=0)
    with zipfile.ZipFile(file) as archive:
        assert all(own.encode() not in archive.read(name) for name in archive.namelist())
    settings.SECRET_KEY = own if key == "own" else key
    settings.SECRET_KEY_FALLBACKS = [own for _ in fallbacks]
    if fits:
        call_command("restore", str(file), "--check", *options)
    else:
        with pytest.raises(CommandError, match="SECRET_KEY"):
            call_command("restore", str(file), "--check", *options)


def test_the_rows_are_of_one_moment(filled, tmp_path: Path) -> None:
    """What is committed while the tables are copied one by one is in none of them."""
    team = Team.objects.get(slug="acme")

    def meanwhile(line: str) -> None:
        if line.startswith("accounts_agent:"):  # long before memories and teams
            with psycopg.connect(here()) as link:
                link.execute("SELECT set_config('app.team', %s, true)", [str(team.pk)])
                link.execute("UPDATE memories_memory SET content = 'changed meanwhile'")
                link.execute("DELETE FROM django_q_ormq")

    manifest = writing.backup(tmp_path / "b.zip", meanwhile)
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert b"changed meanwhile" not in archive.read("tables/memories_memory.copy")
    assert {content.table: content.rows for content in manifest.contents}["django_q_ormq"] > 0
    with team_transaction(team):
        assert Memory.objects.of(team).filter(content="changed meanwhile").count() == 3


def test_nothing_half_done_stays(filled, tmp_path: Path) -> None:
    def stop(line: str) -> None:
        if line.startswith("memories_memory:"):
            raise KeyboardInterrupt  # as from Ctrl-C

    with pytest.raises(KeyboardInterrupt):
        writing.backup(tmp_path / "b.zip", stop)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "b.zip").write_text("of last week")
    with pytest.raises(CommandError, match="exists"):
        call_command("backup", str(tmp_path / "b.zip"))
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(tmp_path / "no" / "b.zip"))
    assert (tmp_path / "b.zip").read_text() == "of last week"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.fixture
def whole(filled, tmp_path: Path) -> Path:
    call_command("backup", str(tmp_path / "b.zip"), verbosity=0)
    return tmp_path / "b.zip"


def rewritten(file: Path, member: str, change: Callable[[bytes], Any]) -> Path:
    """A copy of a backup with one member changed, or left out where `change` returns None."""
    other = file.with_name(f"{file.stem}-changed.zip")
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(other, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            if name == member:
                data = change(data)
            if data is not None:
                copy.writestr(name, data)
    return other


def test_a_damaged_file_is_told_before_anything_is_touched(whole: Path) -> None:
    memories = "tables/memories_memory.copy"

    def manifest(**fields):
        return lambda data: json.dumps({**json.loads(data), **fields})

    cases = [
        (memories, lambda data: data.replace(b"acme", b"evil"), "not those that were saved"),
        (memories, lambda data: data[: len(data) // 2], "not those that were saved"),
        (memories, lambda data: None, "cannot be read"),
        (manifests.NAME, lambda data: None, "no manifest"),
        (manifests.NAME, lambda data: b"{", "manifest cannot be read"),
        (manifests.NAME, manifest(format=2), "of format 2"),
        (manifests.NAME, manifest(migrations=[["accounts", "9999_later"]]), "does not know all of"),
    ]
    for member, change, says in cases:
        with pytest.raises(CommandError, match=says):
            call_command("restore", str(rewritten(whole, member, change)), "--check")
    cut = whole.with_name("cut.zip")
    cut.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(CommandError, match="no backup, or was cut short"):
        call_command("restore", str(cut), "--check")
    flipped = bytearray(whole.read_bytes())
    flipped[len(flipped) // 3] ^= 0x55
    cut.write_bytes(flipped)
    with pytest.raises(CommandError, match="damaged|cut short"):
        call_command("restore", str(cut), "--check")
    assert Team.objects.count() == 2


@pytest.mark.skipif(not databases.is_embedded(), reason="DATABASE_URL is set: there is no second role to connect as")
def test_the_role_that_serves_counts_as_somebody_who_works_with_the_database(transactional_db) -> None:
    """What other roles do is mostly hidden from the owner; that they are there must not be."""
    app = databases.parameters("", settings.DATA_DIR, "app")
    here = connection.settings_dict["NAME"]
    link = psycopg.connect(host=app["HOST"], port=app["PORT"], user=app["USER"], password=app["PASSWORD"], dbname=here)
    with link, connection.cursor() as cursor:
        cursor.execute(restoring.OTHERS)
        assert cursor.fetchone()[0] >= 1


def test_a_database_that_is_in_use_keeps_what_it_has(whole: Path) -> None:
    with pytest.raises(CommandError, match="holds people or teams|other connections"):
        call_command("restore", str(whole))
    assert Team.objects.count() == 2


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(
    st.lists(
        st.builds(Content, NAMES, st.lists(NAMES).map(tuple), st.integers(0, 2**60), st.text("0123456789abcdef")),
        max_size=4,
    ).map(tuple),
    st.lists(st.tuples(NAMES, NAMES), max_size=4).map(tuple),
)
def test_a_manifest_is_read_as_it_was_written(contents, migrations) -> None:
    manifest = Manifest(manifests.FORMAT, "2026-01-01T00:00:00+00:00", "1", "18.6", "k", migrations, contents)
    assert manifests.from_json(manifests.to_json(manifest)) == manifest


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format": 1}', '{"format": 1, "contents": 3}', "\udcff"])
def test_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(BackupError):
        manifests.from_json(text)
