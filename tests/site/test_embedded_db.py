"""The embedded database against real servers: every test that starts one gets a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from hindsight_site import embedded_db
from hindsight_site.embedded_db import EmbeddedDatabaseError, account, binaries, folder, server

REPOSITORY = Path(__file__).parents[2]
AS_ROOT = os.geteuid() == 0

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder that does not exist yet, with a path that is not simple. Under root its parents are closed to
    the server's user, as pytest makes them."""
    path = tmp_path / "Mémoires d'équipe 记忆" / "data"
    yield path
    embedded_db.stop(path, force=True)


@pytest.fixture
def running(data_dir: Path) -> Path:
    embedded_db.start(data_dir)
    return data_dir


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running server for tests that neither stop nor hurt it; each names its tables differently."""
    path = tmp_path_factory.mktemp("shared") / "data"
    embedded_db.start(path)
    yield path
    embedded_db.stop(path, force=True)


def connect(data_dir: Path, role: str = "owner", **options: str) -> psycopg.Connection:
    return psycopg.connect(embedded_db.uri(data_dir, role), autocommit=True, **options)


def answer(data_dir: Path, question: str, role: str = "owner", **options: str) -> object:
    with connect(data_dir, role, **options) as connection:
        row = connection.execute(question).fetchone()
    assert row is not None
    return row[0]


def in_other_process(code: str, data_dir: Path) -> subprocess.Popen[str]:
    """A Python process with `embedded_db` and `data_dir` at hand."""
    start = "import sys, pathlib; from hindsight_site import embedded_db; data_dir = pathlib.Path(sys.argv[1])\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + code, str(data_dir)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output.strip()


def postmaster_id(data_dir: Path) -> int:
    return int((data_dir / "database" / "postmaster.pid").read_text().splitlines()[0])


def kill_postmaster(data_dir: Path) -> None:
    os.kill(postmaster_id(data_dir), signal.SIGKILL)
    while server.postmaster(folder.locate(data_dir)):  # the kernel takes a moment
        time.sleep(0.001)


def as_server_user(data_dir: Path) -> dict[str, int]:
    """Options of Popen for a process of the user that the server runs as."""
    owner = (data_dir / "database").stat()
    return {"user": owner.st_uid, "group": owner.st_gid} if AS_ROOT else {}


# What the first start makes


def test_database_has_the_extensions_and_roles(shared: Path) -> None:
    roles = "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user"
    with connect(shared) as owner, connect(shared, "app") as app:
        assert owner.execute(roles).fetchone() == (False, False, False, True)
        assert app.execute(roles).fetchone() == (False, False, False, False)
        assert owner.execute("SELECT '[1,2]'::vector <-> '[1,4]'").fetchone() == (2.0,)
        assert owner.execute("SELECT 1 FROM pg_extension WHERE extname = 'btree_gin'").fetchone() == (1,)
        owner.execute("CREATE TABLE note (id bigint GENERATED ALWAYS AS IDENTITY, text text)")
        app.execute("INSERT INTO note (text) VALUES ('hello')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("DROP TABLE note")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("CREATE DATABASE more")


def test_owner_makes_databases_that_have_the_extension_too(shared: Path) -> None:
    with connect(shared) as owner:
        owner.execute("CREATE DATABASE test_hindsight")
    assert answer(shared, "SELECT '[1,2]'::vector <-> '[1,4]'", dbname="test_hindsight") == 2.0
    with connect(shared, dbname="postgres") as owner:
        owner.execute("DROP DATABASE test_hindsight")


def test_letters_of_all_scripts_are_letters(shared: Path) -> None:
    assert answer(shared, "SELECT lower('ÄÉΣ')") == "äéσ"
    with connect(shared, "superuser") as superuser:
        superuser.execute("CREATE EXTENSION pg_trgm")
    assert answer(shared, "SELECT show_trgm('记忆')") != []


def test_settings_that_keep_data_and_secrets(shared: Path) -> None:
    for name, value in {
        "fsync": "on",
        "full_page_writes": "on",
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "statement_timeout": "0",
    }.items():
        assert answer(shared, f"SHOW {name}", "superuser") == value, name
    hashes = "SELECT bool_and(rolpassword LIKE 'SCRAM-SHA-256$%') FROM pg_authid WHERE rolcanlogin"
    assert answer(shared, hashes, "superuser") is True
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(shared, password="wrong")
    assert stat.S_IMODE((shared / "connection.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((shared / "database").stat().st_mode) == 0o700


def test_what_people_wrote_stays_out_of_the_log(shared: Path) -> None:
    with connect(shared) as owner:
        owner.execute("CREATE TABLE thought (text text UNIQUE)")
        owner.execute("INSERT INTO thought VALUES ('a private thought')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            owner.execute("INSERT INTO thought VALUES ('a private thought')")
    logs = ""
    while "duplicate key" not in logs:  # written by another process
        logs = "".join(log.read_text() for log in (shared / "database" / "log").iterdir())
        time.sleep(0.02)
    assert "private" not in logs


# Starting again


def test_second_start_finds_everything_where_it_was(running: Path) -> None:
    with connect(running) as owner:
        owner.execute("CREATE TABLE note AS SELECT 42 AS number")
    before = embedded_db.uri(running)
    assert embedded_db.stop(running) is True
    with pytest.raises(psycopg.OperationalError, match="refused"):
        connect(running)
    embedded_db.start(running)
    embedded_db.start(running)
    assert embedded_db.uri(running) == before
    assert answer(running, "SELECT number FROM note") == 42


def test_six_starters_at_once_get_one_server(data_dir: Path) -> None:
    code = "embedded_db.start(data_dir); print(embedded_db.uri(data_dir)); sys.stdout.flush(); input()"
    starters = [in_other_process(code, data_dir) for _ in range(6)]
    uris = [starter.stdout.readline() for starter in starters if starter.stdout]
    first_server = postmaster_id(data_dir)
    results = [starter.communicate("\n", timeout=60) for starter in starters]
    assert [starter.returncode for starter in starters] == [0] * 6, results
    assert set(uris) == {embedded_db.uri(data_dir) + "\n"}
    embedded_db.start(data_dir)
    assert postmaster_id(data_dir) == first_server
    assert not list(data_dir.glob("database.new-*"))


def test_port_taken_by_a_stranger_is_left_to_it(running: Path) -> None:
    embedded_db.stop(running)
    port = json.loads((running / "connection.json").read_text())["port"]
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        embedded_db.start(running)
        assert f":{port}/" not in embedded_db.uri(running)
        assert answer(running, "SELECT 1") == 1
        chosen = embedded_db.uri(running)
        embedded_db.stop(running)
    embedded_db.start(running)
    assert embedded_db.uri(running) == chosen


def test_starter_killed_while_creating_leaves_a_folder_that_starts(data_dir: Path) -> None:
    for delay in (0.3, 0.6):
        starter = in_other_process("embedded_db.start(data_dir)", data_dir)
        time.sleep(delay)
        starter.kill()
        starter.communicate()
    embedded_db.start(data_dir)
    assert answer(data_dir, "SELECT count(*) FROM pg_extension WHERE extname = 'vector'") == 1
    assert not list(data_dir.glob("database.new-*"))


def test_copy_of_a_running_folder_is_another_database(running: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(running, copy)
    try:
        embedded_db.start(copy)
        assert postmaster_id(copy) != postmaster_id(running)
        assert embedded_db.uri(copy) != embedded_db.uri(running)
        assert answer(copy, "SELECT 1") == 1
    finally:
        embedded_db.stop(copy, force=True)
    assert answer(running, "SELECT 1") == 1


# Dying and coming back


def test_acknowledged_rows_survive_kill_9(running: Path) -> None:
    with connect(running) as owner:
        owner.execute("CREATE TABLE written (id bigint PRIMARY KEY, text text)")
    acknowledged: list[int] = []

    def write(first: int) -> None:
        with suppress(psycopg.OperationalError), connect(running) as connection:
            for number in range(first, first + 1_000_000):
                connection.execute("INSERT INTO written VALUES (%s, repeat('x', 500))", [number])
                acknowledged.append(number)

    threads = [threading.Thread(target=write, args=[n * 10_000_000]) for n in range(3)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 500:
        time.sleep(0.01)
    assert embedded_db.ensure_running(running) is False
    kill_postmaster(running)
    assert embedded_db.ensure_running(running) is True
    assert embedded_db.ensure_running(running) is False
    for thread in threads:
        thread.join()
    with connect(running) as owner:
        found = {row[0] for row in owner.execute("SELECT id FROM written")}
    assert set(acknowledged) <= found


def test_server_told_to_end_while_clients_stay_is_brought_back(running: Path) -> None:
    with connect(running) as client:
        old = postmaster_id(running)
        os.kill(old, signal.SIGTERM)  # the "smart" way: waits for clients, takes no new ones
        while embedded_db.ensure_running(running) is False:
            time.sleep(0.02)
        assert postmaster_id(running) != old
        assert answer(running, "SELECT 1") == 1
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")


def test_orphans_of_a_killed_server_are_ended_and_nobody_else(running: Path, tmp_path: Path) -> None:
    embedded_db.stop(running)
    copy = tmp_path / "copy"
    shutil.copytree(running, copy)
    embedded_db.start(running)
    embedded_db.start(copy)
    neighbour = postmaster_id(copy)

    def work_on() -> None:  # a backend that does not look up from its work when the postmaster dies
        with pytest.raises(psycopg.OperationalError), connect(running) as connection:
            connection.execute("SELECT count(*) FROM generate_series(1, 100000000000)")

    try:
        thread = threading.Thread(target=work_on)
        thread.start()
        busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series%' AND state = 'active'"
        while answer(running, busy, "superuser") != 2:  # that one and the question itself
            time.sleep(0.02)
        kill_postmaster(running)
        assert embedded_db.ensure_running(running) is True
        thread.join()
        assert embedded_db.ensure_running(copy) is False
        assert postmaster_id(copy) == neighbour
        assert answer(copy, "SELECT 1") == 1
    finally:
        embedded_db.stop(copy, force=True)


@pytest.mark.parametrize("kind", ["stranger", "zombie", "nobody", "no number"])
def test_stale_pid_file_does_not_stop_a_start(running: Path, kind: str) -> None:
    pid_file = running / "database" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    embedded_db.stop(running)
    command = ["sleep", "60"] if kind == "stranger" else ["true"]
    process = subprocess.Popen(command, **as_server_user(running))
    if kind == "nobody":
        process.wait()
    else:
        time.sleep(0.2)
    lines[0] = "not a number" if kind == "no number" else str(process.pid)
    pid_file.write_text("\n".join(lines) + "\n")
    embedded_db.start(running)
    assert answer(running, "SELECT 1") == 1
    if kind == "stranger":
        assert process.poll() is None
        process.kill()
    process.wait()


def test_server_started_by_other_means_is_not_fought_over(running: Path) -> None:
    (running / "server.lock").unlink()  # what such a server does not hold
    embedded_db.stop(running)
    pid = postmaster_id(running)
    try:
        with pytest.raises(EmbeddedDatabaseError, match=f"process {pid}.*stop it first"):
            server.run(
                folder.locate(running),
                binaries.Tree(Path("/nowhere"), "18.0"),
                account.choose(running / "database"),
                1,
            )
    finally:
        os.kill(pid, signal.SIGINT)
        while (running / "database" / "postmaster.pid").exists():
            time.sleep(0.02)


# Who still uses it


def test_server_stays_while_another_process_uses_it(running: Path) -> None:
    other = in_other_process("embedded_db.start(data_dir); print('up'); sys.stdout.flush(); input()", running)
    assert other.stdout
    assert other.stdout.readline() == "up\n"
    assert embedded_db.stop(running) is False
    assert answer(running, "SELECT 1") == 1
    other.kill()
    other.communicate()
    assert answer(running, "SELECT 1") == 1
    assert embedded_db.stop(running) is True


def test_lease_is_on_the_folder_that_is_there(running: Path) -> None:
    embedded_db.stop(running)
    embedded_db.start(running)
    server.shut_down(folder.locate(running))
    shutil.rmtree(running)
    embedded_db.start(running)
    other = in_other_process("embedded_db.start(data_dir); print(embedded_db.stop(data_dir))", running)
    assert finish(other) == "False"


def test_server_outlives_its_starter_and_force_ends_it(data_dir: Path) -> None:
    finish(in_other_process("embedded_db.start(data_dir)", data_dir))
    assert answer(data_dir, "SELECT 1") == 1
    other = in_other_process("embedded_db.start(data_dir); print('up'); sys.stdout.flush(); input()", data_dir)
    assert other.stdout
    assert other.stdout.readline() == "up\n"
    assert embedded_db.stop(data_dir, force=True) is True
    assert embedded_db.stop(data_dir) is True
    other.communicate("\n")


def test_starts_and_stops_at_once_all_succeed(running: Path) -> None:
    code = """
