"""`manage.py up`: everything, in the foreground."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections

from hindsight_site import databases, lifeline, running, schedules, supervisor
from hindsight_site.demo_team import DemoTeam, ensure_demo_team
from hindsight_site.embedded_db import EmbeddedDatabaseError
from hindsight_site.running import Claim, Running
from hindsight_site.schema_state import unapplied_migrations
from hindsight_site.supervisor import Address, CannotStart, Child, Program
from memories.checks import refuse_wrong_settings

GRACE = 10.0  # seconds for requests and tasks to end; a task that is cut runs again after the next start
READY_TIMEOUT = 120.0  # seconds
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - and where to reach them from here


class Command(BaseCommand):
    help = (
        "Run everything in the foreground: the embedded database (unless DATABASE_URL is set), migrations, "
        "a demo team, the web server, the worker and the schedule. Ctrl-C stops all of it."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="0 for any free one (default: %(default)s)")
        parser.add_argument("--data-dir", help="where the database, logs and keys are (default: var)")
        parser.add_argument("--json", action="store_true", help="print one line of JSON when ready, no more")
        parser.add_argument("--no-demo", action="store_true", help="create no demo team")
        parser.add_argument("--line", type=int, metavar="FD", help="for a supervisor: see hindsight_site.lifeline")

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_wrong_settings()
        children: list[Child] = []
        # Kept open: its end would stop us.
        line = lifeline.hold(options["line"]) if options["line"] is not None else None
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as it is under nohup
                signal.signal(number, _interrupt)
        try:
            self.run(children, options)
        except KeyboardInterrupt:
            say("Stopping.")
        except (CannotStart, running.AlreadyRunning, EmbeddedDatabaseError) as error:
            raise CommandError(str(error)) from error
        finally:
            supervisor.stop(children, GRACE)
            if line is not None:
                line.close()

    def run(self, children: list[Child], options: dict[str, Any]) -> None:
        """Start everything into `children`, show how to reach it, and keep it running."""
        claim = _claim()
        listener = supervisor.listen(options["host"], options["port"])
        address = reachable(listener)
        url = f"http://{f'[{address.host}]' if ':' in address.host else address.host}:{address.port}"
        running.note(claim, Running(os.getpid(), url))
        say(f"Starting. Data and logs are in {settings.DATA_DIR}.")
        upkeep = Upkeep(claim, url, children)
        for program in programs(url, address, listener, claim):
            children.append(supervisor.start(program))
        upkeep.note_children()
        prepare_database()  # while the children load their code
        for child in children:
            supervisor.release(child)
        schedules.sync()
        demo = None if options["no_demo"] else ensure_demo_team()
        if demo and not demo.password:
            say(f"{demo.email} keeps the password it has. To set another: python manage.py changepassword {demo.email}")
        connections.close_all()
        supervisor.wait_until_ready(children, address, READY_TIMEOUT)
        self.stdout.write(as_json(url, demo) if options["json"] else as_text(url, demo))
        self.stdout.flush()
        supervisor.watch(children, upkeep, say)


@dataclass(slots=True)
class Upkeep:
    """What there is to do, each time round, beside watching the children."""

    claim: Claim
    url: str
    children: list[Child]
    noted: tuple[int, ...] = ()
    trouble: str = ""

    def __call__(self) -> bool:
        """Bring a database back that died. Returns whether the children must be started anew, because it has
        moved to another address."""
        self.note_children()
        try:
            moved, trouble = databases.keep(), ""
        except EmbeddedDatabaseError as error:
            moved, trouble = False, str(error)
        if trouble and trouble != self.trouble:
            say(trouble)
        self.trouble = trouble
        return moved

    def note_children(self) -> None:
        """Write down which children run, for the next `up`."""
        groups = tuple(child.process.pid for child in self.children)
        if groups != self.noted:
            running.note(self.claim, Running(os.getpid(), self.url, groups))
            self.noted = groups


def reachable(listener: socket.socket) -> Address:
    """How this machine reaches the site."""
    host, port = listener.getsockname()[:2]
    names = [name.lstrip("*.") for name in settings.ALLOWED_HOSTS]
    return Address(ANY_ADDRESS.get(host, host), port, next(filter(None, names), "localhost"))


def prepare_database() -> None:
    """Start the embedded server unless there is a DATABASE_URL, and apply the migrations that it lacks."""
    databases.ensure()
    try:
        if unapplied_migrations():
            say("Bringing the database's tables up to date.")
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        raise CannotStart(f"The database does not answer or cannot be brought up to date: {reason}") from error


def programs(url: str, address: Address, listener: socket.socket, claim: Claim) -> tuple[Program, Program]:
    """The web server and the worker. What the operator has set goes before what is inferred here."""
    defaults = {"SITE_URL": url, "ALLOWED_HOSTS": ",".join([*settings.ALLOWED_HOSTS, address.host])}
    logs = settings.DATA_DIR / "logs"
    manage = (sys.executable, str(settings.BASE_DIR / "manage.py"))
    bind = ("--bind", f"fd://{listener.fileno()}", "--grace", f"{GRACE:.0f}")
    web_files = (listener.fileno(), claim.children)
    return (
        Program("web", (*manage, "web", *bind), logs / "web.log", defaults, web_files),
        Program("worker", (*manage, "worker"), logs / "worker.log", defaults, (claim.children,), announces=True),
    )


def as_json(url: str, demo: DemoTeam | None) -> str:
    """One line for programs. Without a demo team its fields are null."""
    access = {name: getattr(demo, name, None) for name in ("email", "password", "agent", "token")}
    return json.dumps({"url": url, **access, "pid": os.getpid()})


def as_text(url: str, demo: DemoTeam | None) -> str:
    """The same for people."""
    lines = ["", f"Hindsight is running at {url}", ""]
    if demo:
        lines += [
            f"  Sign in as    {demo.email}",
            f"  Password      {demo.password or '(as it was)'}",
            f"  Agent         {demo.agent}",
            f"  Agent token   {demo.token}",
            "",
        ]
    return "\n".join([*lines, "Ctrl-C stops everything; what was learnt is kept.", ""])


def say(line: str) -> None:
    """Tell whoever watches. Standard output is for the address alone."""
    sys.stderr.write(f"{line}\n")


def _claim() -> Claim:
    try:
        return running.claim(settings.DATA_DIR)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise CannotStart(f"The data folder cannot be used ({reason}): choose another with --data-dir.") from error


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
