"""The sites that harm is done to: plain, with a model, on a small disk, under a false clock, with a database apart."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.fakes import ModelServer
from tests.running_site import Site

SMALL_DISK = 700  # MB
SETTINGS = {
    "OUTBOUND_ALLOW_PRIVATE": "1",  # the receiver of webhooks is on this machine
    "RATE_LIMIT_TOKEN_PER_MINUTE": "0",
    "RATE_LIMIT_TEAM_PER_MINUTE": "0",
    "QUOTA_TRACES_A_DAY": "0",
}


class CannotStage(Exception):
    """What this machine lacks for a scenario, in words."""


@dataclass
class Place:
    """A site, and what a scenario turns about it."""

    site: Site
    folder: Path
    jobs: int = 10_000  # how many a scenario queues
    outage: float = 30.0  # seconds that a scenario keeps the database away
    model: ModelServer | None = None
    clock: Path = field(default_factory=Path)  # seconds that the false clock is ahead
    database: Path = field(default_factory=Path)  # the data folder of the database apart


@contextmanager
def plain(folder: Path) -> Iterator[Place]:
    with _started(Place(Site(folder / "data", SETTINGS), folder)) as place:
        yield place


@contextmanager
def with_model(folder: Path) -> Iterator[Place]:
    """A model that answers well until a scenario says otherwise; the site waits 4 s for it."""
    with ModelServer() as model:
        model.hang_seconds = 1.0
        settings = {**SETTINGS, "LLM_BASE_URL": model.base_url, "LLM_API_KEY": "fake", "LLM_TIMEOUT_SECONDS": "4"}
        with _started(Place(Site(folder / "data", settings), folder, model=model)) as place:
            yield place


@contextmanager
def on_small_disk(folder: Path) -> Iterator[Place]:
    """The data folder on a file system in memory."""
    disk = folder / "disk"
    disk.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}m,mode=755", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(options, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotStage(f"nothing can be mounted: {error}") from error
    if mounted.returncode:
        raise CannotStage(f"nothing can be mounted: {mounted.stderr.strip()}")
    try:
        with _started(Place(Site(disk / "data", SETTINGS), folder)) as place:
            yield place
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@contextmanager
def under_false_clock(folder: Path) -> Iterator[Place]:
    """The clock of web and worker follows a file; the database keeps the true one, as on another host."""
    compiler, library, clock = shutil.which("cc"), folder / "clock.so", folder / "clock"
    if compiler is None or sys.platform != "linux":
        raise CannotStage("a false clock wants Linux and a C compiler (cc)")
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    clock.write_text("0")
    faked = {"LD_PRELOAD": str(library), "CLOCK_SHIFT_FILE": str(clock)}
    with _started(Place(Site(folder / "data", SETTINGS | faked), folder, clock=clock)) as place:
        yield place


@contextmanager
def with_database_apart(folder: Path) -> Iterator[Place]:
    """A database that `up` does not look after, as in production."""
    from hindsight_site import embedded_db

    database = folder / "database"
    embedded_db.start(database)
    try:
        apart = {"DATABASE_URL": embedded_db.uri(database, "owner")}
        with _started(Place(Site(folder / "data", SETTINGS | apart), folder, database=database)) as place:
            yield place
    finally:
        embedded_db.stop(database, force=True)


@contextmanager
def _started(place: Place) -> Iterator[Place]:
    """Start the site, and have it tell a receiver of every reflection that ends."""
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    Thread(target=receiver.serve_forever, daemon=True).start()
    try:
        place.site.start()
        place.site.run("shell", "--verbosity", "0", "-c", _SUBSCRIBE % f"http://127.0.0.1:{receiver.server_port}/")
        yield place
    finally:
        place.site.stop()
        receiver.shutdown()
        receiver.server_close()
        shutil.copytree(place.site.data_dir / "logs", place.folder / "logs", dirs_exist_ok=True)


_SUBSCRIBE = """
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks import actions
team = Team.objects.get(name="Demo")
with team_transaction(team):
    actions.create_webhook(team=team, by=SYSTEM, url=%r, events=["reflection.finished"])
"""


class _Receiver(BaseHTTPRequestHandler):
    """Takes what it is sent."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the table clean."""
