"""The embedded PostgreSQL: a server of our own, for when DATABASE_URL is not set.

It keeps everything in one data folder, listens on 127.0.0.1 only, is shared by all processes that call
`start`, and goes on running until the last of them calls `stop`. Nothing else in the project knows how.

    start(data_dir)            create it if need be, start it if need be, note that this process uses it
    uri(data_dir)              where to connect
    ensure_running(data_dir)   bring a server that died back (for a supervisor, each second)
    stop(data_dir)             this process is done with it; stops the server unless another one uses it

Each raises EmbeddedDatabaseError, one line that says what to do, when it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from hindsight_site.embedded_db import account, binaries, cluster, server
from hindsight_site.embedded_db import folder as folders
from hindsight_site.embedded_db.account import Account
from hindsight_site.embedded_db.binaries import Tree
from hindsight_site.embedded_db.errors import EmbeddedDatabaseError
from hindsight_site.embedded_db.folder import Connection, Folder

__all__ = ["EmbeddedDatabaseError", "ensure_running", "start", "stop", "uri"]

_ROLES = {"owner": cluster.OWNER, "app": cluster.APP, "superuser": cluster.SUPERUSER}
_START_ATTEMPTS = 3  # somebody may be faster at the port, or kill the server while it starts


def start(data_dir: Path) -> None:
    """Make the database in `data_dir` exist and run, and take this process's lease on it.

    Idempotent, and safe in any number of processes at once. The first start creates the database `hindsight`
    with the extensions `vector` and `btree_gin` (in template1 too, so that test databases have them) and the
    roles `hindsight_owner` (owns it, may create databases) and `hindsight_app` (may read and write the
    owner's tables, subject to row-level security). The lease ends with `stop`, or with the process however it
    dies.
    """
    folder = folders.locate(data_dir)
    with _one_clear_line(folder):
        folders.prepare(folder)
        with folders.starting(folder):
            taken = folders.take_lease(folder)
            try:
                _bring_up(folder)
            except BaseException:
                if taken:
                    folders.drop_lease(folder)
                raise


def stop(data_dir: Path, *, force: bool = False) -> bool:
    """Drop this process's lease and stop the server, unless another process holds one (`force`: even then).

    Open transactions are rolled back, clients disconnected. Returns whether the server is down.
    """
    folder = folders.locate(data_dir)
    with _one_clear_line(folder):
        if not folder.database.exists():
            folders.drop_lease(folder)
            return True
        with folders.starting(folder):
            folders.drop_lease(folder)
            if folders.is_leased(folder) and not force:
                return folders.is_server_gone(folder)
            server.shut_down(folder)
            return True


def uri(data_dir: Path, role: str = "owner") -> str:
    """A postgresql:// URI of the database for a role: "owner" (migrations, tests), "app" (serving), or
    "superuser" (administration).

    Reads one file and connects to nothing. The port stays the same, unless a stranger has taken it when the
    server is started again. Raises EmbeddedDatabaseError when it never was started.
    """
    folder = folders.locate(data_dir)
    with _one_clear_line(folder):
        connection = folders.read_connection(folder)
        if connection is None or not folder.database.exists():
            raise EmbeddedDatabaseError(f"there is no database in {folder.root} yet: run `manage.py up` first")
    return _address(connection, role, cluster.DATABASE)


def ensure_running(data_dir: Path) -> bool:
    """Restart the server if it died or is shutting down. Cheap when it runs: reads its pid file and state.

    Returns whether this call had to restart it; False when another process was faster. Waits for one that is
    recovering. Never creates a database: raises EmbeddedDatabaseError when there is none.
    """
    folder = folders.locate(data_dir)
    with _one_clear_line(folder):
        if _is_up(folder):
            return False
        if not folder.database.exists():
            raise EmbeddedDatabaseError(f"there is no database in {folder.root} yet: run `manage.py up` first")
        with folders.starting(folder):
            return _bring_up(folder)


def _address(connection: Connection, role: str, database: str) -> str:
    name = _ROLES[role]
    password = quote(connection.passwords[name], safe="")
    return f"postgresql://{name}:{password}@{server.HOST}:{connection.port}/{database}"


def _is_up(folder: Folder) -> bool:
    found = server.postmaster(folder)
    return found is not None and found.status == "ready"


def _bring_up(folder: Folder) -> bool:
    """Create and start what is missing and wait until it is ready. Returns whether a server was started.

    Inside `starting` only.
    """
    found = server.settle(folder)
    if found and found.status == "ready":
        return False
    connection = folders.read_connection(folder)
    if found and connection and found.status == "starting" and server.wait_until_ready(folder, connection.port):
        return False
    server.shut_down(folder)  # one that was told to stop, or orphans of one that was killed
    _launch(folder, connection)
    return True


def _launch(folder: Folder, connection: Connection | None) -> None:
    """Start the server, creating the database first where there is none, on a port that nobody has taken."""
    runner = account.choose(folder.database)
    places = [folder.binaries, binaries.SYSTEM_CACHE] if runner.switch else [folder.binaries]
    tree = binaries.usable_tree(binaries.find_source(), runner, places)
    existing = _existing(folder, tree, runner, connection)
    connection = existing or _created(folder, tree, runner, connection)
    for _ in range(_START_ATTEMPTS):
        if not server.is_port_free(connection.port):
            connection = replace(connection, port=server.choose_port())
            folders.write_connection(folder, connection)
        failure = server.run(folder, tree, runner, connection.port)
        if failure is None:
            if existing:
                databases = (cluster.DATABASE, "template1")  # what new databases are copied from
                cluster.update_extensions([_address(connection, "superuser", name) for name in databases])
            return
        server.shut_down(folder)  # what is left of it
    raise EmbeddedDatabaseError(f"the embedded database did not start: {failure} (logs: {folder.database / 'log'})")


def _existing(folder: Folder, tree: Tree, runner: Account, connection: Connection | None) -> Connection | None:
    """Check the database that is there. None where there is none."""
    if not folder.database.exists() or not any(folder.database.iterdir()):
        return None
    cluster.check_version(folder, tree)
    if connection is None:
        raise EmbeddedDatabaseError(
            f"{folder.connection_file}, which holds the passwords of the database beside it, is gone:"
            f" restore it from a backup, or move {folder.root} away"
        )
    account.own(runner, folder.database)
    return connection


def _created(folder: Folder, tree: Tree, runner: Account, connection: Connection | None) -> Connection:
    """Create the database. The passwords are stored first: a database without them would be lost."""
    if connection is None:
        connection = Connection(server.choose_port(), cluster.new_passwords())
        folders.write_connection(folder, connection)
    cluster.create(folder, tree, runner, connection)
    return connection


@contextmanager
def _one_clear_line(folder: Folder) -> Iterator[None]:
    """Turn what the file system refuses into an EmbeddedDatabaseError."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
        raise EmbeddedDatabaseError(
            f"the data folder {folder.root} cannot be used ({reason}): choose another one with --data-dir,"
            " or set DATABASE_URL"
        ) from error
