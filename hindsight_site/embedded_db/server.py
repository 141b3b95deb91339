"""The server process: started, waited for, told dead from alive, stopped."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hindsight_site.embedded_db.account import Account, path_for
from hindsight_site.embedded_db.binaries import Tree
from hindsight_site.embedded_db.cluster import APP, DATABASE
from hindsight_site.embedded_db.errors import EmbeddedDatabaseError
from hindsight_site.embedded_db.folder import Folder, claim_server, is_server_gone, open_private

HOST = "127.0.0.1"

# Below the range that systems hand out to outgoing connections, so that a remembered port stays free.
_PORTS = range(20000, 32000)

_READY_TIMEOUT = 300.0  # seconds; covers recovery after a crash
_STOP_TIMEOUT = 60.0  # seconds for a fast shutdown with its checkpoint
_GRACE = 2.0  # seconds that processes without a postmaster get to end by themselves
_POLL = 0.02  # seconds


@dataclass(frozen=True)
class Postmaster:
    """A live postmaster, as its pid file describes it. `status`: starting, ready, stopping."""

    pid: int
    status: str


def postmaster(folder: Folder) -> Postmaster | None:
    """The postmaster that the pid file names, or None when that process is gone, a zombie or a stranger."""
    lines = _pid_file(folder)
    if not lines or not _is_ours(folder, _command(int(lines[0]))):
        return None
    return Postmaster(int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting")


def is_port_free(port: int) -> bool:
    """Whether nobody listens on this port of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port() -> int:
    """A random free port."""
    for _ in range(200):
        port = _PORTS[secrets.randbelow(len(_PORTS))]
        if is_port_free(port):
            return port
    raise EmbeddedDatabaseError(f"no free port between {_PORTS.start} and {_PORTS.stop}: set DATABASE_URL")


def settle(folder: Folder) -> Postmaster | None:
    """The running postmaster, or None when no server lives or only orphans of one do.

    A server that is just being started gets a moment to write its pid file, orphans get one to end.
    """
    deadline = time.monotonic() + _GRACE
    while not is_server_gone(folder):
        found = postmaster(folder)
        if found or time.monotonic() > deadline:
            return found
        time.sleep(_POLL)
    return None


def run(folder: Folder, tree: Tree, account: Account, port: int) -> str | None:
    """Start the server and wait until it is ready. Returns the reason when it ended instead, else None.

    No process of an earlier server may live. Inside `starting` only.
    """
    since = datetime.now(UTC)
    claim = claim_server(folder)
    if claim is None:
        raise EmbeddedDatabaseError(f"processes of the database in {folder.database} still run: end them first")
    try:
        _remove_stale_pid_file(folder)
        _launch(folder, tree, account, port, claim)
    finally:
        os.close(claim)  # the server has its own by now
    return None if wait_until_ready(folder, port) else _failure_reason(folder, since)


def wait_until_ready(folder: Folder, port: int) -> bool:
    """Wait until the server accepts connections. False when it ended instead, or is about to.

    Raises EmbeddedDatabaseError when it does neither for a long time.
    """
    deadline = time.monotonic() + _READY_TIMEOUT
    while time.monotonic() < deadline:
        found = postmaster(folder)
        if found and found.status == "ready" and _accepts_connections(port):
            return True
        if is_server_gone(folder) or (found and found.status == "stopping"):
            return False
        time.sleep(_POLL)
    raise EmbeddedDatabaseError(
        f"the embedded database is not ready after {_READY_TIMEOUT:.0f} s: see {folder.database / 'log'}"
    )


def shut_down(folder: Folder) -> None:
    """End every process of the server: cleanly, else at once (the next start then recovers).

    Returns when the last one is gone. Raises EmbeddedDatabaseError when one cannot be ended.
    """
    if is_server_gone(folder):
        return
    running = postmaster(folder)
    if running:
        _send(running.pid, signal.SIGINT)  # "fast": roll back what is open, write a checkpoint
    if is_server_gone(folder, within=_STOP_TIMEOUT if running else 0.0):
        return
    for last_word in (signal.SIGQUIT, signal.SIGKILL):
        for pid in _server_processes(folder):
            _send(pid, last_word)
        if is_server_gone(folder, within=_GRACE):
            return
    raise EmbeddedDatabaseError(
        f"processes of the database in {folder.database} do not end: end those called 'postgres: {_mark(folder)}'"
    )


