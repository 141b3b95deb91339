"""Child processes in the foreground: started, waited for, started again when they die, stopped together."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NoReturn

from hindsight_site import lifeline

LOG_SIZE = 10_000_000  # bytes; a longer log is put aside at the next start, one old one is kept

_TICK = 0.5  # seconds between two looks at the children
_POLL = 0.05  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds before a dead child is started again; doubles each time
_LAST_BREATH = 2.0  # seconds for a killed process to be gone
_PROVEN_AFTER = 60.0  # seconds of life after which a death counts as the first


class CannotStart(Exception):
    """Something is in the way. One line that says what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a child runs, with which open files, and where its output goes.

    Its command takes `--line FD` and heeds it as `lifeline` says. It inherits our environment; `defaults` are
    for variables that are not in it. `announces`: it says when it is ready.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    defaults: Mapping[str, str] = field(default_factory=dict)
    open_files: tuple[int, ...] = ()
    announces: bool = False


@dataclass(slots=True)
class Child:
    """A program and the process that runs it now, the leader of a process group of its own."""

    program: Program
    process: subprocess.Popen[bytes]
    line: socket.socket  # our end; see `lifeline`
    is_ready: bool  # it has announced itself, or does not do so
    since: float = field(default_factory=time.monotonic)
    deaths: int = 0  # in a row, each after a short life
    again_at: float | None = None  # when to start it again; None while it runs


@dataclass(frozen=True, slots=True)
class Address:
    """Where this machine reaches the site, and the host name to ask for there: one of ALLOWED_HOSTS."""

    host: str
    port: int
    name: str = "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open the site's address. The socket stays open here while web processes come and go, so that a
    request that meets a restart waits instead of being refused. Port 0 means any that is free.

    Raises CannotStart.
    """
    elsewhere = f"{host} port {port} is no address of this machine: choose others with --host and --port."
    if not 0 <= port <= 65535:
        raise CannotStart(elsewhere)
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: f"Port {port} on {host} is taken: free it, or choose another with --port.",
            errno.EACCES: f"Port {port} is reserved for the administrator: choose another with --port.",
        }
        raise CannotStart(reasons.get(error.errno or 0, elsewhere)) from error


def start(program: Program) -> Child:
    """Start a program in a process group of its own, with its output appended to its log. It loads its code
    and waits for `release`."""
    _rotate(program.log)
    ours, theirs = socket.socketpair()
    with theirs, program.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own commands, no shell
            (*program.command, "--line", str(theirs.fileno())),
            env={**program.defaults, **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(*program.open_files, theirs.fileno()),
            start_new_session=True,
        )
    return Child(program, process, ours, is_ready=not program.announces)


def release(child: Child) -> None:
    """Let a child begin its work."""
    with suppress(BrokenPipeError):  # it is dead, which is noticed elsewhere
        child.line.sendall(lifeline.GO)


def wait_until_ready(children: Sequence[Child], address: Address, timeout: float) -> None:
    """Wait until every child has announced itself and GET /healthz at `address` answers 200.

    Raises CannotStart when one ends instead, or when it takes longer than `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while not (all(map(_has_announced, children)) and is_healthy(address)):
        for child in children:
            if child.process.poll() is not None:
                raise CannotStart(f"The {child.program.name} process {_died(child)}: {_last_words(child)}")
        if time.monotonic() > deadline:
            logs = children[0].program.log.parent
            raise CannotStart(f"The site is not ready after {timeout:.0f} s: see the logs in {logs}.")
        time.sleep(_POLL)


def is_healthy(address: Address) -> bool:
    """Whether GET /healthz answers 200."""
    connection = HTTPConnection(address.host, address.port, timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": address.name})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def watch(children: list[Child], look_after: Callable[[], bool], say: Callable[[str], None]) -> NoReturn:
    """Keep the children running, for ever. Each time round `look_after` does whatever else there is to keep,
    and returns whether the children have to be started anew for it. Ends by an exception: KeyboardInterrupt.
    """
    while True:
        if look_after():
            for child in children:
                _end(child)
        for child in children:
            _revive(child, say)
        time.sleep(_TICK)


def stop(children: Sequence[Child], grace: float) -> None:
    """Tell all children to stop, wait for up to `grace` seconds, and kill what is left of them.

    A second Ctrl-C ends the waiting.
    """
    deadline = time.monotonic() + grace
    with suppress(KeyboardInterrupt):
        for child in children:
            child.process.terminate()
        while any(child.process.poll() is None for child in children) and time.monotonic() < deadline:
            time.sleep(_POLL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # nothing left to wait for
    for child in children:
        _end(child)


def _revive(child: Child, say: Callable[[str], None]) -> None:
    """Start a child again that died, after a pause that grows with every death in a row."""
    now = time.monotonic()
    if child.again_at is None and child.process.poll() is not None:
        _end(child)
        child.deaths = 1 if now - child.since > _PROVEN_AFTER else child.deaths + 1
        pause = min(_FIRST_PAUSE * 2 ** (child.deaths - 1), _LONGEST_PAUSE)
        child.again_at = now + pause
        say(f"The {child.program.name} process {_died(child)}; it is started again in {pause:g} s.")
    elif child.again_at is not None and now >= child.again_at:
        fresh = start(child.program)
        release(fresh)
        child.process, child.line, child.since, child.again_at = fresh.process, fresh.line, now, None


def _end(child: Child) -> None:
    """Kill the child and whatever is left of its process group, and wait until the last of them is gone."""
    if child.line.fileno() < 0:  # done already
        return
    with suppress(ProcessLookupError, PermissionError):  # the latter is macOS's word for a group of zombies
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()
    child.line.settimeout(_LAST_BREATH)
    with suppress(OSError):
        while child.line.recv(64):  # its end, which forks inherit, is closed when none of them lives
            pass
    child.line.close()


def _has_announced(child: Child) -> bool:
    if not child.is_ready and select.select([child.line], [], [], 0)[0]:
        child.is_ready = child.line.recv(len(lifeline.READY)) == lifeline.READY
    return child.is_ready


def _died(child: Child) -> str:
    code = child.process.returncode
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _last_words(child: Child) -> str:
    """The last line of a child's log."""
    lines = child.program.log.read_text(errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'it gave no reason'} (log: {child.program.log})"


def _rotate(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_SIZE:
        log.replace(log.with_suffix(".1.log"))
