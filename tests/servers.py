"""PostgreSQL servers and poolers of a test's own, made from the embedded programs and from what the system has."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from django.db import connections

from hindsight_site import embedded_db
from hindsight_site.embedded_db import account, binaries, folder

SECONDS = 30.0  # that a server gets to answer


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(what: str, test: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Return when `test` says yes; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Whether a database takes connections."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def databases_are(**urls: dict[str, Any]) -> Iterator[None]:
    """For this thread, Django's connections of these names have these parameters (see `hindsight_site.databases`).

    For tests on a server of their own; the caller lifts pytest-django's block.
    """
    before, known = connections["default"], connections.settings["default"]
    places = {alias if alias != "default" else "elsewhere": given for alias, given in urls.items()}
    for alias, given in places.items():
        connections.settings[alias] = {**known, **given}
    connections["default"] = connections["elsewhere"]
    try:
        yield
    finally:
        connections["default"] = before
        for alias in places:
            connections[alias].close()
            del connections[alias]
            del connections.settings[alias]


@dataclass
class Standby:
    """A streaming replica of the embedded server in `primary`. `start` makes it where it is not made yet."""

    primary: Path
    root: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def uri(self, role: str) -> str:
        """Where to connect: roles and passwords are the primary's."""
        ours = urlsplit(embedded_db.uri(self.primary, role))
        return f"postgresql://{ours.username}:{quote(ours.password or '', safe='')}@127.0.0.1:{self.port}{ours.path}"

    def start(self) -> None:
        """Copy the primary if need be, start, and wait until it answers."""
        runner = account.choose(folder.locate(self.primary).database)
        places = [self.root.parent / "binaries", binaries.SYSTEM_CACHE]
        tree = binaries.usable_tree(binaries.find_source(), runner, places)
        if not self.root.exists():
            self.root.mkdir(mode=0o700)
            account.own(runner, self.root)
            source = embedded_db.uri(self.primary, "superuser").rpartition("/")[0]
            copy = [tree.program("pg_basebackup"), "-d", source, "-D", account.path_for(runner, self.root)]
            done = runner.run([*copy, "-R", "-X", "stream", "-c", "fast"], cwd=self.root, home=tree.home)
            assert done.returncode == 0, done.stderr
        self.process = subprocess.Popen(
            [
                tree.program("postgres"), "-D", account.path_for(runner, self.root), "-p", str(self.port),
                "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "shared_buffers=32MB",
                "-c", "logging_collector=off",
            ],
            cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C", "LD_LIBRARY_PATH": str(tree.home / "lib")}, start_new_session=True,
            **({"user": runner.uid, "group": runner.gid, "extra_groups": []} if runner.switch else {}),
        )  # fmt: skip
        wait_for("the replica answers", lambda: answers(self.uri("superuser")))

    def kill(self) -> None:
        """End it at once, with every process of it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=SECONDS)

    def run(self, statement: str) -> None:
        """Run a statement there, as the superuser."""
        with psycopg.connect(self.uri("superuser"), autocommit=True) as link:
            link.execute(statement)


PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


@dataclass
class Pooler:
    """PgBouncer in transaction mode in front of the server of `url`, with few sessions, so that they are shared."""

    url: str
    root: Path
    sessions: int = 4
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it and return the address of the same database through it."""
        behind = urlsplit(self.url)
        self.root.mkdir(mode=0o755)
        name, password = behind.username or "", behind.password or ""
        database, host = behind.path.lstrip("/"), behind.hostname
        users, config = self.root / "users.txt", self.root / "pgbouncer.ini"
        users.write_text(f'"{name}" "{password}"\n')
        config.write_text(
            f"[databases]\n{database} = host={host} port={behind.port or 5432}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = {'plain' if password else 'trust'}\nauth_file = {users}\npool_mode = transaction\n"
            f"default_pool_size = {self.sessions}\nmax_client_conn = 200\nserver_reset_query_always = 0\n"
        )
        user = []
        if os.geteuid() == 0:  # which it refuses to run as
            user = ["-u", "nobody"]
            for path in (self.root, users, config):
                shutil.chown(path, "nobody")
            for parent in self.root.parents:
                if parent.stat().st_mode & 0o001 == 0 and parent.stat().st_uid == 0 and "pytest" in str(parent):
                    parent.chmod(parent.stat().st_mode | 0o011)
        assert PGBOUNCER is not None
        with (self.root / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [PGBOUNCER, *user, str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        there = f"postgresql://{name}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"
        wait_for("the pooler answers", lambda: answers(there))
        return there

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=SECONDS)