def _launch(folder: Folder, tree: Tree, account: Account, port: int, claim: int) -> None:
    """Start the server, detached, holding `claim` from its first moment.

    The settings given here hold whatever postgresql.conf says.
    """
    settings = {
        "listen_addresses": HOST,
        "port": str(port),
        "unix_socket_directories": "",
        "fsync": "on",
        "full_page_writes": "on",
        "recovery_init_sync_method": "syncfs" if sys.platform == "linux" else "fsync",
        "cluster_name": _mark(folder),
    }
    command: list[str | Path] = [tree.program("postgres"), "-D", path_for(account, folder.database)]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    # The shell ends at once, which leaves the server to init: it is nobody's child and outlives us.
    detached = ["/bin/sh", "-c", '"$@" &', "sh", *command]
    with os.fdopen(open_private(folder.start_log, os.O_WRONLY | os.O_TRUNC), "w") as log:
        account.run(detached, cwd=folder.database, home=tree.home, output=log.fileno(), keep=[claim])


def _failure_reason(folder: Folder, since: datetime) -> str:
    """The last complaint that the server logged after `since`, as one line; what it told clients aside."""
    lines = folder.start_log.read_text(errors="replace").splitlines()
    for log in (folder.database / "log").glob("*.log"):
        lines += [line for line in log.read_text(errors="replace").splitlines() if line >= f"{since:%F %T}"]
    to_clients = "the database system is|terminating connection"
    for level in ("PANIC|FATAL", "ERROR|error", "WARNING"):
        complaint = re.compile(rf"\b(?:{level}): +(?!{to_clients})(.*)")
        reasons = [found.group(1) for line in lines if (found := complaint.search(line))]
        if reasons:
            return reasons[-1]
    return lines[-1] if lines else "it gave no reason"


def _remove_stale_pid_file(folder: Folder) -> None:
    """Remove the pid file of a server of which no process lives, as the caller's claim proves.

    PostgreSQL would take a zombie, or a stranger that was given the number, for the server and not start.
    Raises EmbeddedDatabaseError when it is the file of a server that was started by hand, without the claim.
    """
    lines = _pid_file(folder)
    if lines and _works_in(int(lines[0]), folder.database):
        raise EmbeddedDatabaseError(
            f"a PostgreSQL server that was started by other means (process {lines[0]}) uses"
            f" {folder.database}: stop it first"
        )
    (folder.database / "postmaster.pid").unlink(missing_ok=True)


def _accepts_connections(port: int) -> bool:
    """What pg_isready asks, without starting it."""
    from psycopg import pq  # late: a start that finds the server running does without

    question = f"host={HOST} port={port} dbname={DATABASE} user={APP} connect_timeout=2"
    return pq.PGconn.ping(question.encode()) == pq.Ping.OK


def _mark(folder: Folder) -> str:
    """Names this data directory in the command line or title of each of its server's processes.

    Made from the directory's identity, not from a stored name: a copy of the folder is another database.
    """
    identity = folder.database.stat()
    return f"hindsight-{identity.st_dev:x}-{identity.st_ino:x}"


def _is_ours(folder: Folder, command: str) -> bool:
    """Whether this is the command line or title of a process of this folder's server."""
    return re.search(rf"postgres.*\b{_mark(folder)}\b", command, re.DOTALL) is not None


def _server_processes(folder: Folder) -> list[int]:
    """The ids of all live processes of this folder's server, orphans included."""
    if sys.platform == "linux":
        processes = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    else:
        processes = [int(pid) for pid in _ps("-axo", "pid=").split()]
    return [pid for pid in processes if pid != os.getpid() and _is_ours(folder, _command(pid))]


def _command(pid: int) -> str:
    """The command line of process `pid`, or the title it gave itself; empty for none and for a zombie."""
    if sys.platform != "linux":
        return _ps("-o", "command=", "-p", str(pid))
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _works_in(pid: int, database: Path) -> bool:
    """Whether process `pid` may be a server of the data directory `database`: by its working directory where
    the system shows it, else by its name and owner."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cwd").samefile(database)
        except (FileNotFoundError, ProcessLookupError):
            return False
        except PermissionError:
            uid = Path(f"/proc/{pid}").stat().st_uid
    else:
        uid = int(_ps("-o", "uid=", "-p", str(pid)).strip() or -1)
    return "postgres" in _command(pid) and uid == database.stat().st_uid


def _pid_file(folder: Folder) -> list[str]:
    """The lines of postmaster.pid: process id, data directory, start time, port, … status. [] without it."""
    try:
        lines = (folder.database / "postmaster.pid").read_text(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    return lines if lines and lines[0].strip().isdigit() else []


def _ps(*options: str) -> str:
    return subprocess.run(["/bin/ps", *options], capture_output=True, text=True, check=False).stdout  # noqa: S603


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