import psycopg
for _ in range(6):
    embedded_db.start(data_dir)
    with psycopg.connect(embedded_db.uri(data_dir)) as connection:
        connection.execute("SELECT 1")
    embedded_db.stop(data_dir)
"""
    embedded_db.stop(running)
    for process in [in_other_process(code, running) for _ in range(4)]:
        finish(process)
    assert embedded_db.stop(running) is True
    assert not (running / "database" / "postmaster.pid").exists()


# What it refuses, in one line


def one_line(error: pytest.ExceptionInfo[EmbeddedDatabaseError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def test_nothing_is_there_before_the_first_start(data_dir: Path) -> None:
    for verb in (embedded_db.uri, embedded_db.ensure_running):
        with pytest.raises(EmbeddedDatabaseError, match="no database") as error:
            verb(data_dir)
        one_line(error)
    assert embedded_db.stop(data_dir) is True
    assert not data_dir.exists()


def test_other_major_version_is_refused_with_the_way_out(running: Path) -> None:
    embedded_db.stop(running)
    version = running / "database" / "PG_VERSION"
    version.write_text("16\n")
    with pytest.raises(EmbeddedDatabaseError, match="PostgreSQL 16") as error:
        embedded_db.start(running)
    assert "backup" in one_line(error)
    assert "DATABASE_URL" in one_line(error)
    assert version.read_text() == "16\n"


def test_extensions_follow_a_minor_version_of_the_programs(running: Path) -> None:
    """As they are after a start with newer programs: the database still has the extension as it was created."""
    version = "SELECT extversion FROM pg_extension WHERE extname = 'btree_gin'"
    newest = answer(running, version)
    with connect(running, "superuser") as link:
        link.execute("DROP EXTENSION btree_gin")
        link.execute("CREATE EXTENSION btree_gin VERSION '1.0'")
    assert answer(running, version) == "1.0"
    embedded_db.stop(running)
    embedded_db.start(running)
    assert answer(running, version) == newest


def test_lost_or_damaged_passwords_are_refused(running: Path) -> None:
    embedded_db.stop(running)
    (running / "connection.json").write_text("{")
    with pytest.raises(EmbeddedDatabaseError, match="damaged"):
        embedded_db.start(running)
    (running / "connection.json").unlink()
    with pytest.raises(EmbeddedDatabaseError, match="is gone") as error:
        embedded_db.start(running)
    one_line(error)


def test_reason_of_a_failed_start_is_told(running: Path) -> None:
    embedded_db.stop(running)
    (running / "database" / "postgresql.auto.conf").write_text("max_connections = many\n")
    with pytest.raises(EmbeddedDatabaseError, match="did not start: .*postgresql.auto.conf") as error:
        embedded_db.start(running)
    one_line(error)
    assert embedded_db.stop(running) is True


def test_folder_that_cannot_be_used(tmp_path: Path) -> None:
    a_file = tmp_path / "file"
    a_file.touch()
    with pytest.raises(EmbeddedDatabaseError, match="--data-dir") as error:
        embedded_db.start(a_file / "data")
    one_line(error)


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_folder_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(EmbeddedDatabaseError, match="Permission denied.*--data-dir") as error:
        embedded_db.start(closed / "data")
    one_line(error)


def test_loose_permissions_of_the_data_are_tightened(running: Path) -> None:
    embedded_db.stop(running)
    (running / "database").chmod(0o755)
    embedded_db.start(running)
    assert stat.S_IMODE((running / "database").stat().st_mode) == 0o700


@pytest.mark.skipif(not AS_ROOT, reason="only root changes the user")
def test_root_runs_the_server_as_somebody_else_and_touches_no_parent(data_dir: Path, tmp_path: Path) -> None:
    before = stat.S_IMODE(tmp_path.stat().st_mode), tmp_path.stat().st_uid
    embedded_db.start(data_dir)
    assert Path(f"/proc/{postmaster_id(data_dir)}").stat().st_uid != 0
    assert (stat.S_IMODE(tmp_path.stat().st_mode), tmp_path.stat().st_uid) == before
